"""A trace is continued from a well-formed `traceparent`, else from the envelope. Never an error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.runtime.tracing import TraceContext, extract

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
OWN = "7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b"
FALLBACK = TraceContext("trace_id", "7b3f9c2ae41d4f889b2a1c0d5e6f7a8b")


def hexes(size: int) -> st.SearchStrategy[str]:
    return st.text("0123456789abcdef", min_size=size, max_size=size).filter(
        lambda t: set(t) != {"0"}
    )


@given(hexes(32), hexes(16), st.text("0123456789abcdef", min_size=2, max_size=2))
def test_a_header_wins_over_the_envelope(trace: str, span: str, flags: str) -> None:
    expected = TraceContext("traceparent", trace, span, flags)
    header = f"00-{trace}-{span}-{flags}"
    assert extract(header, OWN) == expected
    assert extract(header.encode(), OWN) == expected


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "not-a-traceparent",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-extra",
        f"00-{TRACE[:-2]}-{SPAN}-01",
        f"00-{TRACE}ab-{SPAN}-01",
        f"00-{TRACE}-{SPAN[:-2]}-01",
        f"00-{TRACE[:-1]}g-{SPAN}-01",
        f"00-{TRACE}-{SPAN[:-1]}z-01",
        f"00-{TRACE}-{SPAN}-1",
        f"00-{TRACE}-{SPAN}-01\n",
        f" 00-{TRACE}-{SPAN}-01",
        f"ff-{TRACE}-{SPAN}-01",
        f"01-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        b"\xff",
        7,
        ["00"],
    ],
)
def test_a_header_that_is_not_well_formed_acts_like_none(header: Any) -> None:
    assert extract(header, OWN) == FALLBACK


@given(st.one_of(st.none(), st.text(), st.binary(), st.integers()), st.none() | st.text())
def test_reading_a_header_never_raises(header: Any, trace_id: str | None) -> None:
    assert extract(header, trace_id).trace_id_hex == (trace_id or "").replace("-", "")

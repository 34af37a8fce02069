"""Continue a trace: from the W3C `traceparent` beside the message, else from its `trace_id`.

The header has the form `00-<32 hex>-<16 hex>-<2 hex>` in lower case, with ids that are not all
zero. Any other header is ignored; reading it never raises (ADR-0028, ADR-0025).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["TraceContext", "extract"]

_TRACEPARENT: Final = re.compile(
    r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})"
)


@dataclass(frozen=True, slots=True)
class TraceContext:
    """A trace, and its origin; only a header gives the span and the flags."""

    source: str
    trace_id_hex: str
    parent_span_id: str | None = None
    flags: str | None = None


def extract(traceparent: Any, trace_id: str | None) -> TraceContext:
    """Return the trace that a consumer continues, from the delivered message."""
    if isinstance(traceparent, bytes):
        traceparent = traceparent.decode("latin-1")
    match = _TRACEPARENT.fullmatch(traceparent) if isinstance(traceparent, str) else None
    if match:
        return TraceContext("traceparent", *match.groups())
    return TraceContext("trace_id", (trace_id or "").replace("-", ""))

"""Generators of messages: good, odd and broken."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e16, 1e21, 1e-6, 1e-7, 9.99e-6, 1e-5, -0.0, 1.0, 5e-324, 123456789.0]),
    st.text(st.characters(exclude_categories=["Cs"])),
)
names = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.sampled_from(["a", "b", "10", "2", "", "\ue000", "\U00010000", "\uffff", "job", "meta"]),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=20,
)
payloads = st.dictionaries(names, values, max_size=5)

known = st.sampled_from(
    ["job", "urn", "trace_id", "data", "meta", "attempts", "dead_letter", "timestamp", "JOB", "x"]
)
inner_known = st.sampled_from(
    ["id", "queue", "lang", "schema_version", "created_at", "ts", "source", "reason", "failed_at",
     "attempts", "error", "x"]
)  # fmt: skip
literals = st.sampled_from(
    ["null", "true", "0", "-0", "1", "1.0", "1e0", "1e400", "9223372036854775807",
     "9223372036854775808", "-9223372036854775809", '"x"', '" \\t"', '"\u2003"', "{}", "[]",
     '"\\ud800"', '"\\ud83d\\ude00"', "[[1]]", '{"a":1e400}', '{"a":1,"a":2}', "01", "NaN", "'x'"]
)  # fmt: skip


typed = {
    "trace_id": st.sampled_from(["null", '"t"', '"\\u00e9"']),
    "data": st.sampled_from(
        ["{}", "null", '{"a":1.50,"a":[{}]}', '{ "b" : 12345678901234567890 }']
    ),
    "attempts": st.sampled_from(["0", "-0", "7", "null"]),
    "meta": st.sampled_from(["{}", "null", '{"id":"i","schema_version":1,"z":[]}']),
    "dead_letter": st.sampled_from(["{}", "null", '{"reason":"failed","x":{}}']),
    "timestamp": st.sampled_from(["1", '"x"']),
    "other": st.sampled_from(["1e400", "[[1]]", '"\\ud83d\\ude00"', "1E2"]),
    "job": st.sampled_from(['"urn:x"', "5"]),
}


@st.composite
def good_texts(draw: st.DrawFn) -> str:
    """Write a body that is a message: every member well typed, in any order, with repeats."""
    space = draw(st.sampled_from(["", " ", "\n\t"]))
    parts = [
        f'"{name}"{space}:{space}{draw(typed[name])}{space}'
        for name in draw(st.lists(st.sampled_from(sorted(typed)), max_size=8))
    ]
    parts.insert(draw(st.integers(0, len(parts))), '"urn":"urn:alias"')
    return space + "{" + space + f",{space}".join(parts) + "}" + space


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Write an object by hand: repeated names, every literal, odd spaces."""
    space = draw(st.sampled_from(["", "", " ", "\n\t"]))

    def members(keys: st.SearchStrategy[str], depth: int) -> str:
        parts = []
        for _ in range(draw(st.integers(0, 5))):
            nested = depth and draw(st.booleans())
            value = members(inner_known, depth - 1) if nested else draw(literals)
            parts.append(f"{json.dumps(draw(keys))}{space}:{space}{value}")
        return "{" + f",{space}".join(parts) + "}"

    return space + members(known, 1) + space


def dumps(value: Any) -> bytes:
    """Write a value plainly, as a foreign producer might."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")

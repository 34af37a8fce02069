from __future__ import annotations

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.exact import TYPED
from tests.core.fuzz import attack, bodies

COUNT = 10_000
OFTEN = ("ok", "not_json", "wrong_type", "number_out_of_range", "lone_surrogate", "no_identity")


def test_no_bytes_raise_anything_but_the_documented_rejection() -> None:
    ends = Counter(attack(body) for body in bodies(COUNT, seed=7))
    assert {"not_utf8", "truncated", "too_deep", "trailing_data"} <= ends.keys()
    assert {name: ends[name] for name in OFTEN if ends[name] < COUNT / 100} == {}


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**65), 2**65)
    | st.floats(allow_nan=False)
    | st.text(st.characters() | st.characters(categories=["Cs"]), max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
names = st.sampled_from(sorted({name for path in TYPED for name in path} | {"job", "urn", "ts"}))
parts = st.dictionaries(names, values, max_size=5)
members = st.lists(st.tuples(names, values | parts), max_size=8)


@given(members, st.booleans())
def test_the_quick_decoder_and_the_rule_agree_on_every_object(
    pairs: list[tuple[str, object]], named: bool
) -> None:
    every = [("job", "urn:x"), *pairs] if named else pairs
    text = ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in every)
    attack(f"{{{text.replace('Infinity', '1e999')}}}".encode())


@given(st.binary(max_size=60))
def test_noise_is_rejected_at_a_place(body: bytes) -> None:
    assert attack(body) != ""

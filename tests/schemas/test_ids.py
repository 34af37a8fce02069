from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import Rejected
from tallystick.schemas.ids import assign_ids, parse_lock, render_lock

URNS = st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=12)


def test_without_a_lock_ids_count_from_one_in_lexical_order() -> None:
    assert assign_ids(["urn:b", "urn:a", "urn:B"], {}) == {"urn:B": 1, "urn:a": 2, "urn:b": 3}


@given(URNS, URNS)
def test_a_new_urn_never_renumbers_a_locked_one(before: list[str], after: list[str]) -> None:
    locked = assign_ids(before, {})
    now = assign_ids(after, locked)
    assert all(now[urn] == locked[urn] for urn in after if urn in locked)
    assert len(set(now.values())) == len(now)


@given(URNS, URNS)
def test_the_id_of_a_urn_that_left_is_never_given_again(
    before: list[str], after: list[str]
) -> None:
    locked = assign_ids(before, {})
    new = {urn: number for urn, number in assign_ids(after, locked).items() if urn not in locked}
    assert not set(new.values()) & set(locked.values())


@given(URNS)
def test_a_lock_reads_back_as_it_was_written(urns: list[str]) -> None:
    ids = assign_ids(urns, {})
    assert parse_lock(render_lock(ids).encode()) == ids


def test_a_lock_is_written_in_the_order_of_the_ids() -> None:
    assert render_lock({"z": 1, "a": 2}) == '{\n  "ids": {\n    "z": 1,\n    "a": 2\n  }\n}\n'


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[]", 1),
        ('{"ids": []}', 1),
        ('{"ids": {}, "more": 1}', 1),
        ('{"ids": {\n"a": 0}}', 2),
        ('{"ids": {\n"a": true}}', 2),
        ('{"ids": {\n"a": 1.5}}', 2),
        ('{"ids": {"b": 1,\n\n"a": 2147483648}}', 3),
        ('{"ids": {"b": 1,\n"a": 1}}', 2),
        ('{"ids": {"a": 1,\n"a": 2}}', 2),
    ],
)
def test_a_malformed_lock_is_rejected_with_its_line(text: str, line: int) -> None:
    with pytest.raises(Rejected) as caught:
        parse_lock(text.encode(), "ids.lock")
    assert f"ids.lock:{line}:" in str(caught.value)

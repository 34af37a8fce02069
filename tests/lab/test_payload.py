"""Bodies made from a seed, digests, and runs of numbers: the same in the lab and in the client."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import Rejected
from tallystick.lab.payload import digest_of, make_block, make_body, read_runs, write_runs
from tests.lab.company import wire


def test_a_block_is_what_the_protocol_page_shows() -> None:
    assert make_block(1)[:8].hex(" ") == "c6 7e 81 6b 4b fb e2 fb"
    assert make_body(1, 3, 4).hex(" ") == "bf e3 7f 94"
    assert len(make_block(1)) == 65521


@given(st.integers(0, 2**31), st.integers(0, 9999), st.integers(0, 200_000))
def test_both_ends_make_the_same_body(seed: int, sequence: int, size: int) -> None:
    seed %= 7
    body = make_body(seed, sequence, size)
    assert len(body) == size
    assert body == wire.make_body(seed, sequence, size)


def test_messages_next_to_each_other_differ() -> None:
    assert len({make_body(5, sequence, 64) for sequence in range(200)}) == 200


def test_a_digest_depends_on_the_order() -> None:
    assert digest_of(1, 16, [0, 1]) != digest_of(1, 16, [1, 0])
    inner = hashlib.sha256(make_body(1, 0, 16)).digest()
    assert digest_of(1, 16, [0]) == hashlib.sha256(inner).hexdigest()


@given(st.lists(st.integers(0, 60), max_size=80))
def test_runs_keep_numbers_and_their_order(numbers: list[int]) -> None:
    assert read_runs(write_runs(numbers)) == numbers
    assert write_runs(numbers) == wire.write_runs(numbers)


@pytest.mark.parametrize("text", ["x", "3-1", "1,,2", "-1", "0-99999999999", "1-2-3", "+1"])
def test_what_is_no_run_is_rejected(text: str) -> None:
    with pytest.raises(Rejected):
        read_runs(text)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_the_first_difference_is_where_they_part(one: bytes, other: bytes) -> None:
    at = wire.first_difference(one, other)
    assert one[:at] == other[:at]
    assert one[at : at + 1] != other[at : at + 1] or one == other

"""Bodies made from a seed, digests, and runs of numbers: the same in the lab and in the client."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import Rejected
from tallystick.lab.payload import digest_of, make_body, read_runs, write_runs
from tests.lab.company import wire


def test_a_body_is_what_the_protocol_page_shows() -> None:
    assert make_body(1, 3, 4).hex(" ") == "9c 19 3c 60"
    assert make_body(1, 3, 70)[:31] == make_body(1, 3, 70)[31:62]


@given(st.integers(0, 11), st.integers(0, 11), st.integers(9, 17))
def test_no_two_buffers_of_a_body_are_the_same(one: int, other: int, bits: int) -> None:
    """A buffer that comes twice, or in another's place, is seen."""
    size = 2**bits
    body = make_body(1, 0, 12 * size)
    parts = [body[at * size : (at + 1) * size] for at in (one, other)]
    assert (parts[0] == parts[1]) == (one == other)


@given(st.integers(0, 2**31 - 1), st.integers(0, 9999), st.integers(0, 200_000))
def test_both_ends_make_the_same_body(seed: int, sequence: int, size: int) -> None:
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


@pytest.mark.parametrize("text", ["x", "3-1", "1,,2", "-1", "0-99999999999", "1-2-3", "+1"])
def test_what_is_no_run_is_rejected(text: str) -> None:
    with pytest.raises(Rejected):
        read_runs(text)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_the_first_difference_is_where_they_part(one: bytes, other: bytes) -> None:
    at = wire.first_difference(one, other)
    assert (at < 0) == (one == other)
    assert at < 0 or (one[:at] == other[:at] and one[at : at + 1] != other[at : at + 1])

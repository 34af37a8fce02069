"""What is Kafka's own: commits in order, tiers from the URL, the way back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.brokers.kafka.progress import Partition
from tallystick.core.errors import UsageError
from tallystick.runtime.address import link_to


@given(st.permutations(range(20)), st.integers(0, 20))
def test_an_offset_is_committed_only_when_all_before_it_are_done(
    order: list[int], finished: int
) -> None:
    partition = Partition()
    for offset in range(20):
        partition.hand_out(offset)
    for offset in order[:finished]:
        partition.finish(offset)
    done = set(order[:finished])
    expected = next((offset for offset in range(20) if offset not in done), 20)
    assert partition.position() == expected


def test_a_rewind_begins_at_the_first_that_is_not_done_and_ends_what_is_out() -> None:
    partition = Partition()
    for offset in range(5):
        partition.hand_out(offset)
    partition.finish(0)
    partition.finish(3)
    before = partition.epoch
    assert partition.rewind() == 1
    assert (partition.epoch, partition.out, partition.position()) == (before + 1, set(), 1)


@pytest.mark.parametrize("tiers", ["x", "0", "-5", "5,x"])
def test_tiers_that_are_no_milliseconds_are_refused(tiers: str) -> None:
    with pytest.raises(UsageError):
        link_to(f"kafka://127.0.0.1?tiers={tiers}")


def test_no_tiers_can_be_asked_for() -> None:
    link = link_to("kafka://127.0.0.1?tiers=")
    assert link.open().capabilities.options == {"tiers_ms": ()}
    assert not link.open().capabilities.delays

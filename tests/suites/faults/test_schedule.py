"""A schedule comes from its seed, and has every fault that was asked for, in order."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tallystick.suites.faults.schedule import KINDS, draw

COUNTS = st.dictionaries(st.sampled_from(KINDS), st.integers(0, 5))


@given(COUNTS, st.integers(100, 10**6), st.integers())
def test_every_fault_comes_once_within_the_run_and_in_order(
    counts: dict[str, int], messages: int, seed: int
) -> None:
    faults = draw(counts, messages, seed)
    assert Counter(one.kind for one in faults) == +Counter(counts)
    places = [one.after for one in faults]
    assert places == sorted(places)
    assert all(0 < place < messages for place in places)


@given(COUNTS, st.integers())
def test_the_same_seed_gives_the_same_schedule(counts: dict[str, int], seed: int) -> None:
    assert draw(counts, 1000, seed) == draw(counts, 1000, seed)


def test_another_seed_gives_another_schedule() -> None:
    counts = {"kill_broker": 3, "kill_worker": 3}
    assert len({draw(counts, 20_000, seed) for seed in range(20)}) == 20

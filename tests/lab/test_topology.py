"""Circuits are divided evenly over nodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import UsageError
from tallystick.lab.topology import Requested, describe, divide, place

MACHINES = [f"machine{number}" for number in range(10)]


@given(st.integers(0, 5000), st.integers(1, 200))
def test_shares_add_up_and_differ_by_at_most_one(total: int, nodes: int) -> None:
    shares = divide(total, nodes)
    assert sum(shares) == total
    assert len(shares) == nodes
    assert max(shares) - min(shares) <= 1
    assert list(shares) == sorted(shares, reverse=True)


def test_the_worked_example_gives_two_machines_32_receivers_and_six_31() -> None:
    asked = Requested(2, 1, 125, 25, max_publishing_node=2, single_role=True)
    circuits = place(asked, MACHINES, MACHINES)
    assert [circuit.publisher for circuit in circuits] == ["machine0", "machine1"]
    seats: dict[str, int] = {}
    for circuit in circuits:
        assert sum(len(consumers) for _, consumers in circuit.receivers) == 125
        for node, consumers in circuit.receivers:
            seats[node] = seats.get(node, 0) + len(consumers)
    assert seats == {
        f"machine{number}": 32 if number < 4 else 31 for number in range(2, 10)
    }  # machines 0 and 1 publish
    said = describe(asked, circuits)
    assert "requested 2 circuits" in said
    assert "machine2=32" in said


def test_every_consumer_of_every_circuit_sits_on_exactly_one_node() -> None:
    for circuit in place(Requested(3, 2, 7, 2, 2, single_role=False), MACHINES[:4], MACHINES[:4]):
        seats = [one for _, consumers in circuit.receivers for one in consumers]
        assert sorted(seats) == list(range(7))


def test_without_single_role_one_node_plays_both() -> None:
    (circuit,) = place(Requested(single_role=False), ["a"], ["a"])
    assert circuit.publisher == "a"
    assert circuit.receivers == (("a", (0,)),)


def test_no_node_left_to_receive_fails_before_anything_is_sent() -> None:
    with pytest.raises(UsageError) as failure:
        place(Requested(max_publishing_node=2, single_role=True), ["a", "b"], ["a", "b"])
    assert failure.value.code == "topology"
    with pytest.raises(UsageError):
        place(Requested(), [], ["a"])

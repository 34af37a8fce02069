"""Circuits as words on a command line, and the command that repeats one."""

from __future__ import annotations

import pytest

from tallystick.core.errors import UsageError
from tallystick.lab.cases import Settings, read_circuit
from tallystick.report.table import repeat_command

WORKED = {
    "num_circuits": "2",
    "num_consumers": "125",
    "num_destinations": "25",
    "max_publishing_node": "2",
}


def test_the_worked_example_is_placed_from_words() -> None:
    """Two circuits and 250 receivers over 8 nodes: two get 32, the rest 31."""
    nodes = [f"n{number}" for number in range(10)]
    (instance,) = read_circuit(Settings("r", "vm"), WORKED).make(nodes, nodes)
    seats = dict.fromkeys(nodes, 0)
    for part in instance.parts:
        seats[part.client] += len(part.body.get("consumers", []))
    assert sorted(seats.values()) == [0, 0, *[31] * 6, 32, 32]


@pytest.mark.parametrize(
    "wrong",
    [{"num_consumers": "0"}, {"num_circuits": "many"}, {"single_role": "1"}, {"batches": "-1"},
     {"num_publishers": "true"}, {"duration": "x"}, {"ack_mod": "tx"}, {"ack_mode": "auto "},
     {"persistent": "1"}, {"message_bytes": "-1"}, {"header_fields": "[]"}],
    ids=str,
)  # fmt: skip
def test_a_wrong_word_is_named(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError) as caught:
        read_circuit(Settings("r", "vm"), wrong)
    assert next(iter(wrong)) in str(caught.value)


def test_the_command_that_repeats_a_circuit_has_its_words() -> None:
    group = read_circuit(Settings("r", "vm"), {"single_role": "false", "ack_mode": "tx"})
    (instance,) = group.make(["a"], ["a"])
    assert repeat_command("vm", instance.name) == (
        "tally lab circuit --broker vm ack_mode=tx single_role=false"
    )

"""Circuits: M producers, N consumers, Z destinations, C at a time, in batches or for a while."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tallystick.core.verdict import Outcome
from tallystick.lab.cases import Settings, circuit_group
from tallystick.lab.shell import Place
from tallystick.lab.state import Limits
from tallystick.lab.topology import Requested
from tallystick.lab.vm_server import running_vm
from tests.lab.company import PATIENCE, Book, client, company, fresh, roles, run

Client: Any = client.Client
NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with running_vm() as vm:
        yield Place(vm.host, vm.port)


def circuit(
    place: Place, requested: Requested, kinds: dict[str, Any] | None = None, **body: Any
) -> Book:
    batches, duration = body.pop("batches", 1), body.pop("duration", 0.0)
    group = circuit_group(
        Settings(fresh(), "vm"), "it", requested, {"num_messages": 8, "message_bytes": 9, **body},
        batches=batches, duration=duration,
    )  # fmt: skip
    people = kinds or dict.fromkeys(NAMES, Client)
    limits = Limits(PATIENCE, PATIENCE, settle=2.0)
    with company(place, people):
        return run(place, tuple(people), groups=[group], limits=limits)


@pytest.mark.parametrize("pattern", ["p2p", "pubsub"])
def test_two_circuits_of_many_ends_over_three_nodes(place: Place, pattern: str) -> None:
    requested = Requested(2, 2, 4, 2, max_publishing_node=1, single_role=True)
    book = circuit(place, requested, pattern=pattern)
    (verdict,) = book.verdicts
    assert verdict.outcome is Outcome.PASSED, verdict
    (note,) = book.notes
    assert "requested 2 circuits of 2 publishers, 4 consumers, 2 destinations" in note
    assert "actual circuits a=2, consumers b=4 c=4" in note


def test_batches_are_asked_for_one_by_one(place: Place) -> None:
    book = circuit(
        place, Requested(num_consumers=2, single_role=False), pattern="pubsub", batches=3
    )
    assert [one.outcome for one in book.verdicts] == [Outcome.PASSED], book.verdicts


def test_batches_go_on_for_the_duration(place: Place) -> None:
    book = circuit(place, Requested(single_role=False), duration=0.3)
    assert [one.outcome for one in book.verdicts] == [Outcome.PASSED], book.verdicts
    assert book.verdicts[0].milliseconds >= 300


@pytest.mark.parametrize(
    "more",
    [
        {"transactional": True, "tx_batch_size": 3},
        {"ack_mode": "tx", "tx_batch_size": 3},
        {"ack_mode": "client"},
        {"ack_mode": "dups_ok", "num_messages": 23},
        {"ack_mode": "no_ack"},
        {"ack_mode": "pre_ack"},
        {"exclusive": True},
        {"persistent": True, "durable": True},
        {"mandatory": True},
        {"outgoing_rate": 200},
        {"inbound_rate": 200},
        {"prefetch_count": 1},
        {"check": "count"},
        {"header_fields": {"x": ["F", {"y": ["A", [["I", "1"], ["S", "z"]]]}]}},
        {"message_bytes": 300_000, "num_messages": 3},
    ],
    ids=str,
)
def test_every_message_arrives_with_any_setting(place: Place, more: dict[str, Any]) -> None:
    book = circuit(place, Requested(single_role=False), {"a": Client}, **more)
    assert [one.outcome for one in book.verdicts] == [Outcome.PASSED], book.verdicts


def test_a_circuit_without_anyone_to_receive_errs_before_traffic(place: Place) -> None:
    book = circuit(place, Requested(single_role=True), {"a": Client})
    (verdict,) = book.verdicts
    assert verdict.outcome is Outcome.ERRORED
    assert "no node can receive" in verdict.reason


class LosesOne(roles.Sender):  # type: ignore[misc]
    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        if (publisher, sequence) != (1, 5):
            super().publish(publisher, sequence, properties, body)


class Loser(Client):  # type: ignore[misc]
    roles = {**Client.roles, "SENDER": LosesOne}  # noqa: RUF012 (as in the original)


def test_a_loss_among_competing_consumers_is_named(place: Place) -> None:
    people = {"a": Loser, "b": Client, "c": Client}
    book = circuit(place, Requested(1, 2, 4, 2), people)
    (verdict,) = book.verdicts
    assert verdict.outcome is Outcome.FAILED
    lost = [one for one in verdict.differences if one.pointer.endswith("/lost")]
    assert [(one.pointer, one.found) for one in lost] == [("/queue/0/1/lost", "5")]

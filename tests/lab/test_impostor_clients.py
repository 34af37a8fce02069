"""Clients that are wrong on purpose are each caught, with the right verdict.

Every impostor is the Python client with one method changed. It plays both roles against an honest
client; what only the other role could do wrong must still pass.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tallystick.core.verdict import Outcome, Verdict
from tallystick.lab.cases import Settings
from tallystick.lab.perf import Load, perf_groups
from tallystick.lab.shell import Place
from tallystick.lab.state import Limits
from tallystick.lab.vm_server import running_vm
from tests.lab.company import PATIENCE, Book, client, company, fresh, roles, run

Client: Any = client.Client
Sender: Any = roles.Sender
Receiver: Any = roles.Receiver
VICTIM = 2


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with running_vm() as vm:
        yield Place(vm.host, vm.port)


def with_roles(sending: Any = Sender, receiving: Any = Receiver) -> type[Any]:
    class Impostor(Client):  # type: ignore[misc]
        roles = {"SENDER": sending, "RECEIVER": receiving}  # noqa: RUF012 (as in the original)

    return Impostor


class LosesOne(Sender):  # type: ignore[misc]
    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        if sequence != VICTIM:
            super().publish(publisher, sequence, properties, body)


class DoublesOne(Sender):  # type: ignore[misc]
    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        for _ in range(2 if sequence == VICTIM else 1):
            super().publish(publisher, sequence, properties, body)


class Reorders(Sender):  # type: ignore[misc]
    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        if sequence == VICTIM:
            self.kept = (publisher, sequence, properties, body)
            return
        super().publish(publisher, sequence, properties, body)
        if sequence == VICTIM + 1:
            super().publish(*self.kept)


class CorruptsAByte(Sender):  # type: ignore[misc]
    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        if sequence == VICTIM:
            body = body[:100] + bytes([body[100] ^ 1]) + body[101:]
        super().publish(publisher, sequence, properties, body)


class Reencodes(Sender):  # type: ignore[misc]
    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        text = body.decode("latin-1").encode("utf-8")
        super().publish(publisher, sequence, properties, text)


class LosesOneOnArrival(Receiver):  # type: ignore[misc]
    def note(self, index: int, method: Any, properties: Any, body: bytes, **told: Any) -> None:
        if properties.headers["SEQUENCE"] == VICTIM:
            self.count -= 1
            return
        super().note(index, method, properties, body, **told)


class LiesInItsCount(Receiver):  # type: ignore[misc]
    async def status(self, fields: Any) -> None:
        await super().status(fields)
        self.count += 1


class SaysItSentMore(Sender):  # type: ignore[misc]
    async def start(self, fields: Any) -> None:
        await super().start(fields)
        self.count += 1


class InventsArrivals(Receiver):  # type: ignore[misc]
    """Got one message too few and says it got all, with the digest of what it got."""

    def note(self, index: int, method: Any, properties: Any, body: bytes, **told: Any) -> None:
        super().note(index, method, properties, b"" if body and index == 0 else body, **told)

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = super().report()
        for message in report["messages"]:
            message["differs"] = -1
        return report


class SendsStrangers(Sender):  # type: ignore[misc]
    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        super().publish(publisher, sequence, properties, body)
        if sequence == VICTIM:
            properties.headers = {"who": "knows"}
            super().publish(publisher, sequence, properties, body)


class HidesItsId(Sender):  # type: ignore[misc]
    def make(self, publisher: int, sequence: int) -> Any:
        headers, properties, body = super().make(publisher, sequence)
        return headers, {**properties, "correlation_id": "another"}, body


class RepeatsItsId(Sender):  # type: ignore[misc]
    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.correlation = "always the same"


IMPOSTORS: list[tuple[str, type[Any], str, Outcome, str]] = [
    ("loses one", with_roles(LosesOne), "bad/good", Outcome.FAILED, "1 lost"),
    ("doubles one", with_roles(DoublesOne), "bad/good", Outcome.FAILED, "1 duplicated"),
    ("re-orders", with_roles(Reorders), "bad/good", Outcome.FAILED, "1 reordered"),
    ("corrupts a byte", with_roles(CorruptsAByte), "bad/good", Outcome.FAILED, "1 altered"),
    ("re-encodes", with_roles(Reencodes), "bad/good", Outcome.FAILED, "6 altered"),
    ("loses one on arrival", with_roles(receiving=LosesOneOnArrival), "good/bad",
     Outcome.FAILED, "1 lost"),
    ("lies in its count", with_roles(receiving=LiesInItsCount), "good/bad",
     Outcome.FAILED, "count"),
    ("says it sent more", with_roles(SaysItSentMore), "bad/good", Outcome.FAILED, "count"),
    ("invents arrivals", with_roles(receiving=InventsArrivals), "good/bad",
     Outcome.FAILED, "digest"),
    ("sends strangers", with_roles(SendsStrangers), "bad/good", Outcome.FAILED, "1 unexpected"),
    ("hides its id", with_roles(HidesItsId), "bad/good",
     Outcome.FAILED, "6 lost, 6 unexpected"),
]  # fmt: skip
OTHER = {"bad/good": "good/bad", "good/bad": "bad/good"}


def judged(book: Book, pair: str) -> Verdict:
    (found,) = book.named(f"TC2_BasicP2P/{pair}")
    return found


@pytest.mark.parametrize(
    ("kind", "pair", "outcome", "reason"),
    [row[1:] for row in IMPOSTORS],
    ids=[row[0] for row in IMPOSTORS],
)
def test_what_it_does_wrong_is_named(
    place: Place, kind: type[Any], pair: str, outcome: Outcome, reason: str
) -> None:
    """IOP-38, IOP-41, IOP-42, IOP-44: messages are compared one by one, not only counted."""
    with company(place, {"good": Client, "bad": kind}):
        book = run(place, ["good", "bad"], cases=["TC2*"], limits=Limits(60, 60, settle=2.0))
    found = judged(book, pair)
    assert (found.outcome, found.reason) == (outcome, reason), found
    assert judged(book, "good/good").outcome is Outcome.PASSED
    assert judged(book, OTHER[pair]).outcome is Outcome.PASSED


def test_a_correlation_id_is_used_once(place: Place) -> None:
    """IOP-42: a fresh one for each test case instance."""
    with company(place, {"good": Client, "bad": with_roles(RepeatsItsId)}):
        book = run(place, ["good", "bad"], cases=["TC2*"], parallel=1)
    first, second = (judged(book, pair) for pair in ("bad/good", "bad/bad"))
    assert first.outcome is Outcome.PASSED
    assert second.outcome is Outcome.FAILED
    assert "always the same" in second.reason


def test_the_lost_message_is_named_by_its_number(place: Place) -> None:
    with company(place, {"good": Client, "bad": with_roles(LosesOne)}):
        book = run(place, ["good", "bad"], cases=["TC[23]*"], limits=Limits(60, 60, settle=2.0))
    (lost,) = judged(book, "bad/good").differences
    assert (lost.pointer, lost.found) == ("/queue/0/0/lost", "2")
    subscribers = book.named("TC3_BasicPubSub/bad/good")[0].differences
    assert [one.pointer for one in subscribers] == ["/1/receiver/0/0/lost", "/1/receiver/1/0/lost"]


def test_the_altered_byte_is_named_by_its_offset(place: Place) -> None:
    with company(place, {"good": Client, "bad": with_roles(CorruptsAByte)}):
        book = run(place, ["good", "bad"], cases=["TC2*"])
    (altered,) = judged(book, "bad/good").differences
    sequence, offset, size, _ = altered.found[0]
    assert (sequence, offset, size) == (VICTIM, 100, 256)


class Hangs(Sender):  # type: ignore[misc]
    async def start(self, _fields: Any) -> None:
        await client.asyncio.Event().wait()


class Dies(Receiver):  # type: ignore[misc]
    async def status(self, _fields: Any) -> None:
        self.client.connections[0].close()
        await client.asyncio.Event().wait()


class NeverReady(Receiver):  # type: ignore[misc]
    async def begin(self, _fields: Any) -> None:
        await client.asyncio.Event().wait()


@pytest.mark.parametrize(
    ("kind", "pair", "words"),
    [
        (with_roles(Hangs), "bad/good", "did not answer in time"),
        (with_roles(receiving=NeverReady), "good/bad", "did not answer in time"),
        (with_roles(receiving=Dies), "good/bad", "has stopped"),
    ],
    ids=["hangs when it should send", "hangs before it accepts", "dies"],
)
def test_who_hangs_or_dies_errors_its_cases_and_no_others(
    place: Place, kind: type[Any], pair: str, words: str
) -> None:
    limits = Limits(PATIENCE, answer=4.0, settle=0.5, ping=0.2)
    with company(place, {"good": Client, "bad": kind}):
        book = run(place, ["good", "bad"], cases=["TC[12]*"], limits=limits, parallel=1)
    found = judged(book, pair)
    assert found.outcome is Outcome.ERRORED
    assert words in found.reason
    assert judged(book, "good/good").outcome is Outcome.PASSED
    assert len(book.verdicts) == 8, "every case has its verdict"


def test_a_client_that_joins_twice_is_not_believed(place: Place) -> None:
    """IOP-35: the name is unique."""
    with company(place, {"good": Client, "twin": Client, "twin+": Client}):
        deadline = time.monotonic() + PATIENCE
        book = run(place, ["good", "twin"], cases=["TC2*"])
        assert time.monotonic() < deadline
    assert judged(book, "good/good").outcome is Outcome.PASSED
    for pair in ("good/twin", "twin/good", "twin/twin"):
        found = judged(book, pair)
        assert found.outcome is Outcome.ERRORED
        assert found.reason == "twin enlisted twice under one name"


class Refused(Receiver):  # type: ignore[misc]
    async def prepare(self, one: Any) -> None:
        one.queue = f"no such queue {os.getpid()}"
        await super().prepare(one)


def test_a_report_still_comes_when_the_broker_closes_a_test_connection(place: Place) -> None:
    """IOP-37: control has a connection of its own."""
    with company(place, {"good": Client, "bad": with_roles(receiving=Refused)}):
        book = run(place, ["good", "bad"], cases=["TC2*"])
    found = judged(book, "good/bad")
    assert found.outcome is Outcome.FAILED
    assert "closed" in found.reason
    assert found.differences[0].found["code"] == 404
    assert judged(book, "bad/good").outcome is Outcome.PASSED


class Babbles(Client):  # type: ignore[misc]
    def reply(self, request: Any, kind: str, fields: Any, body: str = "") -> None:
        super().reply(request, "NONSENSE", {})
        super().reply(request, kind, fields, body)


def test_what_breaks_the_protocol_is_noted_with_who_sent_it_and_counted(place: Place) -> None:
    with company(place, {"good": Client, "bad": Babbles}):
        book = run(place, ["good", "bad"], cases=["TC1*"])
    assert {one.outcome for one in book.verdicts} == {Outcome.PASSED}
    assert "'bad' sent it: a client sent an unknown CONTROL_TYPE 'NONSENSE'" in book.notes[0]
    assert book.notes[-1].endswith("messages to the coordinator were dropped")
    assert int(book.notes[-1].split()[0]) >= len(book.notes) - 1


class StampsTheFuture(Sender):  # type: ignore[misc]
    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        properties.headers["SENT_NS"] += 3600 * 10**9
        super().publish(publisher, sequence, properties, body)


def test_a_message_that_came_before_it_was_sent_is_no_latency_of_zero(place: Place) -> None:
    groups = perf_groups(Settings(fresh(), "b"), Load(messages=3, size=1))[:1]
    with company(place, {"good": Client, "bad": with_roles(StampsTheFuture)}):
        book = run(place, ["good", "bad"], groups=groups)
    (found,), (other,) = book.named("/bad/good"), book.named("/good/bad")
    assert found.outcome is Outcome.FAILED
    assert "synchronisation failure" in found.reason
    assert not found.measured
    assert other.outcome is Outcome.PASSED

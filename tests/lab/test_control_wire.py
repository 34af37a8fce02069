"""What goes over the wire, seen by a listener on all control keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

import pika  # type: ignore[import-untyped]
import pika.data  # type: ignore[import-untyped]
import pytest

from tallystick.core.errors import Rejected
from tallystick.core.verdict import Outcome
from tallystick.lab.assignment import complete
from tallystick.lab.cases import DEFAULTS, SIZES, Settings, pair_groups
from tallystick.lab.control import Control, Kind, Role, read_control, write_control
from tallystick.lab.instance import Part
from tallystick.lab.reports import join_reports, tally_report
from tallystick.lab.shell import Place
from tallystick.lab.vm_server import Vm, running_vm
from tests.lab.company import PATIENCE, Book, Guest, client, company, fresh, run

Client: Any = client.Client
NAMES = ("one", "two")


class Sniffer:
    """Everything that was published to `iop.#`, in order."""

    def __init__(self, place: Place) -> None:
        self.seen: list[tuple[str, Any, bytes]] = []
        self._place = place
        self._stop = Event()
        self._ready = Event()
        self._thread = Thread(target=self._listen, daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    def _listen(self) -> None:
        connection = pika.BlockingConnection(self._place.parameters())
        channel = connection.channel()
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "amq.topic", "iop.#")
        channel.basic_consume(queue, self._take, auto_ack=True)
        self._ready.set()
        while not self._stop.is_set():
            connection.process_data_events(0.05)
        connection.close()

    def _take(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self.seen.append((method.routing_key, properties, body))

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(PATIENCE)

    def of(self, kind: str) -> list[tuple[str, Any, bytes]]:
        return [one for one in self.seen if one[1].headers.get("CONTROL_TYPE") == kind]


@pytest.fixture(scope="module")
def vm() -> Iterator[Vm]:
    with running_vm() as running:
        yield running


@pytest.fixture(scope="module")
def wire(vm: Vm) -> tuple[Sniffer, Book, dict[str, Guest]]:
    """One run of all test cases between two clients, and all that was said."""
    place = Place(vm.host, vm.port)
    sniffer = Sniffer(place)
    with company(place, dict.fromkeys(NAMES, Client)) as guests:
        book = run(place, NAMES, cases=["TC[123]*", "TC[45]*/63K/*"])
        for guest in guests.values():
            guest.join()
    sniffer.stop()
    return sniffer, book, guests


def test_every_pair_also_with_itself_passes_every_case(
    wire: tuple[Sniffer, Book, dict[str, Guest]],
) -> None:
    """IOP-50, IOP-51, IOP-52, IOP-56, IOP-60."""
    _, book, _ = wire
    assert len(book.verdicts) == 5 * 4
    assert {one.outcome for one in book.verdicts} == {Outcome.PASSED}


def test_control_goes_over_the_topic_exchange_on_the_control_keys(
    wire: tuple[Sniffer, Book, dict[str, Guest]],
) -> None:
    """IOP-7, IOP-36: broadcasts on iop.control, the rest on iop.control.<name>."""
    sniffer, _, _ = wire
    keys = {
        kind: {key for key, _, _ in sniffer.of(kind)}
        for kind in ("INVITE", "TERMINATE", "ASSIGN_ROLE", "START", "STATUS_REQUEST")
    }
    assert keys["INVITE"] == keys["TERMINATE"] == {"iop.control"}
    private = {"iop.control.one", "iop.control.two"}
    assert keys["ASSIGN_ROLE"] == keys["START"] == keys["STATUS_REQUEST"] == private


def test_every_broadcast_has_an_address_for_replies(
    wire: tuple[Sniffer, Book, dict[str, Guest]],
) -> None:
    """IOP-48."""
    sniffer, _, _ = wire
    control = [one for one in sniffer.seen if one[0].startswith("iop.control")]
    assert control
    assert all(properties.reply_to for _, properties, _ in control)


def test_the_first_invite_has_no_test_name_and_all_others_have_one(
    wire: tuple[Sniffer, Book, dict[str, Guest]],
) -> None:
    """IOP-25, IOP-26: absent, not empty."""
    sniffer, _, _ = wire
    first, *rest = [properties.headers for _, properties, _ in sniffer.of("INVITE")]
    assert "TEST_NAME" not in first
    assert all(headers["TEST_NAME"] for headers in rest)


def test_roles_come_with_the_fields_the_specification_names(
    wire: tuple[Sniffer, Book, dict[str, Guest]],
) -> None:
    """IOP-28, IOP-45, IOP-47, IOP-54, IOP-58."""
    sniffer, _, _ = wire
    by_test: dict[str, dict[str, Any]] = {}
    for _, properties, _ in sniffer.of("ASSIGN_ROLE"):
        by_test[properties.headers["TEST_NAME"]] = properties.headers
        assert properties.headers["ROLE"] in ("SENDER", "RECEIVER")
    assert by_test["TC2_BasicP2P"]["P2P_NUM_MESSAGES"] == 6
    assert by_test["TC2_BasicP2P"]["P2P_QUEUE_AND_KEY_NAME"]
    assert by_test["TC3_BasicPubSub"]["PUBSUB_NUM_RECEIVERS"] == 2
    assert by_test["TC3_BasicPubSub"]["PUBSUB_NUM_MESSAGES"] == 4
    assert by_test["TC3_BasicPubSub"]["PUBSUB_KEY"]
    assert by_test["TC4_P2PMessageSize"]["messageSize"] == 63 * 1024
    assert by_test["TC5_PubSubMessageSize"]["messageSize"] == 63 * 1024
    invites = {p.headers.get("TEST_NAME"): p.headers for _, p, _ in sniffer.of("INVITE")}
    assert invites["TC3_BasicPubSub"]["PUBSUB_NUM_RECEIVERS"] == 2
    assert invites["TC5_PubSubMessageSize"]["messageSize"] == 63 * 1024


def test_names_are_fresh_for_every_instance(wire: tuple[Sniffer, Book, dict[str, Guest]]) -> None:
    """IOP-44, IOP-46, IOP-53, IOP-57."""
    sniffer, _, _ = wire
    seen: dict[str, set[str]] = {}
    for _, properties, _ in sniffer.of("ASSIGN_ROLE"):
        headers = properties.headers
        name = headers.get("P2P_QUEUE_AND_KEY_NAME", headers.get("PUBSUB_KEY"))
        if name:
            seen.setdefault(name, set()).add(properties.correlation_id.rpartition("/")[0])
    assert len(seen) == 4 * 4
    assert all(len(instances) == 1 for instances in seen.values())


def test_a_sender_is_silent_before_start(wire: tuple[Sniffer, Book, dict[str, Guest]]) -> None:
    """IOP-30: pub/sub messages pass the listener too, and none comes before its START."""
    sniffer, _, _ = wire
    test_messages = [at for at, one in enumerate(sniffer.seen) if "SEQUENCE" in one[1].headers]
    starts = [
        at for at, one in enumerate(sniffer.seen) if one[1].headers.get("CONTROL_TYPE") == "START"
    ]
    assert test_messages
    for at in test_messages:
        key = sniffer.seen[at][0]
        owner = next(
            p.correlation_id for _, p, _ in sniffer.of("ASSIGN_ROLE")
            if p.headers["ROLE"] == "SENDER" and p.headers.get("PUBSUB_KEY") == key
        )  # fmt: skip
        begun = [one for one in starts if sniffer.seen[one][1].correlation_id == owner]
        assert begun
        assert begun[0] < at


def test_test_messages_say_who_sent_them(wire: tuple[Sniffer, Book, dict[str, Guest]]) -> None:
    """IOP-38, IOP-42: the client's name, and one correlation id for each instance."""
    sniffer, _, _ = wire
    by_key: dict[str, set[tuple[str, str]]] = {}
    for key, properties, _ in sniffer.seen:
        if "SEQUENCE" in properties.headers:
            whose = (properties.headers["CLIENT_NAME"], properties.correlation_id)
            by_key.setdefault(key, set()).add(whose)
    assert all(len(whose) == 1 for whose in by_key.values())
    ids = [correlation for whose in by_key.values() for _, correlation in whose]
    assert len(set(ids)) == len(ids)


def test_all_clients_end_when_told_to(wire: tuple[Sniffer, Book, dict[str, Guest]], vm: Vm) -> None:
    """IOP-34: exit 0, and no queue is left behind."""
    _, _, guests = wire
    assert [guest.join() for guest in guests.values()] == [0, 0]
    assert not [name for name in vm.server.broker.queues if name.startswith("iop.")]


class Line:
    """The coordinator's end of the line, by hand."""

    def __init__(self, place: Place, key: str) -> None:
        self._connection = pika.BlockingConnection(place.parameters())
        self.channel = self._connection.channel()
        self._key = key
        self._replies: SimpleQueue[Any] = SimpleQueue()
        self._to = self.channel.queue_declare("", exclusive=True).method.queue
        self.channel.basic_consume(self._to, self._take, auto_ack=True)

    def _take(self, _channel: Any, _method: Any, properties: Any, body: bytes) -> None:
        self._replies.put((properties, body))

    def say(self, control: Control, name: str = "") -> None:
        if control.kind is Kind.ASSIGN_ROLE:
            control = replace(control, body=complete(control.body, {}))
        headers, body = write_control(control)
        properties = pika.BasicProperties(
            headers=headers, reply_to=self._to, correlation_id=control.assignment
        )
        key = f"{self._key}.{name}" if name else self._key
        self.channel.basic_publish("amq.topic", key, body, properties)

    def hear(self) -> tuple[Any, bytes]:
        for _ in range(600):
            try:
                found: tuple[Any, bytes] = self._replies.get_nowait()
            except Empty:
                self._connection.process_data_events(0.1)
            else:
                return found
        raise AssertionError("there was no reply")

    def ask(self, control: Control, name: str = "") -> Control:
        self.say(control, name)
        properties, body = self.hear()
        return read_control(properties.headers, body, properties.correlation_id)

    def hear_report(self, asked: Control, role: Role, **body: Any) -> Control:
        """Ask for a report; give it as a judge reads it."""
        told = join_reports(role, None, self.ask(asked, "it"))
        return tally_report(Part("it", role, {}, body), told, 0)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def alone(vm: Vm) -> Iterator[Callable[..., tuple[Line, Guest]]]:
    """One client and somebody to talk to it, on a key of their own."""
    lines: list[Line] = []
    guests: list[Guest] = []

    def make(**given: str) -> tuple[Line, Guest]:
        place, key = Place(vm.host, vm.port), f"iop.{fresh()}"
        guests.append(Guest(Client, place, {"client_name": "it", "control_key": key, **given}))
        lines.append(Line(place, key))
        return lines[-1], guests[-1]

    yield make
    for line in lines:
        line.say(Control(Kind.TERMINATE))
    for guest in guests:
        guest.join()
    for line in lines:
        line.close()


def test_an_enlistment_has_name_key_and_capabilities(
    alone: Callable[..., tuple[Line, Guest]],
) -> None:
    """IOP-27, IOP-35."""
    line, guest = alone()
    reply = line.ask(Control(Kind.INVITE, {}, {}, "x"))
    assert (reply.kind, reply.client, reply.assignment) == (Kind.ENLIST, "it", "x")
    assert reply.fields["CLIENT_PRIVATE_CONTROL_KEY"] == f"{guest.client.key}.it"
    assert reply.body["library"] == "pika"
    assert "immediate" in reply.body["cannot"]


def test_a_test_that_does_not_exist_is_declined_with_a_reason(
    alone: Callable[..., tuple[Line, Guest]],
) -> None:
    """IOP-27: what the library cannot express stands in the enlistment."""
    line, _ = alone()
    unknown = line.ask(Control(Kind.INVITE, {"TEST_NAME": "TC9"}))
    assert (unknown.kind, unknown.fields["REASON"]) == (Kind.DECLINE, "there is no test TC9")
    known = line.ask(Control(Kind.INVITE, {"TEST_NAME": "Circuit"}))
    assert known.kind is Kind.ENLIST
    assert set(known.body["cannot"]) == {"immediate", "no_local"}


def destination(line: Line) -> dict[str, str]:
    queue = f"q.{fresh()}"
    line.channel.queue_declare(queue)
    line.channel.queue_bind(queue, "amq.direct", queue)
    return {"exchange": "amq.direct", "key": queue, "queue": queue}


def test_a_receiver_consumes_before_it_accepts_and_counts_from_zero_again(
    alone: Callable[..., tuple[Line, Guest]],
) -> None:
    """IOP-29, IOP-39, IOP-41, IOP-49: a message sent right after the acceptance is not lost."""
    line, _ = alone()
    place = destination(line)
    body = {"destinations": [place], "consumers": [{"index": 0, "destination": 0}], "seed": 1,
            "message_bytes": 0}  # fmt: skip
    for number in range(2):
        role = Control(Kind.ASSIGN_ROLE, {"ROLE": "RECEIVER"}, body, f"r{number}")
        assert line.ask(role, "it").kind is Kind.ACCEPT_ROLE
        headers = {"CLIENT_NAME": "me", "SEQUENCE": 0, "PUBLISHER": 0}
        line.channel.basic_publish(
            place["exchange"], place["key"], b"", pika.BasicProperties(headers=headers)
        )
        wait = {"WAIT_COUNT": 1, "WAIT_MS": 60_000, "FINAL": True}
        line.say(Control(Kind.STATUS_REQUEST, wait, {}, f"r{number}"), "it")
        properties, told = line.hear()
        assert properties.headers["MESSAGE_COUNT"] == 1
        assert b'"SEQUENCE":["*","0"]' in told
        pieces: list[bytes] = []
        pika.data.encode_value(pieces, properties.headers["MESSAGE_COUNT"])
        assert b"".join(pieces)[:1] == b"I", "a signed 32-bit integer"


def test_a_receiver_keeps_the_messages_of_two_senders_apart(
    alone: Callable[..., tuple[Line, Guest]],
) -> None:
    """IOP-38: counts are held by client name and correlation id."""
    line, _ = alone()
    place = destination(line)
    body = {"destinations": [place], "consumers": [{"index": 0, "destination": 0}]}
    role = Control(Kind.ASSIGN_ROLE, {"ROLE": "RECEIVER"}, body, "r")
    assert line.ask(role, "it").kind is Kind.ACCEPT_ROLE
    for who, correlation in (("a", "1"), ("b", "1"), ("a", "2"), ("a", "1")):
        headers = {"CLIENT_NAME": who, "SEQUENCE": 7, "PUBLISHER": 0}
        properties = pika.BasicProperties(headers=headers, correlation_id=correlation)
        line.channel.basic_publish(place["exchange"], place["key"], b"", properties)
    wait = {"WAIT_COUNT": 4, "WAIT_MS": 60_000, "FINAL": True}
    report = line.hear_report(Control(Kind.STATUS_REQUEST, wait, {}, "r"), Role.RECEIVER)
    counted = {(s["sender"], s["correlation_id"]): s["received"] for s in report.body["streams"]}
    assert counted == {("a", "1"): "7,7", ("b", "1"): "7", ("a", "2"): "7"}


def test_a_sender_reports_when_it_is_done(alone: Callable[..., tuple[Line, Guest]]) -> None:
    """IOP-31: what it sent, and what came back."""
    line, _ = alone()
    place = {**destination(line), "key": "nowhere"}
    body = {"destinations": [place], "mandatory": True, "message_bytes": 5}
    accepted = line.ask(Control(Kind.ASSIGN_ROLE, {"ROLE": "SENDER"}, body, "s"), "it")
    start = {"FIRST": 0, "MESSAGE_COUNT": 3, "FINAL": True}
    report = line.hear_report(Control(Kind.START, start, {}, "s"), Role.SENDER)
    assert report.kind is Kind.REPORT
    assert report.fields["CORRELATION_ID"] == accepted.fields["CORRELATION_ID"]
    assert report.fields["MESSAGE_COUNT"] == 3
    assert report.body["sent"] == ["0-2"]
    assert report.body["returned"] == [[0, 0, 312], [0, 1, 312], [0, 2, 312]]


def test_a_role_reports_what_is_new_and_ends_when_it_is_told_to(
    alone: Callable[..., tuple[Line, Guest]],
) -> None:
    """Batches: a transaction is committed with each, and each message is told once."""
    line, _ = alone()
    place = destination(line)
    body = {"destinations": [place], "transactional": True, "tx_batch_size": 2}
    line.ask(Control(Kind.ASSIGN_ROLE, {"ROLE": "SENDER"}, body, "s"), "it")
    told = None
    for batch in range(3):
        fields = {"FIRST": batch * 5, "MESSAGE_COUNT": 5, "FINAL": batch == 2}
        said = line.ask(Control(Kind.START, fields, {}, "s"), "it")
        told = join_reports(Role.SENDER, told, said)
        declared = line.channel.queue_declare(place["queue"], passive=True)
        assert declared.method.message_count == said.fields["MESSAGE_COUNT"] == 5 * (batch + 1)
    assert told
    tallied = tally_report(Part("it", Role.SENDER, {}, body), told, 0).body
    assert (tallied["sent"], tallied["closed"]) == (["0-14"], None)
    assert int(tallied["started_ns"]) < int(tallied["ended_ns"])


@contextmanager
def enlisted(line: Line) -> Iterator[None]:
    assert line.ask(Control(Kind.INVITE, {}, {}, "x")).kind is Kind.ENLIST
    yield


def test_a_client_ends_itself_after_a_silence_but_only_when_it_expects_something(
    alone: Callable[..., tuple[Line, Guest]],
) -> None:
    """IOP-5."""
    line, waiting = alone(control_timeout="0.3")
    _, idle = alone(control_timeout="0.01")
    with enlisted(line):
        assert waiting.join() == 3
    assert idle.exit is None, "nobody invited this one, so it waits"


def test_a_client_whose_broker_is_lost_ends() -> None:
    """IOP-5: the broker has died."""
    with running_vm() as vm:
        guest = Guest(Client, Place(vm.host, vm.port), {})
    assert guest.join() == 1


def test_terminate_is_understood_in_either_field(
    alone: Callable[..., tuple[Line, Guest]],
) -> None:
    """IOP-34: its prose says CONTROL_TOPIC, its table CONTROL_TYPE."""
    line, guest = alone()
    properties = pika.BasicProperties(headers={"CONTROL_TOPIC": "TERMINATE"})
    line.channel.basic_publish("amq.topic", guest.client.key, b"", properties)
    assert guest.join() == 0


def test_a_clock_request_is_answered_with_its_stamps(
    alone: Callable[..., tuple[Line, Guest]],
) -> None:
    line, _ = alone()
    reply = line.ask(Control(Kind.CLOCK_SYNCH, {"T1": 5}, {}, "c"), "it")
    assert reply.fields["T1"] == 5
    assert 0 < reply.fields["T2"] <= reply.fields["T3"]


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"CONTROL_TYPE": "INVITE"}, b""),
        ({"CONTROL_TYPE": "REPORT", "CLIENT_NAME": "a", "CLIENT_INSTANCE": "1"}, b""),
        ({"CONTROL_TYPE": "ACCEPT_ROLE", "CLIENT_NAME": "a", "CLIENT_INSTANCE": "1"}, b"{"),
        ({"CONTROL_TYPE": "ACCEPT_ROLE", "CLIENT_NAME": "a", "CLIENT_INSTANCE": "1"}, b"[]"),
        ({"CONTROL_TYPE": "REPORT", "CLIENT_NAME": "a", "CLIENT_INSTANCE": "1",
          "MESSAGE_COUNT": 2**31}, b""),
        ({}, b""),
    ],
)  # fmt: skip
def test_what_breaks_the_protocol_is_rejected(headers: dict[str, Any], body: bytes) -> None:
    with pytest.raises(Rejected) as rejection:
        read_control(headers, body, "")
    assert rejection.value.code == "control_message"


def test_sizes_and_counts_are_those_of_the_specification() -> None:
    """IOP-21, IOP-55, IOP-59, and Appendix D."""
    assert SIZES == (0, 63, 64, 65, 127, 128, 129, 255, 256, 257)
    assert DEFAULTS == {
        "P2P_NUM_MESSAGES": 50, "PUBSUB_NUM_RECEIVERS": 5, "PUBSUB_NUM_MESSAGES": 10,
    }  # fmt: skip
    groups = pair_groups(Settings("r", "x", given={"P2P_NUM_MESSAGES": "7"}))
    assert len(groups) == 3 + 10 + 10
    (case,) = groups[1].make(["a"], ["a"])
    assert case.messages == 7
    sizes = [group.make(["a"], ["a"])[0].parts[0].body["message_bytes"] for group in groups[3:]]
    assert sizes == [size * 1024 for size in SIZES] * 2
    (pubsub,) = groups[2].make(["a"], ["b"])
    assert pubsub.total == 50, "received is sent times receivers"

"""One client and the coordinator's end of the line, by hand: what it answers, and when it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

import pika  # type: ignore[import-untyped]
import pika.data  # type: ignore[import-untyped]
import pytest

from tallystick.lab.assignment import instruct
from tallystick.lab.control import Control, Kind, Role, read_control, write_control
from tallystick.lab.instance import Part
from tallystick.lab.reports import join_reports, tally_report
from tallystick.lab.shell import Place
from tallystick.lab.vm_server import Vm, running_vm
from tests.lab.company import Guest, client, fresh


class Line:
    """The coordinator's end of the line, by hand."""

    def __init__(self, place: Place, key: str) -> None:
        self._connection = pika.BlockingConnection(place.parameters())
        self.channel = self._connection.channel()
        self._key = key
        self._replies: SimpleQueue[Any] = SimpleQueue()
        self.to = self.channel.queue_declare("", exclusive=True).method.queue
        self.channel.basic_consume(self.to, self._take, auto_ack=True)

    def _take(self, _channel: Any, _method: Any, properties: Any, body: bytes) -> None:
        self._replies.put((properties, body))

    def say(self, control: Control, name: str = "") -> None:
        if control.kind is Kind.ASSIGN_ROLE:
            told = instruct(Role(control.fields["ROLE"]), control.body, {})
            control = replace(control, body=told)
        headers, body = write_control(control)
        properties = pika.BasicProperties(
            headers=headers, reply_to=self.to, correlation_id=control.assignment
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
        told = join_reports(role, None, self.ask(asked, "it"), {})
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
        guests.append(
            Guest(client.Client, place, {"client_name": "it", "control_key": key, **given})
        )
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
    key = guest.client.given["control_key"]
    assert reply.fields["CLIENT_PRIVATE_CONTROL_KEY"] == f"{key}.it"
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
        told = join_reports(Role.SENDER, told, said, {})
        declared = line.channel.queue_declare(place["queue"], passive=True)
        assert declared.method.message_count == said.fields["MESSAGE_COUNT"] == 5 * (batch + 1)
    assert told
    tallied = tally_report(Part("it", Role.SENDER, {}, body), told, 0).body
    assert (tallied["sent"], tallied["closed"]) == (["0-14"], None)
    assert int(tallied["started_ns"]) < int(tallied["ended_ns"])


def test_a_role_without_parameters_is_an_error_and_no_end(
    alone: Callable[..., tuple[Line, Guest]],
) -> None:
    line, guest = alone()
    headers = {"CONTROL_TYPE": "ASSIGN_ROLE", "ROLE": "RECEIVER"}
    properties = pika.BasicProperties(headers=headers, reply_to=line.to, correlation_id="r")
    key = guest.client.given["private_key"]
    line.channel.basic_publish("amq.topic", key, b"", properties)
    said, body = line.hear()
    assert said.headers["CONTROL_TYPE"] == "REPORT"
    assert json.loads(body)["error"]
    assert line.ask(Control(Kind.INVITE, {}, {}, "x")).kind is Kind.ENLIST


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
        guest = Guest(client.Client, Place(vm.host, vm.port), {})
    assert guest.join() == 1


def test_terminate_is_understood_in_either_field(
    alone: Callable[..., tuple[Line, Guest]],
) -> None:
    """IOP-34: its prose says CONTROL_TOPIC, its table CONTROL_TYPE."""
    line, guest = alone()
    properties = pika.BasicProperties(headers={"CONTROL_TOPIC": "TERMINATE"})
    line.channel.basic_publish("amq.topic", guest.client.given["control_key"], b"", properties)
    assert guest.join() == 0


def test_a_clock_request_is_answered_with_its_stamps(
    alone: Callable[..., tuple[Line, Guest]],
) -> None:
    line, _ = alone()
    reply = line.ask(Control(Kind.CLOCK_SYNCH, {"T1": 5}, {}, "c"), "it")
    assert reply.fields["T1"] == 5
    assert 0 < reply.fields["T2"] <= reply.fields["T3"]

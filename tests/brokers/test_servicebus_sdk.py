"""The unmodified azure-servicebus, synchronous client, against the emulator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from azure.servicebus import (
    NEXT_AVAILABLE_SESSION,
    ServiceBusClient,
    ServiceBusMessage,
    ServiceBusReceivedMessage,
    ServiceBusReceiveMode,
    ServiceBusReceiver,
    ServiceBusSender,
    ServiceBusSubQueue,
)
from azure.servicebus.exceptions import (
    MessageLockLostError,
    MessageNotFoundError,
    OperationTimeoutError,
    SessionCannotBeLockedError,
)

from tallystick.brokers.servicebus.access import write_connection

pytestmark = pytest.mark.xdist_group("brokers")

WAIT = 5.0
SHORT = 0.3


@dataclass
class Bus:
    """One queue of a test's own."""

    client: ServiceBusClient
    queue: str
    stack: ExitStack

    def sender(self, name: str = "") -> ServiceBusSender:
        return self.stack.enter_context(self.client.get_queue_sender(name or self.queue))

    def receiver(self, **options: Any) -> ServiceBusReceiver:
        return self.stack.enter_context(self.client.get_queue_receiver(self.queue, **options))

    def dead(self) -> ServiceBusReceiver:
        return self.receiver(sub_queue=ServiceBusSubQueue.DEAD_LETTER)

    def send(self, *texts: str, session: str | None = None) -> None:
        self.sender().send_messages([ServiceBusMessage(one, session_id=session) for one in texts])


def take(receiver: ServiceBusReceiver, count: int = 1) -> list[ServiceBusReceivedMessage]:
    taken: list[ServiceBusReceivedMessage] = []
    while len(taken) < count:
        more = receiver.receive_messages(count - len(taken), max_wait_time=WAIT)
        assert more, f"{len(taken)} of {count} came"
        taken += more
    return taken


def is_empty(receiver: ServiceBusReceiver) -> bool:
    return receiver.receive_messages(1, max_wait_time=SHORT) == []


def peek(receiver: ServiceBusReceiver) -> list[str]:
    return sorted(str(one) for one in receiver.peek_messages(9, sequence_number=1))


@pytest.fixture
def bus(broker_url: Callable[[str], str]) -> Iterator[Bus]:
    host = broker_url("servicebus").partition("://")[2]
    text = write_connection(f"sb://{host}", "any", "any", emulator=True)
    with ExitStack() as stack:
        client = ServiceBusClient.from_connection_string(text, retry_total=0)
        stack.enter_context(client)
        yield Bus(client, f"q-{uuid4().hex[:12]}", stack)


def test_a_message_arrives_with_its_fields_and_is_gone_when_completed(bus: Bus) -> None:
    sent = ServiceBusMessage(
        b"\x00\x53body",
        subject="s",
        correlation_id="c",
        message_id="m",
        content_type="application/json",
        application_properties={"text": "é", "number": 7, "truth": True},
    )
    bus.sender().send_messages(sent)
    receiver = bus.receiver()
    (got,) = take(receiver)
    assert b"".join(got.body) == b"\x00\x53body"
    assert (got.subject, got.correlation_id, got.message_id) == ("s", "c", "m")
    assert got.application_properties == {b"text": "é".encode(), b"number": 7, b"truth": True}
    assert (got.delivery_count, got.dead_letter_source) == (0, None)
    assert got.locked_until_utc is not None
    assert got.locked_until_utc > datetime.now(UTC)
    receiver.complete_message(got)
    assert is_empty(receiver)


def test_a_batch_keeps_its_order(bus: Bus) -> None:
    bus.send(*map(str, range(50)))
    assert [str(one) for one in take(bus.receiver(), 50)] == list(map(str, range(50)))


def test_abandon_counts_and_release_by_closing_does_not_lose(bus: Bus) -> None:
    bus.send("a")
    receiver = bus.receiver()
    for count in range(3):
        (got,) = take(receiver)
        assert got.delivery_count == count
        receiver.abandon_message(got)


def test_the_tenth_delivery_is_the_last_and_the_dead_letter_says_why(bus: Bus) -> None:
    bus.send("a")
    receiver = bus.receiver()
    for _ in range(10):
        receiver.abandon_message(take(receiver)[0])
    assert is_empty(receiver)
    (dead,) = take(bus.dead())
    assert (str(dead), dead.dead_letter_reason) == ("a", "MaxDeliveryCountExceeded")
    assert dead.dead_letter_source == bus.queue


def test_a_dead_letter_carries_its_reason(bus: Bus) -> None:
    bus.sender().send_messages(ServiceBusMessage("a", application_properties={"kept": 1}))
    receiver = bus.receiver()
    receiver.dead_letter_message(take(receiver)[0], reason="why", error_description="because")
    graves = bus.dead()
    (dead,) = take(graves)
    assert (dead.dead_letter_reason, dead.dead_letter_error_description) == ("why", "because")
    assert dead.application_properties is not None
    assert dead.application_properties[b"kept"] == 1
    graves.complete_message(dead)
    assert is_empty(graves)
    assert is_empty(receiver)


def test_a_deferred_message_comes_by_its_number_only(bus: Bus) -> None:
    bus.send("a")
    receiver = bus.receiver()
    (got,) = take(receiver)
    number = got.sequence_number
    assert number is not None
    receiver.defer_message(got)
    assert is_empty(receiver)
    (again,) = receiver.receive_deferred_messages(number)
    assert str(again) == "a"
    receiver.complete_message(again)
    with pytest.raises(MessageNotFoundError):
        receiver.receive_deferred_messages(number)


def test_a_lock_can_be_renewed_until_it_is_settled(bus: Bus) -> None:
    bus.send("a")
    receiver = bus.receiver()
    (got,) = take(receiver)
    before = got.locked_until_utc
    after = receiver.renew_message_lock(got)
    assert before is not None
    assert after >= before
    receiver.complete_message(got)
    got._settled = False
    with pytest.raises(MessageLockLostError):
        receiver.renew_message_lock(got)


def test_a_scheduled_message_waits_and_a_cancelled_one_never_comes(bus: Bus) -> None:
    sender, receiver = bus.sender(), bus.receiver()
    soon = datetime.now(UTC) + timedelta(seconds=2)
    sender.schedule_messages(ServiceBusMessage("soon"), soon)
    late = sender.schedule_messages(
        [ServiceBusMessage("x"), ServiceBusMessage("y")], soon + timedelta(hours=1)
    )
    assert peek(receiver) == ["soon", "x", "y"]
    sender.cancel_scheduled_messages(late)
    assert peek(receiver) == ["soon"]
    (got,) = take(receiver)
    assert datetime.now(UTC) >= soon - timedelta(milliseconds=1)
    receiver.complete_message(got)
    assert peek(receiver) == []


def test_peek_shows_and_takes_nothing(bus: Bus) -> None:
    bus.send("a", "b")
    receiver = bus.receiver()
    take(receiver, 1)
    first, second = receiver.peek_messages(5, sequence_number=1)
    assert [str(first), str(second)] == ["a", "b"]
    assert first.locked_until_utc is None
    following = receiver.peek_messages(5, sequence_number=second.sequence_number or 0)
    assert [str(one) for one in following] == ["b"]


def test_receive_and_delete_forgets_at_once(bus: Bus) -> None:
    bus.send("a", "b")
    receiver = bus.receiver(receive_mode=ServiceBusReceiveMode.RECEIVE_AND_DELETE)
    assert [str(one) for one in take(receiver, 2)] == ["a", "b"]
    assert bus.receiver().peek_messages(5) == []


def test_a_session_belongs_to_one_receiver_and_has_a_state(bus: Bus) -> None:
    bus.send("a1", "a2", session="A")
    bus.send("b1", session="B")
    named = bus.receiver(session_id="A")
    assert [str(one) for one in take(named, 2)] == ["a1", "a2"]
    named.session.set_state(b"half")
    assert b"".join([named.session.get_state()]) == b"half"
    assert named.session.renew_lock() > datetime.now(UTC)
    second = bus.receiver(session_id="A")
    with pytest.raises(SessionCannotBeLockedError):
        second.receive_messages(1, max_wait_time=WAIT)
    free = bus.receiver(session_id=NEXT_AVAILABLE_SESSION)
    assert free.session.session_id == "B"
    assert [str(one) for one in take(free)] == ["b1"]
    named.close()
    again = bus.receiver(session_id="A")
    assert [(str(one), one.delivery_count) for one in take(again, 2)] == [("a1", 0), ("a2", 0)]


def test_when_no_session_is_free_the_receiver_is_told(bus: Bus) -> None:
    receiver = bus.client.get_queue_receiver(
        bus.queue, session_id=NEXT_AVAILABLE_SESSION, max_wait_time=1
    )
    bus.stack.callback(receiver.close)
    with pytest.raises(OperationTimeoutError):
        receiver.receive_messages(1, max_wait_time=WAIT)


def test_a_topic_copies_to_each_subscription(bus: Bus) -> None:
    topic = f"t-{bus.queue}"
    one, two = (
        bus.stack.enter_context(bus.client.get_subscription_receiver(topic, name))
        for name in ("one", "two")
    )
    assert one.peek_messages(1) == two.peek_messages(1) == []
    with bus.client.get_topic_sender(topic) as sender:
        sender.send_messages(ServiceBusMessage("a"))
    assert [str(got) for got in (*take(one), *take(two))] == ["a", "a"]

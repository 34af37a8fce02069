"""What only Service Bus has: longs, the native dead-letter queue, scheduled copies, locks."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from uuid import uuid4

import pytest

from tallystick.brokers import servers
from tallystick.brokers.servers.process import is_alive
from tallystick.brokers.servicebus.transport import ServiceBusTransport, connect
from tallystick.core.errors import Refused, Unavailable, UsageError
from tallystick.core.frame import Frame
from tallystick.core.slot import Long
from tallystick.core.transport import Address, Delivery

pytestmark = pytest.mark.xdist_group("brokers")


def address_of(url: str, **options: str) -> Address:
    host, _, port = url.partition("://")[2].rpartition(":")
    return Address("servicebus", "sb", host, int(port), options=options)


@pytest.fixture
def transport(broker_url: Callable[[str], str]) -> Iterator[ServiceBusTransport]:
    one = connect(address_of(broker_url("servicebus")))()
    yield one
    one.close()


@pytest.fixture
def queue() -> str:
    return f"q-{uuid4().hex[:12]}"


def take(transport: ServiceBusTransport, queue: str) -> Delivery:
    (delivery,) = transport.receive(queue, 1, 10.0)
    return delivery


def test_whole_numbers_of_any_width_go_out_again_as_they_came(
    transport: ServiceBusTransport, queue: str
) -> None:
    held = {"small": 1, "long": Long(2), "wide": 2**40, "text": "é", "truth": True}
    transport.send(queue, [Frame(b"a", {"application_properties": held})])
    for _ in range(2):
        got = take(transport, queue)
        assert got.frame.sections["application_properties"] == held
        transport.replace(got, queue, got.frame)


def test_what_is_given_up_goes_to_the_dead_letter_queue_of_the_service(
    transport: ServiceBusTransport, queue: str
) -> None:
    transport.send(queue, [Frame(b"a")])
    transport.give_up(take(transport, queue), "poison")
    dead = take(transport, f"{queue}/$DeadLetterQueue")
    assert dead.frame.get("application_properties", "DeadLetterReason") == "poison"
    assert transport.receive(queue, 1, 0.2) == []


@pytest.mark.parametrize(("here", "waits"), [([], 7.0), (["a message"], 0.001)])
def test_who_has_messages_waits_for_no_others(here: list[str], waits: float) -> None:
    """With a stand-in for the client's receiver: what it holds is a matter of moments."""
    asked: list[float] = []
    holds: SimpleQueue[str] = SimpleQueue()
    for one in here:
        holds.put(one)

    class Receiver:
        _handler = SimpleNamespace(_received_messages=holds)

        def receive_messages(self, _limit: int, max_wait_time: float) -> list[str]:
            asked.append(max_wait_time)
            return here

    transport = connect(address_of("sb://127.0.0.1:1"))()
    assert transport._pull(Receiver(), 5, 7.0) == here
    assert asked == [waits]


def test_a_release_counts(transport: ServiceBusTransport, queue: str) -> None:
    transport.send(queue, [Frame(b"a")])
    counts = []
    for _ in range(3):
        got = take(transport, queue)
        counts.append(got.frame.get("message", "delivery_count"))
        transport.release(got)
    assert counts == [1, 2, 3]


def test_a_delivery_is_settled_once_and_by_its_own_connection(
    transport: ServiceBusTransport, queue: str
) -> None:
    transport.send(queue, [Frame(b"a"), Frame(b"b")])
    first, second = take(transport, queue), take(transport, queue)
    transport.ack([first])
    with pytest.raises(Unavailable) as caught:
        transport.ack([first])
    assert caught.value.code == "delivery_lost"
    transport.close()
    transport.ensure([queue])
    for settle in (transport.release, lambda one: transport.replace(one, queue, one.frame)):
        with pytest.raises(Unavailable) as caught:
            settle(second)
        assert caught.value.code == "delivery_lost"


def test_many_are_completed_together_and_the_next_settlement_is_answered_again(
    transport: ServiceBusTransport, queue: str
) -> None:
    transport.send(queue, [Frame(b"%d" % n) for n in range(20)])
    taken: list[Delivery] = []
    while len(taken) < 20:
        taken += transport.receive(queue, 20 - len(taken), 10.0)
    transport.ack(taken[:19])
    assert transport.receive(queue, 20, 0.2) == []
    with pytest.raises(Unavailable) as caught:
        transport.ack([taken[19], taken[0]])
    assert caught.value.code == "delivery_lost"
    transport.send(queue, [Frame(b"last")])
    assert take(transport, queue).frame.body == b"last"


def test_a_message_that_is_too_large_is_refused_with_its_limit(
    transport: ServiceBusTransport, queue: str
) -> None:
    with pytest.raises(Refused) as caught:
        transport.send(queue, [Frame(b"x" * (1 << 20))])
    assert caught.value.code == "too_large"
    big = Frame(b"y" * 700_000)
    transport.send(queue, [big, big, big])
    for _ in range(3):
        got = take(transport, queue)
        assert got.frame.body == big.body
        transport.ack([got])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_broker_that_comes_back_is_found_again(tmp_path: Path, queue: str) -> None:
    """The SDK leaves the socket of a connection that broke to the garbage collector."""
    with servers.running("servicebus", home=tmp_path) as first:
        transport = connect(address_of(first.url))()
        transport.send(queue, [Frame(b"a")])
        assert take(transport, queue).frame.body == b"a"
        os.kill(first.pid, signal.SIGKILL)
        while is_alive(first.identity):
            pass
        with pytest.raises(Unavailable):
            transport.send(queue, [Frame(b"b")])
        second = servers.up("servicebus", home=tmp_path)
        assert second.url == first.url
        transport.send(queue, [Frame(b"c")])
        assert [take(transport, queue).frame.body for _ in "ac"] == [b"a", b"c"]
        transport.close()
    gc.collect()


def test_nobody_there_is_said_without_the_key() -> None:
    address = Address("servicebus", "sb", "127.0.0.1", 1, "name", "secret-key")
    with pytest.raises(Unavailable) as caught:
        connect(address)().send("q", [Frame(b"a")])
    assert "secret-key" not in str(caught.value) + repr(address)
    assert "refused" in str(caught.value)


def test_the_real_service_needs_a_key() -> None:
    with pytest.raises(UsageError, match="needs a key"):
        connect(Address("servicebus", "sb", "name.servicebus.windows.net"))


def test_the_emulator_says_that_it_is_one() -> None:
    server = servers.find_server("servicebus")
    assert server.title == "Azure Service Bus (emulator)"
    assert server.version == "emulator"

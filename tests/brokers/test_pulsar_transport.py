"""A Pulsar that has just come back refuses at first; asking again until the timeout is our part."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pulsar  # type: ignore[import-untyped]
import pytest

from tallystick import App
from tallystick.brokers.pulsar.transport import PulsarTransport
from tallystick.core.errors import TallystickError, Unavailable, UsageError
from tallystick.core.transport import Address

pytestmark = pytest.mark.xdist_group("brokers")


class Reluctant:
    """A client whose topics refuse so many times, for one reason."""

    def __init__(self, refusals: int, reason: type[Exception]) -> None:
        self.left = refusals
        self.asked = 0
        self._reason = reason

    def subscribe(self, *_: Any, **__: Any) -> Reluctant:
        self.asked += 1
        if self.left:
            self.left -= 1
            raise self._reason("not now")
        return self

    def close(self) -> None:
        """Nothing is open."""


def transport(client: Reluctant, timeout: float) -> PulsarTransport:
    return PulsarTransport(Address("pulsar", "pulsar"), lambda: client, timeout)


@pytest.mark.parametrize("reason", [pulsar.Timeout, pulsar.ServiceUnitNotReady, pulsar.LookupError])
def test_a_topic_that_is_not_ready_is_asked_for_again(reason: type[Exception]) -> None:
    client = Reluctant(2, reason)
    transport(client, 60.0).ensure(["orders"])
    assert client.asked == 3


def test_a_topic_that_is_never_ready_is_given_up_in_time() -> None:
    client = Reluctant(1000, pulsar.Timeout)
    with pytest.raises(Unavailable, match="not now"):
        transport(client, 0.5).ensure(["orders"])
    assert client.asked > 1


def test_a_refusal_for_good_is_said_at_once() -> None:
    client = Reluctant(1000, pulsar.AuthorizationError)
    with pytest.raises(Unavailable, match="not now"):
        transport(client, 60.0).ensure(["orders"])
    assert client.asked == 1


def test_a_client_that_has_ended_is_replaced() -> None:
    client = Reluctant(1, pulsar.AlreadyClosed)
    link = transport(client, 60.0)
    with pytest.raises(Unavailable):
        link.ensure(["orders"])
    link.ensure(["orders"])
    assert client.asked == 2


@pytest.mark.parametrize("option", ["prefetch", "nack_delay", "timeout"])
@pytest.mark.parametrize("text", ["abc", "nan", "-1"])
def test_a_number_that_is_none_is_refused_before_anybody_connects(option: str, text: str) -> None:
    with pytest.raises(UsageError, match=option):
        App(f"pulsar://localhost?{option}={text}")


class Consumer:
    """As pulsar-client's, with more messages than anybody takes."""

    def __init__(self) -> None:
        self.acknowledged: list[Any] = []

    def subscribe(self, *_: Any, **__: Any) -> Consumer:
        return self

    def receive(self, _timeout: int) -> Any:
        return SimpleNamespace(properties=dict, redelivery_count=int, data=bytes)

    def acknowledge(self, message: Any) -> None:
        self.acknowledged.append(message)


def test_48_are_handed_out_together_at_most() -> None:
    link = PulsarTransport(Address("pulsar", "pulsar"), Consumer, 1.0)
    assert [len(link.receive("orders", limit, 0)) for limit in (1, 47, 48, 200)] == [1, 47, 48, 48]


def test_what_another_consumer_took_is_not_acknowledged_and_the_rest_is() -> None:
    old, new = Consumer(), Consumer()
    clients = iter([old, new])
    link = PulsarTransport(Address("pulsar", "pulsar"), lambda: next(clients), 1.0)
    (before,) = link.receive("orders", 1, 0)
    link._drop()
    (after,) = link.receive("orders", 1, 0)
    with pytest.raises(TallystickError) as caught:
        link.ack([before, after])
    assert caught.value.code == "delivery_lost"
    assert (len(old.acknowledged), len(new.acknowledged)) == (0, 1)


@pytest.mark.parametrize(("options", "left"), [("", 0), ("?prefetch=1", 8)])
def test_a_worker_that_is_busy_holds_no_more_messages_than_it_is_told(
    broker_url: Callable[[str], str], options: str, left: int
) -> None:
    queue = f"tally-{uuid4().hex}"
    with closing(App(broker_url("pulsar") + options, queue=queue)) as app:
        busy, free = app.link.open(), app.link.open()
        with closing(busy), closing(free):
            busy.ensure([queue])
            for n in range(10):  # one by one: a batch is handed to one worker whole
                app.publish("urn:babel:orders:created", {"n": n})
            assert len(busy.receive(queue, 1, 30)) == 1
            shared = iter(lambda: len(free.receive(queue, 10, 2)), 0)
            assert sum(shared) == left

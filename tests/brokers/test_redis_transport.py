"""What is Redis's own: reservations that expire, and bodies that a reservation cannot count."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest

from tallystick.brokers.redis.layouts import LaravelLayout, Layout, LegacyLayout
from tallystick.brokers.redis.transport import RedisTransport
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.frame import Frame
from tallystick.runtime.address import link_to, read_address

pytestmark = pytest.mark.xdist_group("brokers")


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("make", [LegacyLayout, LaravelLayout])
def test_whoever_comes_after_the_deadline_touches_nothing(
    broker_url: Callable[[str], str], make: Callable[[float], Layout]
) -> None:
    url, clock, queue = broker_url("redis"), Clock(), f"tally-{uuid4().hex}"
    client = link_to(url).open()._client  # type: ignore[attr-defined]
    transport = RedisTransport(read_address(url), make(10), client, clock)
    body = b'{"job":"urn:x","data":{"list":[],"n":12345678901234567890},"attempts":0}'
    transport.send(queue, [Frame(body)])
    (first,) = transport.receive(queue, 10, 0)
    clock.now += 11
    (second,) = transport.receive(queue, 10, 0)
    counted = body.replace(b'"attempts":0', b'"attempts":1')
    assert second.frame.body == (counted if make is LaravelLayout else body)
    settlements: list[Callable[[], None]] = [
        lambda: transport.ack([first]),
        lambda: transport.release(first),
        lambda: transport.replace(first, queue, Frame(b"{}")),
    ]
    for settle in settlements:
        with pytest.raises(Unavailable) as raised:
            settle()
        assert raised.value.code == "delivery_lost"
    transport.ack([second])
    clock.now += 100
    assert transport.receive(queue, 10, 0) == []
    transport.close()


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1/x", "redis://127.0.0.1?nonsense=1", "redis://h?retry_after=soon"]
)
def test_a_url_that_redis_does_not_know_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        link_to(url)

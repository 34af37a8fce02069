"""What becomes of a message, on every broker, when its handler fails, dies or is not there."""

from __future__ import annotations

from threading import Event, Thread
from time import monotonic, time
from typing import Any

import msgspec
import pytest
from tests.brokers.behaviour.place import PATIENCE, QUIET, URN, Place

from tallystick import App
from tallystick.core.transport import Delivery
from tallystick.runtime.address import link_to
from tallystick.runtime.handlers import Message

pytestmark = pytest.mark.xdist_group("brokers")


def test_a_retry_counts_and_changes_nothing_else(place: Place) -> None:
    app = place.app()
    attempts: list[int] = []
    payloads: list[Any] = []

    @app.handler(URN)
    def handle(data: Any, message: Message) -> None:
        attempts.append(message.attempts)
        payloads.append((data, message.id, message.trace_id))
        if len(attempts) < 3:
            raise ValueError("again")

    app.publish(URN, {"v": 1.5, "text": "Grüße"})
    counts = app.run(limit=3)
    assert attempts == [0, 1, 2]
    assert counts == {"retried": 2, "handled": 1}
    assert payloads[0] == payloads[1] == payloads[2]


def test_a_crash_before_the_ack_brings_the_message_back(place: Place) -> None:
    app = place.app()
    app.publish(URN, {"n": 1})
    transport = place.crashing.open()
    (first,) = place.take(transport, place.queue, 1)
    transport.close()
    seen: list[Any] = []

    @app.handler(URN)
    def handle(data: Any, message: Message) -> None:
        seen.append((data, message.attempts))

    app.run(limit=1)
    counts = 1 if transport.capabilities.counts else 0
    assert seen == [({"n": 1}, counts)]
    assert first.frame.body


def outlast(place: Place, app: App) -> list[Delivery]:
    """Have a handler take longer than its lease; give what a rival receives in the meantime."""
    begun, done = Event(), Event()
    rival = link_to(place.leased).open()
    place.stack.callback(rival.close)

    @app.handler(URN)
    def handle(_: Any) -> None:
        begun.set()
        assert done.wait(PATIENCE)

    app.publish(URN, {"n": 1})
    thread = Thread(target=app.run, kwargs={"limit": 1})
    thread.start()
    assert begun.wait(PATIENCE)
    taken: list[Delivery] = []
    end = monotonic() + place.lease * 1.3
    while place.lease and not taken and monotonic() < end:
        taken = rival.receive(place.queue, 1, 0.2)
    done.set()
    thread.join(PATIENCE)
    if taken:
        rival.ack(taken)
    return taken


def test_a_handler_may_take_longer_than_its_lease(place: Place) -> None:
    app = place.app(url=place.leased)
    assert outlast(place, app) == []
    assert app.counts() == {"handled": 1}
    assert not place.lease or place.app(url=place.leased).run(idle=QUIET) == {}


def test_what_came_of_a_lost_lease_is_not_settled(place: Place) -> None:
    app = place.app(url=place.leased, max_lease=0)
    taken = outlast(place, app)
    assert len(taken) == (1 if place.lease else 0)
    assert app.counts()["handled"] == (0 if place.lease else 1)
    assert app.counts().total() == 1


@pytest.mark.parametrize(
    ("strategy", "ended"),
    [
        ("fail", {"retried": 2, "dead_lettered": 1}),
        ("delete", {"dropped": 1}),
        ("dead_letter", {"dead_lettered": 1}),
    ],
)
def test_an_unknown_urn_ends_as_the_strategy_says(
    place: Place, strategy: str, ended: dict[str, int]
) -> None:
    app = place.app(on_unknown_urn=strategy)
    app.publish("urn:babel:nobody:knows", {"n": 1})
    assert app.run(limit=sum(ended.values())) == ended
    if "dead_lettered" in ended:
        record = msgspec.json.decode(place.read_dead(1)[0].body)
        assert record["dead_letter"]["reason"] == "unknown_urn"
        assert record["dead_letter"]["attempts"] == sum(ended.values())


def test_a_released_message_waits_for_somebody_who_knows_it(place: Place) -> None:
    app = place.app(on_unknown_urn="release", release_delay=0.1)
    app.publish(URN, {"n": 1})
    assert app.run(limit=1) == {"released": 1}
    other = place.app()
    seen: list[Any] = []
    other.handler(URN)(seen.append)
    other.run(limit=1)
    assert seen == [{"n": 1}]


def test_a_released_message_is_not_handed_out_before_its_time(place: Place) -> None:
    app = place.app(on_unknown_urn="release", release_delay=2.0)
    app.publish(URN, {"n": 1})
    other = place.app()
    came: list[float] = []

    @other.handler(URN)
    def handle(_: Any, message: Message) -> None:
        came.append(time())
        assert not message.attempts or place.open().capabilities.counts

    began = int(time())  # a broker may count in whole seconds
    assert app.run(limit=1) == {"released": 1}
    assert other.run(limit=1) == {"handled": 1}
    assert came[0] >= began + 2


def test_a_dead_letter_goes_back_to_work_without_its_block(place: Place) -> None:
    app = place.app(max_attempts=1)
    seen: list[Any] = []

    @app.handler(URN)
    def handle(data: Any, message: Message) -> None:
        seen.append((data, message.attempts, message.envelope.dead_letter))
        if len(seen) == 1:
            raise ValueError("not now")

    app.publish(URN, {"n": 7})
    assert app.run(limit=1) == {"dead_lettered": 1}
    assert app.redrive().redriven == 1
    assert app.run(limit=1) == {"handled": 1}
    assert seen == [({"n": 7}, 0, None)] * 2

"""What arrives, on every broker: every byte, in order, whole, in time, and all of it."""

from __future__ import annotations

from collections import Counter
from time import time
from typing import Any

import msgspec
import pytest
from tests.brokers.behaviour.place import QUIET, URN, Place, message

from tallystick.core.binding import project
from tallystick.core.envelope import encode
from tallystick.core.errors import Refused
from tallystick.core.frame import Frame
from tallystick.core.slot import TYPES
from tallystick.runtime.handlers import Message

pytestmark = pytest.mark.xdist_group("brokers")


def options(place: Place) -> dict[str, Any]:
    return dict(place.open().capabilities.options)


def test_the_body_arrives_byte_for_byte(place: Place) -> None:
    sent = message()
    place.send_raw(project(place.link.binding, sent, queue=place.queue, **options(place)))
    transport = place.open()
    (delivery,) = place.take(transport, place.queue, 1)
    assert delivery.frame.body == encode(sent)
    transport.ack([delivery])


def test_messages_come_in_the_order_of_sending(place: Place) -> None:
    app = place.app()
    seen: list[int] = []
    app.handler(URN)(lambda data: seen.append(data["n"]))
    app.publish_all([(URN, {"n": n}) for n in range(200)])
    app.run(limit=200)
    ordered = place.open().capabilities.ordered
    assert (seen if ordered else sorted(seen)) == list(range(200))


def test_a_delayed_message_does_not_come_early(place: Place) -> None:
    app = place.app()
    if not place.open().capabilities.delays:
        with pytest.raises(Refused):
            app.publish(URN, {}, delay=1)
        return
    arrived: list[float] = []
    app.handler(URN)(lambda _: arrived.append(time()))
    began = int(time())
    app.publish(URN, {}, delay=2)
    app.run(limit=1)
    assert arrived[0] >= began + 2


def test_headers_ride_beside_the_message_where_the_broker_carries_them(place: Place) -> None:
    app = place.app()
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    seen: list[str | None] = []

    @app.handler(URN)
    def handle(_: Any, message: Message) -> None:
        seen.append(message.headers.get("traceparent"))
        if len(seen) == 1:
            raise ValueError("again")

    app.publish(URN, {}, headers={"traceparent": parent})
    app.run(limit=2)
    carried = place.open().capabilities.headers
    assert seen == ([parent, parent] if carried else [None, None])


def test_a_large_body_arrives_whole(place: Place) -> None:
    app = place.app()
    seen: list[Any] = []
    app.handler(URN)(seen.append)
    text = "0123456789abcdéf" * 12_000
    app.publish(URN, {"text": text})
    app.run(limit=1)
    assert seen == [{"text": text}]


def test_ten_thousand_messages_are_drained_and_nothing_is_left(place: Place) -> None:
    app = place.app(concurrency=4)
    seen: Counter[int] = Counter()
    app.handler(URN)(lambda data: seen.update([data["n"]]))
    app.publish_all([(URN, {"n": n}) for n in range(place.many)])
    assert app.run(limit=place.many)["handled"] == place.many
    assert app.run(idle=QUIET) == {}
    assert seen == Counter(range(place.many))


def test_a_version_that_is_not_known_is_dead_lettered_and_never_handled(place: Place) -> None:
    app = place.app()
    app.handler(URN)(lambda _: pytest.fail("another version was handled"))
    binding = place.link.binding
    frame = project(binding, message(), queue=place.queue, **options(place))
    if binding.gate is not None:
        held = {name: dict(fields) for name, fields in frame.sections.items()}
        gate = binding.gate
        slot = next(s for s in binding.slots if (s.section, s.key) == (gate.section, gate.key))
        held[gate.section][gate.key] = TYPES[slot.type].write(2)
        frame = Frame(frame.body, held)
    else:
        frame = Frame(frame.body.replace(b'"schema_version":1', b'"schema_version":2'))
    place.send_raw(frame)
    assert app.run(limit=1) == {"dead_lettered": 1}
    (dead,) = place.read_dead(1)
    if binding.gate is not None:
        assert dead.body == frame.body
    else:
        assert dead.body.startswith(frame.body[: frame.body.index(b'"attempts"')])


def test_poison_is_dead_lettered_and_never_handled(place: Place) -> None:
    app = place.app()
    app.handler(URN)(lambda _: pytest.fail("poison was handled"))
    place.send_raw(Frame(b'{"job":"urn:x","attempts":1'))
    assert app.run(limit=1) == {"dead_lettered": 1}
    (frame,) = place.read_dead(1)
    record = msgspec.json.decode(frame.body)
    assert record["raw"] == '{"job":"urn:x","attempts":1'
    assert record["dead_letter"]["reason"] == "poison"

"""One behaviour on every broker: these laws run unchanged in memory and on each real transport.

What a broker cannot do is data (`Capabilities`), and the law then says what happens instead.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from threading import Event, Thread
from time import monotonic, time
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from tallystick import App
from tallystick.core.binding import project
from tallystick.core.envelope import encode, make
from tallystick.core.errors import Refused
from tallystick.core.frame import Frame
from tallystick.core.slot import TYPES
from tallystick.core.transport import Delivery, Transport
from tallystick.runtime.address import Link, link_to
from tallystick.runtime.handlers import Message
from tallystick.runtime.retry import Backoff

pytestmark = pytest.mark.xdist_group("brokers")

URN = "urn:babel:orders:created"
PATIENCE = 30.0
QUIET = 1.5

KAFKA = "tiers=100,200,2000&group_protocol=consumer&group={0}&reinject_group={0}-back"

BROKERS: dict[str, tuple[str, str, str]] = {
    "memory": ("", "", ""),
    "redis": ("redis", "", "retry_after=1"),
    "redis-laravel": ("redis", "laravel=1", "laravel=1&retry_after=1"),
    "rabbitmq": ("rabbitmq", "", ""),
    "kafka": ("kafka", KAFKA, KAFKA),
    "sqs": ("sqs", "", "visibility=1"),
    "sqs-fifo": ("sqs", "fifo=1", "fifo=1&visibility=1"),
    "pulsar": ("pulsar", "", ""),
    "artemis": ("artemis", "", ""),
    "servicebus": ("servicebus", "", ""),
    "servicebus-sessions": ("servicebus", "sessions=1", "sessions=1"),
    "rabbitmq-quorum": ("rabbitmq", "queue_type=quorum", "queue_type=quorum"),
}
"""Name -> the server to start, the options of its URL, and those for a consumer that will crash."""


LEASES: dict[str, tuple[str, float]] = {
    "redis": ("retry_after=3", 3.0),
    "redis-laravel": ("laravel=1&retry_after=3", 3.0),
    "sqs": ("visibility=3", 3.0),
    "sqs-fifo": ("fifo=1&visibility=3", 3.0),
    "servicebus": ("", 10.0),
    "servicebus-sessions": ("sessions=1", 10.0),
}
"""Where a delivery comes back by a deadline: the options for a short one, and its seconds."""

MANY = {"sqs-fifo": 500, "servicebus-sessions": 1000}
"""How many a drain takes where 10,000 take minutes: one group or session, one after the other."""


@dataclass
class Place:
    """One broker and one queue of a test's own."""

    link: Link
    url: str
    crashing: Link
    queue: str
    many: int
    leased: str
    lease: float
    stack: ExitStack

    def app(self, **settings: Any) -> App:
        url = settings.pop("url", self.url)
        app = App(url, **{"queue": self.queue, "backoff": Backoff(), **settings})
        self.stack.callback(app.close)
        return app

    def open(self) -> Transport:
        transport = self.link.open()
        self.stack.callback(transport.close)
        return transport

    def take(self, transport: Transport, queue: str, count: int) -> list[Delivery]:
        """Receive so many, or fail when they do not come."""
        taken: list[Delivery] = []
        end = monotonic() + PATIENCE
        while len(taken) < count:
            assert monotonic() < end, f"{len(taken)} of {count} came from {queue}"
            taken += transport.receive(queue, count - len(taken), 1.0)
        return taken

    def read_dead(self, count: int) -> list[Frame]:
        transport = self.open()
        queue = self.app()._graveyard(self.queue)
        transport.ensure([queue])
        taken = self.take(transport, queue, count)
        transport.ack(taken)
        return [one.frame for one in taken]

    def send_raw(self, frame: Frame) -> None:
        transport = self.open()
        transport.ensure([self.queue])
        transport.send(self.queue, [frame])


@pytest.fixture(params=BROKERS)
def place(request: pytest.FixtureRequest, broker_url: Callable[[str], str]) -> Iterator[Place]:
    server, options, crash = BROKERS[request.param]
    base = broker_url(server) if server else f"memory://{uuid4().hex}"
    suffix = ".fifo" if request.param.endswith("fifo") else ""
    queue = f"tally-{uuid4().hex[:12]}{suffix}"
    many = MANY.get(request.param, 10_000)
    short, lease = LEASES.get(request.param, (options, 0.0))
    url, crashing, leased = (_with(base, one.format(queue)) for one in (options, crash, short))
    with ExitStack() as stack:
        yield Place(link_to(url), url, link_to(crashing), queue, many, leased, lease, stack)


def _with(url: str, options: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{options}" if options else url


def message(n: int = 0) -> Any:
    return make(URN, {"n": n}, now_ms=int(time() * 1000), new_id=lambda: str(uuid4()))


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
    assert not place.lease or place.app().run(idle=QUIET) == {}


def test_what_came_of_a_lost_lease_is_not_settled(place: Place) -> None:
    app = place.app(url=place.leased, max_lease=0)
    taken = outlast(place, app)
    assert len(taken) == (1 if place.lease else 0)
    assert app.counts()["handled"] == (0 if place.lease else 1)
    assert app.counts().total() == 1


def test_poison_is_dead_lettered_and_never_handled(place: Place) -> None:
    app = place.app()
    app.handler(URN)(lambda _: pytest.fail("poison was handled"))
    place.send_raw(Frame(b'{"job":"urn:x","attempts":1'))
    assert app.run(limit=1) == {"dead_lettered": 1}
    (frame,) = place.read_dead(1)
    record = msgspec.json.decode(frame.body)
    assert record["raw"] == '{"job":"urn:x","attempts":1'
    assert record["dead_letter"]["reason"] == "poison"


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


def run_until(apps: list[App], done: Callable[[], bool]) -> None:
    """Run apps side by side until something is so; what is wrong then is said by the caller."""
    threads = [Thread(target=app.run) for app in apps]
    for thread in threads:
        thread.start()
    end = monotonic() + 2 * PATIENCE
    while not done() and monotonic() < end:
        threads[0].join(0.05)
    for app in apps:
        app.stop()
    for thread in threads:
        thread.join()


def test_two_competing_consumers_share_the_work(place: Place) -> None:
    seen: Counter[int] = Counter()
    apps = [place.app(prefetch=10) for _ in range(2)]
    for app in apps:
        app.handler(URN)(lambda data: seen.update([data["n"]]))
    some = place.many // 10
    apps[0].publish_all([(URN, {"n": n}) for n in range(some)])
    run_until(apps, lambda: len(seen) == some)
    assert seen == Counter(range(some))


def test_messages_of_one_key_are_handled_one_by_one_and_in_order(place: Place) -> None:
    apps = [place.app(concurrency=4, prefetch=10) for _ in range(2)]
    seen: defaultdict[str, list[int]] = defaultdict(list)
    at_work: Counter[str] = Counter()
    overlapping: set[str] = set()

    def handle(data: Any) -> None:
        at_work[data["key"]] += 1
        if at_work[data["key"]] > 1:
            overlapping.add(data["key"])
        seen[data["key"]].append(data["n"])
        at_work[data["key"]] -= 1

    for app in apps:
        app.handler(URN)(handle)
    for n in range(20):
        for key in ("left", "middle", "right"):
            apps[0].publish(URN, {"key": key, "n": n}, key=key)
    run_until(apps, lambda: sum(len(set(numbers)) for numbers in list(seen.values())) == 60)
    keyed = place.open().capabilities.keyed
    assert set(seen) == {"left", "middle", "right"}
    for numbers in seen.values():
        first = list(dict.fromkeys(numbers))
        assert (first if keyed else sorted(first)) == list(range(20))
    assert not keyed or not overlapping


def test_nothing_of_its_key_overtakes_a_message_that_is_retried(place: Place) -> None:
    app = place.app(concurrency=4)
    runs: list[tuple[int, int]] = []

    @app.handler(URN)
    def handle(data: Any, message: Message) -> None:
        runs.append((data["n"], message.attempts))
        if data["n"] == 1 and message.attempts < 2:
            raise ValueError("again")

    for n in range(5):
        app.publish(URN, {"n": n}, key="left")
    assert app.run(limit=7) == {"handled": 5, "retried": 2}
    keyed = place.open().capabilities.keyed
    wanted = [(0, 0), (1, 0), (1, 1), (1, 2), (2, 0), (3, 0), (4, 0)]
    assert (runs if keyed else sorted(runs)) == wanted


def test_a_key_whose_head_is_to_be_retried_is_handed_back_in_order(place: Place) -> None:
    app = place.app(concurrency=4, backoff=Backoff(600, 1, 600))
    runs: list[int] = []

    @app.handler(URN)
    def handle(data: Any) -> None:
        runs.append(data["n"])
        if len(runs) == 2:
            app.stop()
            raise ValueError("again")

    for n in range(5):
        app.publish(URN, {"n": n}, key="left")
    keyed = place.open().capabilities.keyed
    if keyed:
        app.run()
        app.run(limit=4)
        assert list(dict.fromkeys(runs)) == list(range(5))
        assert runs[-4:] == [1, 2, 3, 4]


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

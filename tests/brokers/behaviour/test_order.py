"""Consumers side by side and messages of one key, on every broker: shared, and never overtaken."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from threading import Thread
from time import monotonic
from typing import Any

import pytest
from tests.brokers.behaviour.place import PATIENCE, URN, Place

from tallystick import App
from tallystick.core.envelope import decode
from tallystick.runtime.handlers import Message
from tallystick.runtime.retry import Backoff

pytestmark = pytest.mark.xdist_group("brokers")


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


def test_what_comes_between_two_calls_is_not_overtaken(place: Place) -> None:
    """Each batch is acknowledged while the next one comes, for which more was asked than came."""
    app, transport = place.app(), place.open()
    seen: list[int] = []

    def publish(start: int) -> None:
        for n in range(start, start + 8):
            app.publish(URN, {"n": n}, key="left")

    for start in range(0, 90, 9):
        app.publish(URN, {"n": start}, key="left")
        thread = Thread(target=publish, args=(start + 1,))
        end = monotonic() + PATIENCE
        while len(set(seen)) < start + 9 and monotonic() < end:
            taken = transport.receive(place.queue, 30, 0.2)
            seen += [(decode(one.frame.body).data or {})["n"] for one in taken]
            if taken and thread.ident is None:
                thread.start()
            if taken:
                transport.ack(taken)
        thread.join()
    assert (seen if transport.capabilities.keyed else sorted(seen)) == list(range(90))


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

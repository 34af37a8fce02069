"""Two relays on SQLite: a slow one keeps its lease, and one that lost it writes nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.outboxes import add, fake_link, ids

from tallystick.core.envelope import decode
from tallystick.core.errors import Refused, Unavailable
from tallystick.core.frame import Frame
from tallystick.runtime.outbox import Outbox
from tallystick.runtime.outbox.relay import Relay, Relayed, Terms

LEASE = 30.0


class Pair:
    """Two relays of one file, and a clock that both go by."""

    def __init__(self, store: str) -> None:
        self.now = 0.0
        self.store = store
        self.outbox, self.other = (Outbox(store, clock=lambda: self.now) for _ in "ab")
        self.outbox.create()

    def relays(
        self,
        send: Callable[[str, Any], None],
        send_too: Callable[[str, Any], None],
        check_queues: Callable[[list[str]], None] = lambda _queues: None,
    ) -> tuple[Relay, Relay]:
        links = fake_link(send, check_queues=check_queues), fake_link(send_too)
        terms = Terms(lease=LEASE)
        return Relay(self.outbox, links[0], terms), Relay(self.other, links[1], terms)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(f"sqlite:///{tmp_path}/orders.db")
    with closing(pair.outbox), closing(pair.other):
        yield pair


def keep_in(taken: list[bytes]) -> Callable[[str, list[Frame]], None]:
    return lambda _queue, frames: taken.extend(one.body for one in frames)


def test_rows_that_go_one_by_one_may_together_take_longer_than_the_lease(pair: Pair) -> None:
    taken: list[bytes] = []

    def send(queue: str, frames: list[Frame]) -> None:
        pair.now += LEASE * 0.8
        assert second.step() == Relayed(), "the queue is in hand"
        if len(frames) > 1:
            raise Unavailable("a batch is too much", code="broker")
        keep_in(taken)(queue, frames)

    first, second = pair.relays(send, keep_in(taken))
    added = add(pair.outbox, pair.store, 4)
    assert first.step() == Relayed(4, 0)
    assert ids([decode(body) for body in taken]) == added


def test_a_relay_that_lost_its_queue_marks_nothing(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_queue: str, _frames: Any) -> None:
        raise Refused("too large", code="too_large")

    def send(_queue: str, _frames: Any) -> None:
        pair.now += LEASE + 1
        assert second.step() == Relayed(0, 1)

    first, second = pair.relays(send, refuse)
    add(pair.outbox, pair.store, 1)
    assert first.step() == Relayed()
    found = pair.outbox.status()
    assert (found.sent, found.faulty) == (0, 1), "what the second relay wrote stands"
    assert "another relay took over" in caplog.text


def test_a_relay_that_lost_its_queue_before_it_sent_sends_nothing(pair: Pair) -> None:
    taken: list[bytes] = []

    def be_slow(_queues: list[str]) -> None:
        pair.now += LEASE + 1
        assert second.step() == Relayed(2, 0)

    first, second = pair.relays(keep_in(taken), keep_in(taken), be_slow)
    added = add(pair.outbox, pair.store, 2)
    assert first.step() == Relayed()
    assert ids([decode(body) for body in taken]) == added

"""What the emulator was given outlives it: messages, counts, states, numbers, subscriptions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from proton import Message as ProtonMessage

from tallystick.brokers.servicebus.emulator.entity import Entity, Rules
from tallystick.brokers.servicebus.emulator.sections import Message, read_message, write_message
from tallystick.brokers.servicebus.emulator.space import Space
from tallystick.brokers.servicebus.emulator.store import Store

Open = Callable[[], Space]


@pytest.fixture
def reopen(tmp_path: Path) -> Open:
    """Give the space as a new process would find it: what was not flushed is gone."""

    def begin() -> Space:
        return Space(Rules(10, 3), lambda: 1000.0, Store(tmp_path / "messages.db"))

    return begin


def message(text: str, session: str | None = None) -> Message:
    return read_message(bytes(ProtonMessage(text, group_id=session, priority=7).encode()))


def bodies(entity: Entity) -> list[object]:
    found: list[object] = []
    for held in entity.messages.values():
        one = ProtonMessage()
        one.decode(write_message(held.message, held.count, {}))
        found.append(one.body)
    return found


def test_what_was_flushed_is_there_and_what_was_not_is_gone(reopen: Open) -> None:
    space = reopen()
    space.send("q", [message("one", "s"), message("two")])
    space.flush()
    space.send("q", [message("three")])
    queue = reopen().find("Q")
    assert bodies(queue) == ["one", "two"]
    first = queue.take("s")
    assert first is not None
    assert (first.message.priority, first.message.session, first.sequence) == (7, "s", 1)


def test_what_was_completed_stays_gone_and_its_number_is_not_given_again(reopen: Open) -> None:
    space = reopen()
    queue = space.find("q")
    queue.add(message("one"))
    held = queue.take(None)
    assert held is not None
    token = queue.lock(held)
    space.flush()
    queue.complete(token)
    space.flush()
    again = reopen().find("q")
    assert again.messages == {}
    assert again.add(message("two")).sequence == 2


def test_a_locked_message_is_active_again_with_its_count(reopen: Open) -> None:
    space = reopen()
    queue = space.find("q")
    queue.add(message("one"))
    for _ in range(2):
        held = queue.take(None)
        assert held is not None
        token = queue.lock(held)
        if held.count == 0:
            queue.abandon(token)
    space.flush()
    held = reopen().find("q").take(None)
    assert held is not None
    assert held.count == 1


def test_dead_letters_deferred_and_scheduled_messages_keep_their_place(reopen: Open) -> None:
    space = reopen()
    queue = space.find("q")
    for text in ("dead", "deferred"):
        queue.add(message(text))
        held = queue.take(None)
        assert held is not None
        token = queue.lock(held)
        if text == "dead":
            queue.dead_letter(token, {"DeadLetterReason": "bad"})
        else:
            queue.defer(token)
    queue.schedule(message("later"), 2000.0)
    space.flush()
    again = reopen()
    assert bodies(again.find("q")) == ["deferred", "later"]
    assert bodies(again.find("q/$DeadLetterQueue")) == ["dead"]
    assert again.find("q").take(None) is None
    assert [one.sequence for one in again.find("q").take_deferred([2])] == [2]
    again.find("q").cancel([3])
    again.flush()
    assert bodies(reopen().find("q")) == ["deferred"]


def test_a_subscription_is_known_again_before_anybody_attaches(reopen: Open) -> None:
    space = reopen()
    space.find("topic/Subscriptions/all")
    space.flush()
    again = reopen()
    again.send("topic", [message("news")])
    assert bodies(again.find("topic/Subscriptions/all")) == ["news"]

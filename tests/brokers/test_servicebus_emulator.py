"""The emulator's own rules, without a connection: locks, counts, order, sessions, sections."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from proton import Link, int32, symbol, timestamp
from proton import Message as ProtonMessage

from tallystick.brokers.servicebus.emulator.entity import Entity, Held, Refusal, Rules
from tallystick.brokers.servicebus.emulator.outlet import Outlet
from tallystick.brokers.servicebus.emulator.sections import (
    Message,
    add_properties,
    read_message,
    read_transfer,
    write_message,
)
from tallystick.brokers.servicebus.emulator.space import Space, read_path

BARE = bytes(ProtonMessage(b"a", inferred=True).encode())


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def space(clock: Clock) -> Space:
    return Space(Rules(lock_seconds=10, max_deliveries=3), clock)


@pytest.fixture
def queue(space: Space) -> Entity:
    return space.find("q")


def message(text: str = "a", session: str | None = None) -> Message:
    return read_message(bytes(ProtonMessage(text, group_id=session).encode()))


def decoded(data: bytes) -> Any:
    found = ProtonMessage()
    found.decode(data)
    return found


def body_of(held: Held) -> object:
    return decoded(write_message(held.message, held.count, {})).body


def take(queue: Entity) -> Held:
    held = queue.take(None)
    assert held is not None
    queue.lock(held)
    return held


def test_a_lock_that_expires_brings_the_message_back_counted(queue: Entity, clock: Clock) -> None:
    queue.add(message())
    held = queue.take(None)
    assert held is not None
    token = queue.lock(held)
    clock.now += 9.9
    assert not queue.tick()
    assert queue.take(None) is None
    clock.now += 0.1
    with pytest.raises(Refusal, match="expired"):
        queue.complete(token)
    assert queue.tick()
    again = queue.take(None)
    assert again is held
    assert again.count == 1
    with pytest.raises(Refusal):
        queue.complete(token)


def test_a_renewed_lock_lasts_its_whole_time_again(queue: Entity, clock: Clock) -> None:
    queue.add(message())
    held = queue.take(None)
    assert held is not None
    token = queue.lock(held)
    clock.now += 9
    assert queue.renew(token) == clock.now + 10
    clock.now += 9
    assert not queue.tick()
    queue.complete(token)
    assert queue.messages == {}


def test_what_goes_back_keeps_its_place(queue: Entity) -> None:
    for text in "abc":
        queue.add(message(text))
    first, second = take(queue), take(queue)
    assert second.token is not None
    assert first.token is not None
    queue.abandon(second.token)
    queue.release(first.token)
    again = [take(queue) for _ in range(3)]
    assert [(body_of(one), one.count) for one in again] == [("a", 0), ("b", 1), ("c", 0)]


@pytest.mark.parametrize("way", ["abandon", "expire"])
def test_the_maximum_of_deliveries_ends_in_the_dead_letter_queue(
    way: str, space: Space, queue: Entity, clock: Clock
) -> None:
    queue.add(message())
    for _ in range(3):
        held = take(queue)
        assert held.token is not None
        if way == "abandon":
            queue.abandon(held.token)
        else:
            clock.now += 10
            queue.tick()
    assert queue.messages == {}
    (dead,) = space.find("Q/$deadletterqueue").messages.values()
    assert (dead.source, dead.count) == ("q", 0)
    assert decoded(write_message(dead.message, 0, {})).properties == {
        "DeadLetterReason": "MaxDeliveryCountExceeded",
        "DeadLetterErrorDescription": "Message could not be consumed after 3 delivery attempts.",
    }


def test_a_dead_letter_queue_has_no_maximum_and_no_dead_letters(space: Space) -> None:
    graves = space.find("q/$DeadLetterQueue")
    graves.add(message())
    for _ in range(9):
        held = take(graves)
        assert held.token is not None
        graves.abandon(held.token)
    held = take(graves)
    assert held.token is not None
    with pytest.raises(Refusal):
        graves.dead_letter(held.token, {})


def test_a_deferred_message_stays_deferred_when_its_lock_ends(queue: Entity, clock: Clock) -> None:
    number = queue.add(message()).sequence
    held = take(queue)
    assert held.token is not None
    queue.defer(held.token)
    (held,) = queue.take_deferred([number])
    queue.lock(held)
    with pytest.raises(Refusal):
        queue.take_deferred([number])
    clock.now += 10
    queue.tick()
    assert queue.take(None) is None
    assert queue.take_deferred([number])[0].count == 1


def test_a_scheduled_message_is_appended_when_it_is_due(queue: Entity, clock: Clock) -> None:
    number = queue.schedule(message("late"), clock.now + 5)
    gone = queue.schedule(message("never"), clock.now + 5)
    queue.add(message("first"))
    with pytest.raises(Refusal):
        queue.cancel([gone, 99])
    queue.cancel([gone])
    clock.now += 5
    queue.tick()
    first, late = take(queue), take(queue)
    assert [body_of(first), body_of(late)] == ["first", "late"]
    assert late.sequence > first.sequence > number


def test_a_session_is_freed_uncounted_and_expires_counted(space: Space, clock: Clock) -> None:
    queue = space.find("q")
    sessions = space.sessions_of(queue)
    queue.add(message("a", "A"))
    for expected, freed in ((0, True), (0, False), (1, True)):
        assert sessions.accept(None, "holder") == "A"
        assert queue.take(None, sessions.held) is None
        held = queue.take("A")
        assert held is not None
        queue.lock(held, sessions.until("A"))
        assert held.count == expected
        if freed:
            sessions.free("A", "holder")
        else:
            clock.now += 10
            assert sessions.expire() == ["holder"]
            queue.tick()


def test_a_link_that_lost_its_session_frees_nobody_elses(space: Space, clock: Clock) -> None:
    queue = space.find("q")
    sessions = space.sessions_of(queue)
    queue.add(message("a", "A"))
    assert sessions.accept("A", "first") == "A"
    clock.now += 10
    assert sessions.expire() == ["first"]
    assert sessions.accept("A", "second") == "A"
    sessions.free("A", "first")
    assert sessions.held == ("A",)


@pytest.mark.parametrize("taken_over", [False, True])
def test_a_link_that_lost_its_session_gets_nothing_more(
    space: Space, clock: Clock, *, taken_over: bool
) -> None:
    queue = space.find("q")
    sessions = space.sessions_of(queue)
    queue.add(message("a", "A"))
    link = SimpleNamespace(credit=5, remote_snd_settle_mode=Link.SND_UNSETTLED)
    assert sessions.accept("A", link) == "A"
    clock.now += 10
    assert sessions.expire() == [link]
    if taken_over:
        assert sessions.accept("A", "second") == "A"
    assert not Outlet(link, queue, sessions, "A").hand_out()
    assert queue.take("A") is not None


def test_a_topic_is_its_subscriptions(space: Space) -> None:
    one, two = space.find("t/Subscriptions/one"), space.find("T/subscriptions/two")
    space.find("t/Subscriptions/one/$DeadLetterQueue")
    assert space.send("T", [message()]) == [one, two]


@pytest.mark.parametrize("address", ["amqps://127.0.0.1:1/a/b", "a/b", "/a/b/"])
def test_an_address_is_a_path(address: str) -> None:
    assert read_path(address) == "a/b"


@given(st.binary(), st.dictionaries(st.text(), st.text() | st.booleans() | st.integers(0, 9)))
def test_the_bare_message_stays_byte_for_byte(body: bytes, properties: dict[str, object]) -> None:
    sent = ProtonMessage(body, inferred=True, properties=properties, id=uuid4(), subject="é")
    held = read_message(bytes(sent.encode()))
    again = read_message(write_message(held, 7, {"x": 1}))
    assert again.bare == held.bare
    found = decoded(write_message(add_properties(held, {"why": "so"}), 7, {}))
    assert (found.body, found.id, found.subject) == (body, sent.id, "é")
    assert found.properties == {**properties, "why": "so"}
    assert found.delivery_count == 7


@given(
    st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1), st.uuids(), st.text("ab")
)
def test_our_annotations_are_written_as_proton_reads_them(
    wide: int, narrow: int, token: UUID, text: str
) -> None:
    held = {
        symbol("wide"): wide, symbol("narrow"): int32(narrow), symbol("token"): token,
        symbol("when"): timestamp(abs(narrow)), symbol("name"): symbol(text),
    }  # fmt: skip
    found = decoded(write_message(Message(BARE), 1, held)).annotations
    assert found == held
    assert [type(found[key]) for key in held] == [type(one) for one in held.values()]
    mixed = {**held, symbol("text"): text}
    assert decoded(write_message(Message(BARE), 1, mixed)).annotations == mixed


def test_a_message_without_an_id_is_given_one_and_keeps_its_other_fields() -> None:
    first, second = (
        decoded(read_message(bytes(ProtonMessage("a", **fields).encode())).bare)
        for fields in ({}, {"subject": "s", "group_id": "g", "content_type": "t"})
    )
    assert first.id
    assert second.id not in (None, "", first.id)
    assert (second.subject, second.group_id, second.content_type) == ("s", "g", "t")
    assert (first.body, second.body) == ("a", "a")


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_a_batch_is_taken_apart(texts: list[str]) -> None:
    inner = [bytes(ProtonMessage(one, id="an-id").encode()) for one in texts]
    data = b"".join(b"\x00\x53\x75\xb0" + len(one).to_bytes(4) + one for one in inner)
    assert [one.bare for one in read_transfer(data)] == [read_message(one).bare for one in inner]


@given(st.binary())
def test_bytes_that_are_no_message_are_refused_and_nothing_else_happens(data: bytes) -> None:
    try:
        found = read_transfer(data)
    except ValueError:
        return
    assert len(found) >= 1

"""A redrive loses nothing, whatever happens in between, and says what it moved."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence
from threading import Event
from uuid import uuid4

import msgspec
import pytest

from tallystick.brokers import find_binding
from tallystick.brokers.memory.transport import MemoryTransport, Space
from tallystick.cli import main
from tallystick.core.envelope import DeadLetter, decode, encode, make
from tallystick.core.errors import Refused, Unavailable
from tallystick.core.frame import Frame
from tallystick.core.splice import dead_letter, redrive
from tallystick.core.transport import Delivery
from tallystick.runtime.address import link_to
from tallystick.runtime.kept import Kept
from tallystick.runtime.redrive import Redriven
from tallystick.runtime.redrive import redrive as send_back

URN = "urn:babel:orders:created"
MEMORY = find_binding("memory")


def letter(n: int, queue: str = "orders") -> Frame:
    made = make(URN, {"n": n}, now_ms=1, new_id=lambda: str(uuid4()), queue=queue)
    record = DeadLetter(reason="failed", original_queue=queue, attempts=2)
    return Frame(dead_letter(encode(made), record))


class Dying(MemoryTransport):
    """Sends, and dies before the letter is out of the dead-letter queue."""

    lives = 2

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        if not self.lives:
            self.send(queue, [frame])
            raise Unavailable("away", code="broker")
        self.lives -= 1
        super().replace(delivery, queue, frame)


def take(space: Space, queue: str) -> list[bytes]:
    with space.changed:
        return [frame.body for frame in space.take(queue, 100)]


def test_a_crash_in_between_doubles_a_letter_and_never_loses_one() -> None:
    space = Space()
    letters = [letter(n) for n in range(5)]
    dying = Dying(space)
    dying.send("orders.dlq", letters)
    with pytest.raises(Unavailable):
        send_back(MEMORY, dying, "orders.dlq", timeout=0)
    dying.close()
    assert send_back(MEMORY, MemoryTransport(space), "orders.dlq", timeout=0) == Redriven(3, 0)
    expected = [redrive(frame.body) for frame in letters]
    assert take(space, "orders") == [*expected[:3], *expected[2:]]
    assert take(space, "orders.dlq") == []


class Log(MemoryTransport):
    """A broker that begins again from what is released, as Kafka does."""

    capabilities = dataclasses.replace(MemoryTransport.capabilities, log=True)

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:  # noqa: ARG002
        raise AssertionError("handing back would bring the others again")


@pytest.mark.parametrize("kind", [MemoryTransport, Log])
def test_what_is_no_dead_letter_stays_in_order(kind: type[MemoryTransport]) -> None:
    space, strange = Space(), [Frame(b"1"), Frame(b"2")]
    transport = kind(space)
    transport.send("orders.dlq", [strange[0], letter(0), strange[1], letter(1)])
    done = send_back(MEMORY, transport, "orders.dlq", timeout=0)
    assert (done, done.queues) == (Redriven(2, 2), {"orders": 2})
    assert take(space, "orders.dlq") == [b"1", b"2"]


class Picky(MemoryTransport):
    """Cannot carry the letter of one number."""

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        if b'"n":1}' in frame.body:
            raise Refused("too large", code="too_large")
        super().replace(delivery, queue, frame)


def test_a_letter_that_the_broker_cannot_carry_stays_and_stops_no_other() -> None:
    space, letters = Space(), [letter(n) for n in range(3)]
    transport = Picky(space)
    transport.send("orders.dlq", letters)
    assert send_back(MEMORY, transport, "orders.dlq", timeout=0) == Redriven(2, 1)
    assert take(space, "orders.dlq") == [letters[1].body]


class Recording(MemoryTransport):
    """Keeps what is sent in place of a delivery."""

    sent: list[Frame]

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        self.sent.append(frame)
        super().replace(delivery, queue, frame)


def test_letters_without_an_id_go_back_to_an_ordered_queue_each_as_a_message_of_its_own() -> None:
    transport = Recording(Space())
    transport.sent = []
    body = letter(0, "orders.fifo").body
    nameless = Frame(re.sub(rb'"id":"[^"]*",', b"", body))
    transport.send("orders.dlq", [nameless, nameless])
    done = send_back(find_binding("sqs"), transport, "orders.dlq", timeout=0)
    assert (done, done.queues) == (Redriven(2, 0), {"orders.fifo": 2})
    names = [one.get("parameters", "MessageDeduplicationId") for one in transport.sent]
    assert len(set(names)) == 2, "by its bytes the second would be dropped as a copy"


class Denied(MemoryTransport):
    """Has no queue `nowhere`, and may break the connection over it, as Service Bus does."""

    breaks = False
    asked = 0

    def ensure(self, queues: Sequence[str]) -> None:
        if "nowhere" in queues:
            self.asked += 1
            if self.breaks:
                self.close()
            raise Unavailable("no such queue", code="broker")


@pytest.mark.parametrize("batch", [2, 100])
@pytest.mark.parametrize("breaks", [False, True])
def test_a_letter_whose_own_queue_cannot_be_had_stops_no_other(
    breaks: bool, batch: int, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallystick.runtime.redrive._BATCH", batch)
    space = Space()
    transport = Denied(space)
    transport.breaks = breaks
    stuck = [Frame(b"1"), Frame(b"2"), letter(0, "nowhere"), letter(1, "nowhere")]
    transport.send("orders.dlq", [*stuck[:2], letter(2), *stuck[2:], letter(3)])
    assert send_back(MEMORY, transport, "orders.dlq", timeout=0) == Redriven(2, 4)
    assert transport.asked == 1
    assert "queue nowhere stay: no such queue" in caplog.text
    assert sorted(take(space, "orders.dlq")) == sorted(one.body for one in stuck)


def test_a_queue_that_was_asked_for_and_cannot_be_had_is_said() -> None:
    transport = Denied(Space())
    transport.send("orders.dlq", [letter(0)])
    with pytest.raises(Unavailable):
        send_back(MEMORY, transport, "orders.dlq", to="nowhere", timeout=0)


@pytest.mark.parametrize("kind", [MemoryTransport, Log])
def test_what_is_held_is_handed_back_however_it_ends(kind: type[MemoryTransport]) -> None:
    space, frames = Space(), [Frame(b"1"), letter(0), letter(1)]
    transport = kind(space)
    transport.send("orders.dlq", frames)

    def interrupt(_count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        send_back(MEMORY, transport, "orders.dlq", timeout=0, moved=interrupt)
    handed_back = [b"1"] if kind is Log else [b"1", frames[2].body]
    assert take(space, "orders.dlq") == handed_back, "on a log the rest is simply not committed"


def test_a_failure_to_hand_back_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    class Away(Dying):
        lives = 0

        def release(self, delivery: Delivery, delay: float = 0.0) -> None:  # noqa: ARG002
            raise Unavailable("still away", code="broker")

    transport = Away(Space())
    transport.send("orders.dlq", [Frame(b"1"), letter(0)])
    with pytest.raises(Unavailable, match=r"^away"):
        send_back(MEMORY, transport, "orders.dlq", timeout=0)
    assert "still away" in caplog.text


def test_a_redrive_ends_when_it_can_hold_no_more_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tallystick.runtime.kept._MOST", 3)
    url = f"memory://{uuid4().hex}"
    transport = link_to(url).open()
    strange = [Frame(b"%d" % n) for n in range(4)]
    transport.send("orders.dlq", [letter(0), *strange, letter(1)])
    assert main(["redrive", url, "orders.dlq", "--wait", "0", "--json"]) == 1
    told = {"redriven": 1, "kept": 3, "queues": {"orders": 1}, "full": True}
    assert json.loads(capsys.readouterr().out) == told
    left = transport.receive("orders.dlq", 10, 0)
    assert [one.frame.body for one in left][:4] == [b"0", b"1", b"2", b"3"]
    transport.ack(left)


class Hasty(MemoryTransport):
    """Hands out again, at the end, whatever was not settled before the next look."""

    capabilities = dataclasses.replace(MemoryTransport.capabilities, returns="deadline")

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        for late in list(self._taken.values()):
            self.replace(late, queue, late.frame)
        return [
            msgspec.structs.replace(one, lease=0.0)
            for one in super().receive(queue, limit, timeout)
        ]


def test_letters_that_come_round_are_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallystick.runtime.redrive._BATCH", 3)
    transport = Hasty(Space())
    strange = [Frame(b"1"), Frame(b"2"), Frame(b"3")]
    transport.send("orders.dlq", [*strange[:2], letter(0), strange[2]])
    assert send_back(MEMORY, transport, "orders.dlq", timeout=0) == Redriven(1, 3)


def test_a_second_letter_of_the_same_bytes_is_another_letter() -> None:
    kept = Kept()
    first, copy, again = (Delivery(Frame(b"1"), "dlq", n, lease=30.0) for n in range(3))
    assert kept.add(first, 0.0, 1.0)
    assert kept.add(copy, 0.0, 29.0)
    assert not kept.add(again, 30.0, 30.0), "the first one's time is over"
    assert kept.all() == [copy, again]


def test_what_is_held_is_bounded_in_bytes_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallystick.runtime.kept._MOST_BYTES", 10)
    kept = Kept()
    for n in range(2):
        assert kept.room
        kept.add(Delivery(Frame(b"%d" % n * 5), "dlq"), 0.0, 0.0)
    assert not kept.room


def test_a_stop_leaves_the_rest_where_it_is() -> None:
    space, stopping = Space(), Event()
    transport = MemoryTransport(space)
    transport.send("orders.dlq", [letter(n) for n in range(150)])
    counts: list[int] = []

    def moved(count: int) -> None:
        counts.append(count)
        stopping.set()

    done = send_back(MEMORY, transport, "orders.dlq", timeout=0, stopping=stopping, moved=moved)
    assert done.redriven == len(counts) == 100
    assert len(take(space, "orders.dlq")) == 50


def test_the_command_sends_to_another_queue(capsys: pytest.CaptureFixture[str]) -> None:
    url = f"memory://{uuid4().hex}"
    transport = link_to(url).open()
    transport.send("orders.dlq", [letter(1), Frame(b"x")])
    assert main(["redrive", url, "orders.dlq", "--to", "again", "--wait", "0"]) == 0
    assert capsys.readouterr().out == "redriven 1, kept 1\n         1  again\n"
    (back,) = transport.receive("again", 5, 0)
    assert decode(back.frame.body).dead_letter is None
    transport.ack([back])


def test_a_broker_by_name_has_to_be_running(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert main(["redrive", "redis", "orders.dlq"]) == 2
    assert "not running on this machine" in capsys.readouterr().err

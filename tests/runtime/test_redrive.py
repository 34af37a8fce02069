"""A redrive loses nothing, whatever happens in between, and says what it moved."""

from __future__ import annotations

import dataclasses
from threading import Event
from uuid import uuid4

import pytest

from tallystick.brokers import find_binding
from tallystick.brokers.memory.transport import MemoryTransport, Space
from tallystick.cli import main
from tallystick.core.envelope import DeadLetter, decode, encode, make
from tallystick.core.errors import Unavailable
from tallystick.core.frame import Frame
from tallystick.core.splice import dead_letter, redrive
from tallystick.core.transport import Delivery
from tallystick.runtime.address import link_to
from tallystick.runtime.redrive import Redriven
from tallystick.runtime.redrive import redrive as send_back

URN = "urn:babel:orders:created"
MEMORY = find_binding("memory")


def letter(n: int) -> Frame:
    made = make(URN, {"n": n}, now_ms=1, new_id=lambda: str(uuid4()), queue="orders")
    record = DeadLetter(reason="failed", original_queue="orders", attempts=2)
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
    assert "not running here" in capsys.readouterr().err

"""Captured frames are sent again byte for byte, and a stop in between can be gone on from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any
from uuid import uuid4

import pytest

from tallystick import App
from tallystick.brokers import find_binding
from tallystick.brokers.memory.transport import MemoryTransport, Space
from tallystick.cli import main
from tallystick.core.binding import project
from tallystick.core.capture import Capture
from tallystick.core.envelope import Envelope, decode, encode, make
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.frame import Frame
from tallystick.runtime.address import link_to
from tallystick.runtime.capture_files import CaptureFiles
from tallystick.runtime.replay import Choice, prepare, replay, survey

CREATED, PAID = "urn:babel:orders:created", "urn:babel:orders:paid"


def message(urn: str = CREATED, n: int = 0) -> Envelope:
    return make(urn, {"n": n}, now_ms=1_700_000_000_000, new_id=lambda: str(uuid4()))


def keep(folder: Path, frames: Sequence[Frame], **seen: Any) -> None:
    told: dict[str, Any] = {
        "direction": "sent",
        "broker": "memory",
        "queue": "orders",
        "at": 5,
    } | seen
    node = told.pop("node", "shop")
    with CaptureFiles(folder, node=node) as files:
        files.record(**told, frames=frames)


def bare(count: int) -> list[Frame]:
    return [Frame(encode(message(n=n))) for n in range(count)]


def held(url: str, queue: str = "orders") -> list[Frame]:
    transport = link_to(url).open()
    taken = transport.receive(queue, 1000, 0)
    transport.ack(taken)
    transport.close()
    return [one.frame for one in taken]


@pytest.fixture
def url() -> str:
    return f"memory://{uuid4().hex}"


def test_what_an_app_sent_is_sent_again_as_it_was(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with App(f"memory://{uuid4().hex}", queue="orders", capture=tmp_path) as app:
        app.publish_all([(CREATED, {"n": n}) for n in range(3)])
        first = held(f"memory://{app.link.address.host}")
    assert main(["replay", str(tmp_path), "--to", url, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["found"], told["sent"], told["urns"]) == (3, 3, {CREATED: 3})
    assert held(url) == first


def test_a_dry_run_says_what_there_is_and_sends_nothing(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path, [*bare(2), Frame(b"\xff")])
    assert main(["replay", str(tmp_path), "--to", url, "--dry-run", "--skip", "1"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "would send 2 of 3 frames",
        "         3  orders",
        "         1  (no message)",
        f"         2  {CREATED}",
    ]
    assert held(url) == []


def test_a_message_that_was_seen_both_ways_is_not_doubled(url: str, tmp_path: Path) -> None:
    frames = bare(2)
    keep(tmp_path, frames)
    keep(tmp_path, frames, direction="received")
    with pytest.raises(UsageError, match="2 received, 2 sent"):
        survey([tmp_path], Choice())
    assert main(["replay", str(tmp_path), "--to", url, "--direction", "received"]) == 0
    assert held(url) == frames


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--only", PAID], [2, 3]),
        (["--only", PAID, "--only", CREATED], [0, 1, 2, 3]),
        (["--only", "urn:babel:none:none"], []),
        (["--since", "10"], [1, 2, 3]),
        (["--until", "10"], [0]),
        (["--since", "1970-01-01T00:00:01Z"], [3]),
        (["--since", "1970-01-01T00:00:01"], [3]),
        (["--from-queue", "bills"], [2, 3]),
    ],
)
def test_a_choice_takes_those_and_no_others(
    options: list[str], expected: list[int], url: str, tmp_path: Path
) -> None:
    frames = [Frame(encode(message(urn))) for urn in (CREATED, CREATED, PAID, PAID)]
    keep(tmp_path, frames[:1], at=9)
    keep(tmp_path, frames[1:2], at=10)
    keep(tmp_path, frames[2:3], at=11, queue="bills")
    keep(tmp_path, frames[3:], at=10**9, queue="bills")
    assert main(["replay", str(tmp_path), "--to", url, "--queue", "all", *options]) == 0
    assert held(url, "all") == [frames[n] for n in expected]


def test_files_go_in_the_order_of_their_times(url: str, tmp_path: Path) -> None:
    frames = bare(3)
    for node, at in (("c", 1), ("b", 2), ("a", 3)):
        keep(tmp_path, [frames[at - 1]], at=at, node=node)
    assert main(["replay", str(tmp_path), "--to", url]) == 0
    assert held(url) == frames


def test_nothing_is_sent_when_a_line_is_broken(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path, bare(2))
    (tmp_path / "zz.jsonl").write_bytes(b"{}\n")
    assert main(["replay", str(tmp_path), "--to", url]) == 1
    assert "zz.jsonl:1" in capsys.readouterr().err
    assert held(url) == []


class Failing(MemoryTransport):
    """A broker that goes away after some batches."""

    batches = 2

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        if not self.batches:
            raise Unavailable("away", code="broker")
        self.batches -= 1
        super().send(queue, frames)


class Patient(Event):
    """An event that notes how long it was waited for, and does not wait."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waits.append(timeout or 0)
        return False


def test_after_a_failure_it_goes_on_where_it_was(tmp_path: Path) -> None:
    frames, space = bare(10), Space()
    keep(tmp_path, frames)
    found, memory = survey([tmp_path], Choice()), find_binding("memory")
    with pytest.raises(Unavailable, match=r"6 of 10 messages were sent") as caught:
        replay(found, Failing(space), memory, rate=30, stopping=Patient())
    assert caught.value.hint == "continue with --skip 6"
    assert replay(found, MemoryTransport(space), memory, skip=6, stopping=Event()) == 4
    with space.changed:
        assert space.take("orders", 100) == frames


def test_a_rate_is_kept_by_waiting_between_batches(tmp_path: Path) -> None:
    keep(tmp_path, bare(10))
    stopping = Patient()
    found, memory = survey([tmp_path], Choice()), find_binding("memory")
    assert replay(found, MemoryTransport(Space()), memory, rate=0.001, stopping=stopping) == 10
    assert len(stopping.waits) == 9, "nobody waits for the last one"
    assert all(0 < wait - 1000 * n <= 1000 for n, wait in enumerate(stopping.waits))


def test_a_stop_ends_it_between_two_batches(tmp_path: Path) -> None:
    keep(tmp_path, bare(10))
    stopping = Event()
    found, memory = survey([tmp_path], Choice()), find_binding("memory")
    sent = replay(
        found,
        MemoryTransport(Space()),
        memory,
        rate=1e9,
        stopping=stopping,
        counted=lambda _: stopping.set(),
    )
    assert sent == 10
    assert replay(found, MemoryTransport(Space()), memory, stopping=stopping) == 0


def test_a_frame_for_another_broker_goes_by_its_table() -> None:
    kafka, rabbit = find_binding("kafka"), find_binding("rabbitmq")
    sent = message()
    captured = project(kafka, sent, queue="orders", headers={"tenant": "a"}, key=b"k")
    capture = Capture("sent", "kafka", "orders", "shop", 1, 0, captured)
    frame = prepare(capture, rabbit, "orders", {})
    assert frame == project(rabbit, sent, queue="orders", headers={"tenant": "a"})
    poison = Capture("sent", "kafka", "orders", "shop", 1, 0, Frame(b"\xff", captured.sections))
    assert prepare(poison, rabbit, "orders", {}) == Frame(b"\xff")


def test_a_frame_for_its_own_kind_keeps_its_fields_without_those_of_a_wait() -> None:
    kafka = find_binding("kafka")
    options = {"tiers_ms": (5000,), "delay": 3.0, "now": 1.0}
    waiting = project(kafka, message(), queue="orders", **options)
    assert waiting.get("record", "topic")
    frame = prepare(Capture("sent", "kafka", "orders", "n", 1, 0, waiting), kafka, "orders", {})
    assert frame.body == waiting.body
    assert frame.get("record", "topic") is None
    assert frame.get("headers", "bq-job") == CREATED.encode()


def test_another_id_changes_that_and_nothing_else() -> None:
    kafka = find_binding("kafka")
    captured = project(kafka, message(), queue="orders")
    capture = Capture("received", "kafka", "orders", "shop", 1, 0, captured)
    frame = prepare(capture, kafka, "orders", {}, "another")
    old = decode(captured.body).meta
    assert old is not None
    assert old.id is not None
    assert frame.body == captured.body.replace(old.id.encode(), b"another")
    assert frame.get("headers", "bq-message-id") == b"another"


def test_a_copy_for_a_fifo_queue_is_no_duplicate_to_it() -> None:
    sqs = find_binding("sqs")
    received = Frame(b"{}", {"attributes": {"MessageGroupId": "g", "MessageDeduplicationId": "d"}})
    frame = prepare(Capture("received", "sqs", "a.fifo", "n", 1, 0, received), sqs, "a.fifo", {})
    assert frame.get("parameters", "MessageGroupId") == "g"
    assert frame.get("parameters", "MessageDeduplicationId").startswith("d-")


@pytest.mark.parametrize(
    "options",
    [[], ["--to", "memory://", "--rate", "0"], ["--to", "memory://", "--skip", "-1"]],
)
def test_what_makes_no_sense_is_refused(options: list[str], tmp_path: Path) -> None:
    keep(tmp_path, bare(1))
    assert main(["replay", str(tmp_path), *options]) == 2
    assert main(["replay", str(tmp_path / "none"), "--to", "memory://"]) == 2

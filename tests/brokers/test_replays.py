"""Replays, redrives and backlogs on real brokers: nothing is lost, doubled or taken by mistake."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.brokers.tapped_place import PATIENCE, Place, consume, place_on, send

from tallystick.cli import main
from tallystick.core.binding import project
from tallystick.core.envelope import DeadLetter, Envelope, decode, encode, make
from tallystick.core.frame import Frame
from tallystick.core.splice import dead_letter
from tallystick.core.transport import Countable
from tallystick.runtime.address import link_to
from tallystick.runtime.capture import wrap
from tallystick.runtime.capture_files import CaptureFiles
from tallystick.runtime.capture_read import read_captures
from tallystick.runtime.status import Backlog

pytestmark = pytest.mark.xdist_group("brokers")
CREATED, PAID = "urn:babel:orders:created", "urn:babel:orders:paid"
RECEIVERS = {
    "redis": ("redis", ""),
    "rabbitmq": ("rabbitmq", ""),
    "kafka": ("kafka", "group={0}"),
    "sqs": ("sqs", ""),
    "pulsar": ("pulsar", ""),
    "artemis": ("artemis", ""),
    "servicebus": ("servicebus", ""),
}
COUNTED = ("redis", "rabbitmq", "kafka", "sqs")


@pytest.fixture(params=RECEIVERS)
def target(request: pytest.FixtureRequest, broker_url: Callable[[str], str]) -> Iterator[Place]:
    yield from place_on(broker_url, *RECEIVERS[request.param])


def message(urn: str, n: int) -> Envelope:
    return make(urn, {"n": n}, now_ms=1_700_000_000_000, new_id=lambda: str(uuid4()))


def test_a_replay_arrives_byte_for_byte_and_is_captured_again(
    target: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    transport = target.open()
    sent = [Frame(encode(message(CREATED, n))) for n in range(5)]
    with CaptureFiles(tmp_path) as files:
        files.record("tapped", "redis", "orders", 1, sent)
    given = ["replay", str(tmp_path), "--to", target.url, "--queue", target.queue]
    assert main([*given, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["sent"] == 5
    with CaptureFiles(tmp_path / "received") as files:
        captured = wrap(transport, files, broker=link_to(target.url).address.broker)
        taken = consume(captured, target.queue, 5)
    assert sorted(taken) == sorted(frame.body for frame in sent)
    again = list(read_captures([tmp_path / "received"]))
    assert sorted(one.frame.body for one in again) == sorted(taken)


def letters(url: str, queue: str) -> list[Frame]:
    link = link_to(url)
    frames = []
    for n, urn in enumerate([CREATED, PAID, CREATED, PAID]):
        record = DeadLetter(reason="failed", original_queue=queue, attempts=3, failed_at=1)
        letter = decode(dead_letter(encode(message(urn, n)), record))
        frames.append(project(link.binding, letter, queue=queue))
    return [*frames, Frame(b'{"no":"letter"}')]


def test_a_redrive_moves_what_is_asked_for_and_keeps_the_rest(
    target: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    graveyard = f"{target.queue}-dead"
    transport = target.open()
    transport.ensure([graveyard])
    for letter in letters(target.url, target.queue):  # as a worker does, one by one
        transport.send(graveyard, [letter])
    transport.close()

    def redrive(*options: str) -> Any:
        assert main(["redrive", target.url, graveyard, "--json", *options]) == 0
        return json.loads(capsys.readouterr().out)

    def arrived(queue: str, count: int) -> list[bytes]:
        consumer = target.open()
        taken = consume(consumer, queue, count)
        consumer.close()
        return taken

    moved = {"redriven": 2, "kept": 3, "queues": {target.queue: 2}}
    assert redrive("--only", CREATED) == moved
    back = [json.loads(body) for body in arrived(target.queue, 2)]
    assert sorted(body["data"]["n"] for body in back) == [0, 2]
    assert [(body["attempts"], "dead_letter" in body) for body in back] == [(0, False)] * 2
    assert redrive("--limit", "1", "--only", PAID)["redriven"] == 1
    assert redrive() == {"redriven": 1, "kept": 1, "queues": {target.queue: 1}}
    rest = [json.loads(body) for body in arrived(target.queue, 2)]
    assert sorted(body["data"]["n"] for body in rest) == [1, 3]
    assert arrived(graveyard, 1) == [b'{"no":"letter"}']


def test_a_broker_that_tells_its_backlog_tells_what_waits(target: Place) -> None:
    transport, backlog = target.open(), Backlog(link_to(target.url))
    target.stack.callback(backlog.close)
    counted = isinstance(transport, Countable)
    assert counted == (link_to(target.url).address.broker in COUNTED)
    send(transport, target.queue, 0, 3)
    end = time.monotonic() + PATIENCE
    while (waits := backlog.ask([target.queue])) != (3 if counted else None):
        assert time.monotonic() < end, waits
        time.sleep(0.05)
    consume(transport, target.queue, 3)
    while (waits := backlog.ask([target.queue])) != (0 if counted else None):
        assert time.monotonic() < end, waits
        time.sleep(0.05)

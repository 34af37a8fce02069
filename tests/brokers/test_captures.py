"""Taps on real brokers: all is seen and nothing is taken, however a capture ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from uuid import uuid4

import pika  # type: ignore[import-untyped]
import pytest
from tests.brokers.tapped_place import PATIENCE, Place, bodies, consume, place_on, send

from tallystick.cli import main
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.frame import Frame
from tallystick.core.tap import Looks, Tap, Watch
from tallystick.core.transport import Delivery
from tallystick.runtime.capture_files import CaptureFiles
from tallystick.runtime.capture_read import read_captures
from tallystick.runtime.tap import UNTAPPED, capture_queue, tapping

pytestmark = pytest.mark.xdist_group("brokers")
TAPPED = {
    "redis": ("redis", ""),
    "redis-laravel": ("redis", "laravel=1"),
    "kafka": ("kafka", "group={0}"),
    "pulsar": ("pulsar", ""),
    "artemis": ("artemis", ""),
    "servicebus": ("servicebus", ""),
}


@pytest.fixture(params=TAPPED)
def place(request: pytest.FixtureRequest, broker_url: Callable[[str], str]) -> Iterator[Place]:
    yield from place_on(broker_url, *TAPPED[request.param])


@pytest.fixture
def rabbit(broker_url: Callable[[str], str]) -> Iterator[Place]:
    yield from place_on(broker_url, "rabbitmq", "")


def see(tap: Tap, count: int) -> list[bytes]:
    seen: list[bytes] = []
    end = time.monotonic() + PATIENCE
    while len(seen) < count and time.monotonic() < end:
        seen += [frame.body for frame in tap.read(count - len(seen), 1.0)]
    return seen


def test_a_tap_sees_all_and_takes_nothing(place: Place) -> None:
    transport = place.open()
    send(transport, place.queue, 0, 5)
    tap = place.tap()
    assert sorted(see(tap, 5)) == bodies(0, 5)
    send(transport, place.queue, 5, 8)
    assert sorted(see(tap, 3)) == bodies(5, 8)
    assert tap.read(10, 0.5) == []
    assert sorted(consume(transport, place.queue, 8)) == bodies(0, 8)
    transport.close()  # what a broker has pushed to a consumer no longer waits in the queue
    again = place.open()
    send(again, place.queue, 8, 9)
    assert see(tap, 1) == bodies(8, 9)
    assert consume(again, place.queue, 1) == bodies(8, 9)


def test_a_tap_from_the_latest_sees_what_comes(place: Place) -> None:
    transport = place.open()
    send(transport, place.queue, 0, 3)
    tap = place.tap(start="latest")
    send(transport, place.queue, 3, 5)
    assert sorted(see(tap, 2)) == bodies(3, 5)
    assert sorted(consume(transport, place.queue, 5)) == bodies(0, 5)


def test_a_tap_gives_the_native_fields_that_a_consumer_gets(place: Place) -> None:
    transport = place.open()
    send(transport, place.queue, 0, 1)
    end = time.monotonic() + PATIENCE
    tap, tapped = place.tap(), list[Frame]()
    while not tapped and time.monotonic() < end:
        tapped = tap.read(1, 1.0)
    taken: list[Delivery] = []
    while not taken and time.monotonic() < end:
        taken = transport.receive(place.queue, 1, 1.0)
    transport.ack(taken)
    assert tapped[0].sections.keys() == taken[0].frame.sections.keys()
    fields = {name: held.keys() for name, held in tapped[0].sections.items()}
    assert fields == {name: held.keys() for name, held in taken[0].frame.sections.items()}


def test_redis_follows_a_list_whose_front_is_taken(broker_url: Callable[[str], str]) -> None:
    for place in place_on(broker_url, "redis", ""):
        transport = place.open()
        send(transport, place.queue, 0, 6)
        tap = place.tap()
        assert see(tap, 4) == bodies(0, 4)
        assert consume(transport, place.queue, 3) == bodies(0, 3)
        assert see(tap, 2) == bodies(4, 6)
        assert consume(transport, place.queue, 3) == bodies(3, 6)
        send(transport, place.queue, 6, 8)
        assert see(tap, 2) == bodies(6, 8)


def test_rabbitmq_is_not_tapped_without_being_told_how(rabbit: Place) -> None:
    with pytest.raises(UsageError, match="without taking") as caught:
        rabbit.tap()
    assert "--exchange" in caught.value.hint
    with pytest.raises(UsageError, match="not those already in the queue"):
        rabbit.tap(exchange="amq.topic")
    with pytest.raises(Unavailable, match="NOT_FOUND"):
        rabbit.tap(exchange=f"none-{uuid4().hex}", start="latest")


@pytest.mark.parametrize("options", ["", "queue_type=quorum"])
def test_rabbitmq_gets_back_what_was_peeked_at(
    options: str, broker_url: Callable[[str], str]
) -> None:
    for place in place_on(broker_url, "rabbitmq", options):
        transport = place.open()
        send(transport, place.queue, 0, 5)
        with tapping(place.url, Watch(queue=place.queue, peek=True)) as tap:
            assert see(tap, 5) == bodies(0, 5)
            assert tap.read(1, 0.2) == []
        assert consume(transport, place.queue, 5) == bodies(0, 5)


def test_rabbitmq_gives_a_copy_from_the_exchange(rabbit: Place) -> None:
    transport = rabbit.open()
    exchange = f"tapped-{uuid4().hex}"
    with pika.BlockingConnection(pika.URLParameters(rabbit.url)) as connection:
        channel = connection.channel()
        channel.exchange_declare(exchange, auto_delete=True)
        channel.queue_bind(rabbit.queue, exchange, "orders")
        with tapping(
            rabbit.url, Watch(queue=rabbit.queue, exchange=exchange, key="orders", start="latest")
        ) as tap:
            for body in bodies(0, 4):
                channel.basic_publish(exchange, "orders", body)
            assert see(tap, 4) == bodies(0, 4)
        assert consume(transport, rabbit.queue, 4) == bodies(0, 4)


@pytest.mark.parametrize("url", ["sqs://eu-west-1", "memory://here"])
def test_what_cannot_be_tapped_is_refused_with_its_reason(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capture", url, "orders", "-o", str(tmp_path)]) == 2
    told = capsys.readouterr().err
    assert any(reason in told for reason in UNTAPPED.values())
    assert "capture=DIR" in told


def test_a_topic_that_is_not_there_is_said(broker_url: Callable[[str], str]) -> None:
    for place in place_on(broker_url, "kafka", ""):
        with pytest.raises(Unavailable, match="no topic"):
            place.tap()


def test_the_command_keeps_what_is_there(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    form = "parquet" if place.url.startswith("redis") else "jsonl.gz"
    transport = place.open()
    send(transport, place.queue, 0, 7)
    given = ["capture", place.url, place.queue, "-o", str(tmp_path), "--format", form]
    assert main([*given, "--limit", "7", "--for", "60", "--node", "tap", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["captured"] == 7
    captures = list(read_captures([tmp_path]))
    assert sorted(one.frame.body for one in captures) == bodies(0, 7)
    assert {(one.direction, one.queue, one.node) for one in captures} == {
        ("tapped", place.queue, "tap")
    }
    assert [one.name.endswith(f".{form}") for one in tmp_path.iterdir()] == [True]
    assert sorted(consume(transport, place.queue, 7)) == bodies(0, 7)


def test_a_capture_ends_when_its_time_is_over_or_nothing_comes(
    broker_url: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in place_on(broker_url, "redis", ""):
        given = ["capture", place.url, place.queue, "-o", str(tmp_path)]
        assert main([*given, "--for", "0.2"]) == 0
        assert main([*given, "--idle", "0.2"]) == 0
        assert capsys.readouterr().out.count("captured 0 frames") == 2
        stopping = Event()
        stopping.set()
        with CaptureFiles(tmp_path) as files:
            watch = Watch(queue=place.queue)
            assert capture_queue(place.url, watch, files, stopping=stopping) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_signal_ends_a_capture_in_order(broker_url: Callable[[str], str], tmp_path: Path) -> None:
    for place in place_on(broker_url, "redis", ""):
        transport = place.open()
        send(transport, place.queue, 0, 3)
        tally = str(Path(sys.executable).with_name("tally"))
        program = subprocess.Popen(
            [tally, "capture", place.url, place.queue, "-o", str(tmp_path)], stdout=subprocess.PIPE
        )
        end = time.monotonic() + PATIENCE
        while not any(one.stat().st_size for one in tmp_path.glob("*.part")):
            assert time.monotonic() < end
            time.sleep(0.05)
        program.send_signal(signal.SIGTERM)
        told = program.communicate(timeout=PATIENCE)[0].decode()
        assert (program.returncode, told.split()[:3]) == (0, ["captured", "3", "frames"])
        assert [one.suffix for one in tmp_path.iterdir()] == [".jsonl"]
        assert consume(transport, place.queue, 3) == bodies(0, 3)


def test_a_capture_that_cannot_be_written_ends_with_one_line_and_takes_nothing(
    broker_url: Callable[[str], str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for place in place_on(broker_url, "redis", ""):
        transport = place.open()
        send(transport, place.queue, 0, 3)
        files = CaptureFiles(tmp_path / "gone", strict=True)
        (tmp_path / "gone").rmdir()
        (tmp_path / "gone").touch()
        with pytest.raises(Unavailable, match="cannot write captures"):
            capture_queue(place.url, Watch(queue=place.queue), files, stopping=Event())
        assert main(["capture", place.url, "q", "-o", str(tmp_path / "gone")]) == 2
        assert capsys.readouterr().err.count("\n") == 2
        assert consume(transport, place.queue, 3) == bodies(0, 3)


def test_looks_tell_each_message_once_and_equal_ones_as_often_as_they_wait() -> None:
    looks = Looks(most=3)
    first, second = Frame(b"1"), Frame(b"2")
    assert looks.unseen([first, first, second]) == [first, first, second]
    looks.begin()
    assert looks.unseen([first, second]) == []
    assert looks.unseen([second]) == [second]
    looks.begin()
    assert looks.unseen([Frame(b"%d" % n) for n in range(3, 7)]) != []
    looks.begin()
    assert looks.unseen([first]) == [first]

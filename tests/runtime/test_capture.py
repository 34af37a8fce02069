"""What goes through a captured transport is kept exactly, and nothing else changes."""

from __future__ import annotations

import errno
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any
from uuid import uuid4

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyarrow import parquet

from tallystick import App
from tallystick.brokers.memory.transport import MemoryTransport, Space
from tallystick.core.capture import Capture, read_row, write
from tallystick.core.capture_columns import COLUMNS, arrow_schema
from tallystick.core.errors import Rejected, Unavailable, UsageError
from tallystick.core.frame import Frame
from tallystick.runtime.capture import wrap
from tallystick.runtime.capture_files import CaptureFiles
from tallystick.runtime.capture_finish import FORMS
from tallystick.runtime.capture_read import capture_files_in, read_captures

URN = "urn:babel:orders:created"
DISK = Path(__file__).with_name("disk_program.py")
FRAMES = [Frame(b"%d" % n, {"headers": {"n": n, "raw": b"\xff"}}) for n in range(5)]


def until(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen within a minute"
        time.sleep(0.01)
    return found


def put(files: CaptureFiles, frames: Sequence[Frame], at: int = 7) -> None:
    files.record("sent", "memory", "orders", at, frames)


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    made = App(f"memory://{uuid4().hex}", queue="orders", capture=tmp_path, max_attempts=2)
    yield made
    made.close()


def test_what_an_app_sends_and_receives_is_kept(app: App, tmp_path: Path) -> None:
    handled: list[Any] = []
    app.handler(URN)(handled.append)
    sent = app.publish_all([(URN, {"n": n}) for n in range(3)])
    app.run(limit=3)
    app.close()
    captures = list(read_captures([tmp_path]))
    assert [one.direction for one in captures[:3]] == ["sent"] * 3
    assert [one.direction for one in captures[3:]] == ["received"] * 3
    assert [one.sequence for one in captures] == list(range(6))
    bodies = [one.frame.body for one in captures]
    assert bodies[:3] == bodies[3:]
    assert [json.loads(body)["meta"]["id"] for body in bodies[:3]] == sent
    assert {(one.broker, one.queue) for one in captures} == {("memory", "orders")}
    assert captures[0].at <= captures[3].at
    assert [one.suffix for one in tmp_path.iterdir()] == [".jsonl"]


def test_a_retry_and_a_dead_letter_are_sent_too(app: App, tmp_path: Path) -> None:
    @app.handler(URN)
    def fail(_data: Any) -> None:
        raise ValueError("no")

    app.publish(URN, {"n": 1})
    app.run(limit=2)
    app.close()
    captures = list(read_captures([tmp_path]))
    assert [(one.direction, one.queue) for one in captures] == [
        ("sent", "orders"),
        ("received", "orders"),
        ("sent", "orders"),
        ("received", "orders"),
        ("sent", "orders.dlq"),
    ]


class Deaf(MemoryTransport):
    """A broker that confirms nothing."""

    def send(self, queue: str, frames: Sequence[Frame]) -> None:  # noqa: ARG002
        raise Unavailable("away", code="broker")


def test_what_the_broker_did_not_confirm_is_not_sent(tmp_path: Path) -> None:
    with CaptureFiles(tmp_path) as files:
        transport = wrap(Deaf(Space()), files, broker="memory")
        with pytest.raises(Unavailable):
            transport.send("orders", FRAMES)
    assert list(tmp_path.iterdir()) == []


def test_a_frame_is_sent_at_the_time_when_its_sending_began(tmp_path: Path) -> None:
    times = iter([100, 200])
    with CaptureFiles(tmp_path, node="shop", clock_error=5) as files:
        transport = wrap(
            MemoryTransport(Space()), files, broker="memory", clock=lambda: next(times)
        )
        transport.send("orders", FRAMES[:1])
        transport.receive("orders", 1, 0)
    sent, received = read_captures([tmp_path])
    assert sent == Capture("sent", "memory", "orders", "shop", 100, 0, FRAMES[0], 5)
    assert received == Capture("received", "memory", "orders", "shop", 200, 1, FRAMES[0], 5)


def test_a_clock_is_not_better_than_right(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must be 0 or more"):
        CaptureFiles(tmp_path, clock_error=-1)


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_back_the_exact_frames(form: str, tmp_path: Path) -> None:
    with CaptureFiles(tmp_path, form=form) as files:
        put(files, FRAMES[:2])
        put(files, FRAMES[2:])
    (made,) = tmp_path.iterdir()
    assert made.name.endswith(f".{form}")
    assert [one.frame for one in read_captures([made])] == FRAMES


@pytest.mark.parametrize("form", FORMS)
def test_a_file_ends_at_its_size_and_counts_from_0(form: str, tmp_path: Path) -> None:
    with CaptureFiles(tmp_path, form=form, max_bytes=1) as files:
        for frame in FRAMES:
            put(files, [frame, frame])
    made = capture_files_in([tmp_path])
    assert len(made) == len(FRAMES)
    assert [one.frame for one in read_captures([tmp_path])] == [f for f in FRAMES for _ in "ab"]
    assert [one.sequence for one in read_captures([tmp_path])] == [0, 1] * len(FRAMES)


def test_a_file_ends_at_its_age_though_nothing_more_comes(tmp_path: Path) -> None:
    files = CaptureFiles(tmp_path, max_age=0.05)
    put(files, FRAMES)
    until(lambda: list(tmp_path.glob("*.jsonl")))
    put(files, FRAMES)
    files.close()
    assert len(list(tmp_path.glob("*.jsonl"))) == 2


def test_what_is_recorded_is_on_disk_before_the_file_is_finished(tmp_path: Path) -> None:
    files = CaptureFiles(tmp_path)
    put(files, FRAMES)
    (part,) = tmp_path.glob("*.part")
    assert [one.frame for one in read_captures([tmp_path])] == FRAMES
    with part.open("ab") as file:
        file.write(b'{"kind":"capt')
    assert [one.frame for one in read_captures([tmp_path])] == FRAMES
    files.close()
    assert [one.frame for one in read_captures([tmp_path])] == FRAMES


@pytest.mark.parametrize("form", FORMS)
def test_the_part_of_a_program_that_was_killed_is_finished_by_the_next(
    form: str, tmp_path: Path
) -> None:
    lines = [write(Capture("sent", "memory", "q", "n", 1, n, one)) for n, one in enumerate(FRAMES)]
    (tmp_path / "n-1.jsonl.part").write_bytes(b"\n".join(lines) + b'\n{"kind":')
    (tmp_path / "n-2.jsonl.part").write_bytes(b'{"kind":"cap')
    CaptureFiles(tmp_path, form=form)
    assert [one.name for one in tmp_path.iterdir()] == [f"n-1.{form}"]
    assert [one.frame for one in read_captures([tmp_path])] == FRAMES


ENDLESS = """
import sys
from tallystick.core.frame import Frame
from tallystick.runtime.capture_files import CaptureFiles
files = CaptureFiles(sys.argv[1], max_bytes=50_000)
while True:
    files.record("sent", "memory", "orders", 1, [Frame(b"x" * 100, {"headers": {"a": b"1"}})] * 7)
"""


def test_a_kill_leaves_whole_lines_and_no_gap(tmp_path: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path)])
    until(lambda: len(list(tmp_path.iterdir())) > 3)
    program.kill()
    program.wait()
    CaptureFiles(tmp_path, form="parquet")
    made = capture_files_in([tmp_path])
    assert not any(one.name.endswith(".part") for one in made)
    for one in made:
        numbers = [capture.sequence for capture in read_captures([one])]
        assert numbers == list(range(len(numbers)))


def test_a_part_that_is_being_written_is_left_alone(tmp_path: Path) -> None:
    first = CaptureFiles(tmp_path, node="first")
    put(first, FRAMES)
    second = CaptureFiles(tmp_path, node="second")
    assert [one.name.partition("-")[0] for one in tmp_path.glob("*.part")] == ["first"]
    put(second, FRAMES)
    put(first, FRAMES)
    first.close()
    second.close()
    assert len(list(read_captures([tmp_path]))) == 3 * len(FRAMES)


def test_many_threads_write_whole_lines_and_no_number_twice(tmp_path: Path) -> None:
    files = CaptureFiles(tmp_path, form="jsonl.gz", max_bytes=4_000)

    def work() -> None:
        for _ in range(40):
            put(files, FRAMES)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files.close()
    made = capture_files_in([tmp_path])
    assert len(made) > 4
    assert all(one.name.endswith(".jsonl.gz") for one in made)
    for one in made:
        numbers = [capture.sequence for capture in read_captures([one])]
        assert numbers == list(range(len(numbers)))
    assert len(list(read_captures([tmp_path]))) == 4 * 40 * len(FRAMES)


def test_a_full_disk_is_said_once_and_no_message_is_lost(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, DISK, tmp_path], check=True, capture_output=True, text=True, timeout=120
    )
    told = json.loads(done.stdout)
    assert told["handled"] == told["sent"] == 60
    assert done.stderr.count("cannot write captures") == 1
    assert done.stderr.count("capturing continues") == 1
    captures = list(read_captures([tmp_path]))
    assert told["missing"] > 0
    assert len(captures) + told["missing"] == 120
    begins = [next(read_captures([one])).sequence for one in capture_files_in([tmp_path])]
    assert begins[0] == 0
    assert sum(begins[1:]) == told["missing"]


def broken_disk(*_: Any) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_disk_that_takes_back_nothing_either_is_said_once_and_stops_nothing(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    handled: list[Any] = []
    app.handler(URN)(handled.append)
    app.publish(URN, {"n": 0})
    write_all = os.write

    def half(number: int, data: bytes) -> int:
        write_all(number, data[: len(data) // 2])
        return broken_disk()

    with monkeypatch.context() as disk:
        disk.setattr("os.write", half)
        disk.setattr("os.ftruncate", broken_disk)
        disk.setattr("os.close", broken_disk)
        app.publish(URN, {"n": 1})
        assert app.run(limit=2) == {"handled": 2}
    app.close()
    assert [one["n"] for one in handled] == [0, 1]
    said = [one.message for one in caplog.records if one.levelno >= logging.ERROR]
    assert len(said) == 1
    assert "No space left on device; messages are still handled, but not captured" in said[0]
    (kept,) = read_captures([tmp_path])
    assert b'"n":0' in kept.frame.body


class Clumsy:
    """A sink that raises for every frame."""

    def record(self, *_: Any) -> None:
        raise ValueError("not my day")

    def close(self) -> None:
        """Nothing is open."""


def test_what_a_sink_raises_goes_no_further(caplog: pytest.LogCaptureFixture) -> None:
    app = App(f"memory://{uuid4().hex}", queue="orders", capture=Clumsy())
    handled: list[Any] = []
    app.handler(URN)(handled.append)
    app.publish(URN, {"n": 1})
    assert app.run(limit=1) == {"handled": 1}
    assert len(handled) == 1
    assert [one.message for one in caplog.records] == [
        "1 frames of orders were not captured: ValueError"
    ] * 2


def test_a_frame_that_cannot_be_written_is_missing_and_the_others_are_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Bad:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    with CaptureFiles(tmp_path) as files, caplog.at_level(logging.ERROR):
        put(files, [FRAMES[0], Frame(b"", {"headers": {"a": Bad()}}), FRAMES[1]])
        assert files.missing == 1
    assert [one.sequence for one in read_captures([tmp_path])] == [0, 2]
    assert "cannot be captured" in caplog.text


def test_a_folder_that_cannot_be_written_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Unavailable, match="cannot write captures"):
        App("memory://", capture=tmp_path / "file" / "inside")
    with pytest.raises(UsageError, match="no capture format"):
        CaptureFiles(tmp_path, form="csv")
    with pytest.raises(UsageError):
        CaptureFiles(tmp_path, max_bytes=0)


def test_what_is_no_capture_is_told_with_its_place(tmp_path: Path) -> None:
    with CaptureFiles(tmp_path, form="jsonl.gz") as files:
        put(files, FRAMES)
    (packed,) = tmp_path.iterdir()
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(Rejected, match="is incomplete"):
        list(read_captures([tmp_path]))
    packed.unlink()
    with pytest.raises(Unavailable, match="no captures in"):
        list(read_captures([tmp_path]))
    (tmp_path / "a.jsonl").write_bytes(b'{"kind":"other"}\n')
    with pytest.raises(Rejected, match=r"a\.jsonl:1"):
        list(read_captures([tmp_path]))
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(Rejected, match="is not a capture file"):
        list(read_captures([tmp_path / "a.parquet"]))
    with pytest.raises(UsageError, match="is not a capture"):
        list(read_captures([Path(__file__)]))


def test_a_parquet_capture_has_the_declared_columns(tmp_path: Path) -> None:
    with CaptureFiles(tmp_path, form="parquet", node="shop", clock_error=5) as files:
        put(files, FRAMES)
    (made,) = tmp_path.iterdir()
    table = parquet.read_table(made)
    assert table.schema == arrow_schema(pa)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    lines = [
        write(Capture("sent", "memory", "orders", "shop", 7, number, frame, 5))
        for number, frame in enumerate(FRAMES)
    ]
    assert rows == [read_row(line) for line in lines]


def test_a_parquet_file_that_is_no_complete_capture_is_told_with_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"body": [b"{}"]}), path)
    with pytest.raises(Rejected, match=r"a\.parquet is not a capture file"):
        list(read_captures([path]))
    parquet.write_table(arrow_schema(pa).empty_table(), path)
    assert list(read_captures([path])) == []
    row: dict[str, Any] = dict.fromkeys(COLUMNS) | {"direction": "sent", "body": b"{}"}
    parquet.write_table(pa.Table.from_pylist([row], schema=arrow_schema(pa)), path)
    with pytest.raises(Rejected, match=r"a\.parquet: `broker` is missing"):
        list(read_captures([path]))

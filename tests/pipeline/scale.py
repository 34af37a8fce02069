"""Measure a run that is larger than the memory, skewed, or small. Figures, no test.

    python -m tests.pipeline.scale --memory     input 20 times the heap (512 MB), lines of 2 KB
    python -m tests.pipeline.scale --skew       90 % one URN, one pair and one trace, against even
    python -m tests.pipeline.scale --first      seconds from the command to its first table, small

Every message is sent once and received once, and the tables must say so. `--memory` tells the most
that Java and all the Python workers together held. `--skew` runs as many messages twice in one
session and tells the ratio of the times.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tallystick.core.capture import Capture, write
from tallystick.core.frame import Frame
from tallystick.pipeline.run import make_plan, run
from tallystick.pipeline.session import open_session
from tests.pipeline.planted import WAYS, write_registry

PAD = "QUJD" * 300
FILES = 16
LEAST = 480
"""MB; with less, Spark starts only if it may reserve less than it wants to, here a quarter."""
HOT = 10
"""Of so many messages one is not hot."""


def messages(start: int, stop: int, *, skewed: bool, pad: str) -> Iterator[bytes]:
    """Give the captures of messages, sent and received."""
    for number in range(start, stop):
        hot = skewed and number % HOT != 0
        way = WAYS[3] if hot else WAYS[number % len(WAYS)]
        trace = 0 if hot else number + 1
        data = way.data % {"n": number + 1, "cents": number % 900 + 1}
        body = (
            f'{{"job":"{way.urn}","trace_id":"{trace:08x}-0000-4000-8000-{trace:012x}",'
            f'"data":{data},"meta":{{"id":"{number:08x}-0000-4000-8000-{number:012x}",'
            f'"queue":"{way.queue}","lang":"{way.lang}","schema_version":1,'
            f'"created_at":{1_749_132_727_000 + number}}},"attempts":0}}'
        )
        frame = Frame(body.encode(), {"headers": {"baggage": pad}})
        at = 1_749_132_727_000_000_000 + number * 1_000_000
        for direction, node, when in (("sent", way.sender, at),
                                      ("received", way.receiver, at + 3_000_000)):  # fmt: skip
            capture = Capture(direction, "kafka", way.queue, node, when, number, frame, 1000)
            yield write(capture) + b"\n"


def write_messages(folder: Path, count: int, *, skewed: bool = False, pad: str = "") -> int:
    """Write messages as a few files; give their size."""
    folder.mkdir()
    each = -(-count // FILES)
    for number in range(FILES):
        with (folder / f"{number:02}.jsonl").open("wb") as file:
            file.writelines(
                messages(number * each, min(count, number * each + each), skewed=skewed, pad=pad)
            )
    return sum(one.stat().st_size for one in folder.iterdir())


def check(figures: dict[str, Any], count: int) -> None:
    """Every message was delivered once, and nothing else is in the tables."""
    wanted = {"messages": 2 * count, "valid": 2 * count, "delivered": count,
              "lost": 0, "duplicated": 0, "refused": 0}  # fmt: skip
    found = {name: figures[name] for name in wanted}
    if found != wanted:
        raise SystemExit(f"the tables are wrong: {found}, not {wanted}")


def resident(process: int) -> dict[str, int]:
    """Give the bytes that Java and Python hold under a process."""
    below: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(place.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        below.setdefault(parent, []).append(int(place.parent.name))
    held = {"java": 0, "python": 0}
    waiting = [process]
    for one in waiting:
        waiting += below.get(one, [])
        try:
            name = Path(f"/proc/{one}/comm").read_text().strip()
            pages = int(Path(f"/proc/{one}/statm").read_text().split()[1])
        except OSError:
            continue
        held["java" if name == "java" else "python"] += pages * os.sysconf("SC_PAGESIZE")
    return held


def measure_memory(folder: Path, heap: int, times: int) -> dict[str, Any]:
    """Run over an input that is `times` the heap, in MB."""
    line = len(next(messages(0, 1, skewed=False, pad=PAD)))
    count = heap * times * (1 << 20) // (2 * line) + 1
    size = write_messages(folder / "in", count, pad=PAD)
    command = [
        sys.executable, "-m", "tallystick", "pipeline", "run", "--input", str(folder / "in"),
        "--registry", str(write_registry(folder / "registry")), "--out", str(folder / "lake"),
        "--conf", f"spark.driver.memory={heap}m", "--json",
    ]  # fmt: skip
    if heap < LEAST:
        command += ["--conf", f"spark.testing.reservedMemory={heap << 18}"]
    begun, most = time.monotonic(), {"java": 0, "python": 0}
    with subprocess.Popen(command, stdout=(folder / "out").open("wb")) as process:
        while process.poll() is None:
            for name, held in resident(process.pid).items():
                most[name] = max(most[name], held)
            time.sleep(0.5)
    if process.returncode:
        raise SystemExit(f"the run ended with {process.returncode}")
    check(json.loads((folder / "out").read_bytes())["figures"], count)
    return {
        "input_over_heap": round(size / (heap << 20), 1), "records": 2 * count,
        "java_mb": most["java"] >> 20, "python_mb": most["python"] >> 20,
        "seconds": round(time.monotonic() - begun),
    }  # fmt: skip


def measure_skew(folder: Path, count: int) -> dict[str, Any]:
    """Run as many messages even and skewed, each twice; the first round warms up."""
    registry = write_registry(folder / "registry")
    seconds: dict[str, float] = {}
    with open_session(conf={"spark.driver.memory": "1g"}) as session:
        for name, skewed in (("even", False), ("skewed", True)):
            write_messages(folder / name, count, skewed=skewed)
        for turn in ("first", "second"):
            for name in ("even", "skewed"):
                begun = time.monotonic()
                plan = make_plan([str(folder / name)], registry, folder / f"{name}-{turn}")
                check(run(plan, session=session)["figures"], count)
                seconds[name] = time.monotonic() - begun
    return {
        "records": 2 * count, "skewed_over_even": round(seconds["skewed"] / seconds["even"], 2),
        "seconds": {name: round(value, 1) for name, value in seconds.items()},
    }  # fmt: skip


def measure_first(folder: Path) -> dict[str, Any]:
    """Give the seconds from the command on a small input to its first table, and to its end."""
    captures, lake = folder / "captures.jsonl", folder / "lake"
    captures.write_bytes(b"".join(messages(0, 100, skewed=False, pad="")))
    registry = write_registry(folder / "registry")
    words = ["--input", captures, "--registry", registry, "--out", lake]
    begun = time.perf_counter()
    first = None
    command = [sys.executable, "-m", "tallystick", "pipeline", "run", "--json", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            if first is None and any(lake.rglob("*.parquet")):
                first = time.perf_counter() - begun
            time.sleep(0.02)
    assert process.returncode in {0, 1}, process.returncode
    return {"first": first, "end": time.perf_counter() - begun}


def main() -> None:
    """Measure what is asked for, and print one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--skew", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--heap", type=int, default=512, help="in MB")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--count", type=int, default=200_000, help="messages of --skew")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if args.memory:
            sys.stdout.write(
                json.dumps({"memory": measure_memory(Path(name), args.heap, args.times)}) + "\n"
            )
    with tempfile.TemporaryDirectory() as name:
        if args.skew:
            sys.stdout.write(json.dumps({"skew": measure_skew(Path(name), args.count)}) + "\n")
    with tempfile.TemporaryDirectory() as name:
        if args.first:
            sys.stdout.write(json.dumps({"first_table": measure_first(Path(name))}) + "\n")


if __name__ == "__main__":
    main()

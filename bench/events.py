"""JSON events against `cloudevents` 2.2.0 and `cloudevents-pydantic` 0.2.0, in one run.

Each library works in a process of its own, because the two peers need different versions of one
package. The processes take short turns, and the medians of their processor time are compared, so
that neighbours on the machine count little. `decode` is bytes to the library's own event, fully
validated as far as the library does; `decode_and_look` also reads id, type, source and data.
`encode` is the way back from an event that was taken apart, `reencode` from one that was not. The
events are 331 bytes each and differ in id, subject, time and data. `batch_peak_vs_size` is the
peak memory of reading a batch of 10,000 events as a stream, against the size of that batch.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

SIZE = 331
EVENTS = 50
TURN = 0.01
PEERS = {
    "cloudevents": ("cloudevents==2.2.0", "python-dateutil"),
    "pydantic": ("cloudevents-pydantic==0.2.0",),
}


def body(number: int) -> bytes:
    """Make an event of 331 bytes: every core attribute but the schema, two extensions, data."""
    event = {
        "specversion": "1.0",
        "id": f"7b3f9c2a-e41d-4f88-9b2a-{number:012d}",
        "source": "https://shop.example.com/orders/eu",
        "type": "com.example.order.created",
        "datacontenttype": "application/json",
        "subject": f"orders/{number:08d}",
        "time": f"2026-11-15T10:{number % 60:02d}:{number * 7 % 60:02d}.{123_000 + number:06d}Z",
        "tenant": "emea",
        "sequence": 100_000 + number,
        "data": {"order": 200_000 + number, "paid": True, "note": ""},
    }
    missing = SIZE - len(json.dumps(event, separators=(",", ":")))
    event["data"]["note"] = "n" * missing  # type: ignore[index]
    text = json.dumps(event, separators=(",", ":")).encode()
    assert len(text) == SIZE
    return text


def our_codec() -> tuple[Callable[[bytes], Any], Callable[[Any], Any]]:
    from tallystick.events.formats.json_format import read, write  # noqa: PLC0415

    return read, write


def our_codec_looked_at() -> tuple[Callable[[bytes], Any], Callable[[Any], Any]]:
    read, write = our_codec()

    def look(text: bytes) -> Any:
        event = read(text)
        return event if (event.id, event.type, event.source, event.data) else None

    return look, write


def cloudevents_codec() -> tuple[Callable[[bytes], Any], Callable[[Any], Any]]:
    from cloudevents.core.formats.json import JSONFormat  # type: ignore[import-not-found]  # noqa: PLC0415

    form = JSONFormat()
    return (lambda text: form.read(None, text)), form.write


def pydantic_codec() -> tuple[Callable[[bytes], Any], Callable[[Any], Any]]:
    from cloudevents_pydantic.events import CloudEvent  # type: ignore[import-not-found]  # noqa: PLC0415
    from cloudevents_pydantic.formats import json as form  # type: ignore[import-not-found]  # noqa: PLC0415
    from pydantic import TypeAdapter  # type: ignore[import-not-found]  # noqa: PLC0415

    kind = type("Typed", (CloudEvent,), {"__annotations__": {"tenant": str, "sequence": int}})
    adapter = TypeAdapter(kind)
    return (lambda text: form.deserialize(text, adapter)), form.serialize


CODECS = {
    "ours": our_codec_looked_at,
    "untouched": our_codec,
    "cloudevents": cloudevents_codec,
    "pydantic": pydantic_codec,
}


def work(name: str) -> None:
    """Be a worker: for each line `decode N` or `encode N`, do it N times and give the seconds."""
    decode, encode = CODECS[name]()
    bodies = [body(number) for number in range(EVENTS)]
    events = [decode(text) for text in bodies]
    if name == "ours":
        assert all(event.members for event in events)  # taken apart, as one that was made is
    inputs: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
        "decode": (decode, bodies),
        "encode": (encode, events),
    }
    for line in sys.stdin:
        operation, times = line.split()
        function, values = inputs[operation]
        start = time.process_time()
        for _ in range(int(times)):
            for value in values:
                function(value)
        print((time.process_time() - start) / int(times) / len(values), flush=True)


def python_of(name: str) -> str:
    """Give the interpreter of a peer: a virtual environment in the cache, made when missing."""
    import peers  # noqa: PLC0415

    folder = peers.cache() / "bench" / "-".join(PEERS[name]).replace("==", "-")
    python = folder / "bin" / "python"
    if not (folder / ".done").exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *PEERS[name]]
        for wait in (5, 15, 45, 0):
            if subprocess.run(command, check=False, stdout=sys.stderr).returncode == 0:
                break
            if not wait:
                sys.exit(f"could not install {', '.join(PEERS[name])}")
            time.sleep(wait)
        (folder / ".done").touch()
    return str(python)


class Worker:
    """One library in its own process."""

    def __init__(self, name: str) -> None:
        python = python_of(name) if name in PEERS else sys.executable
        self.process = subprocess.Popen(
            [python, str(Path(__file__).resolve()), "--worker", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.turns = dict.fromkeys(("decode", "encode"), 1)
        for operation in self.turns:
            self.turns[operation] = max(1, int(TURN / EVENTS / self.ask(operation)))

    def ask(self, operation: str) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{operation} {self.turns[operation]}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def stop(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


def measure_all(seconds: float) -> dict[tuple[str, str], float]:
    workers = {name: Worker(name) for name in CODECS}
    times: dict[tuple[str, str], list[float]] = {
        (name, operation): [] for name in CODECS for operation in ("decode", "encode")
    }
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for (name, operation), found in times.items():
            found.append(workers[name].ask(operation))
    for worker in workers.values():
        worker.stop()
    return {key: median(found) for key, found in times.items()}


def stream_peak(count: int) -> float:
    """Read a batch that never exists as a whole; give the peak memory against its size."""
    import tracemalloc  # noqa: PLC0415

    from tallystick.events.stream import read_json_batch  # noqa: PLC0415

    size = 0

    def chunks() -> Iterator[bytes]:
        nonlocal size
        for number in range(count):
            piece = (b"," if number else b"[") + body(number % 10_000)
            size += len(piece)
            yield piece
        yield b"]"

    tracemalloc.start()
    found = sum(1 for _ in read_json_batch(chunks()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == count
    print(f"a batch of {count} events, {size} bytes: peak {peak} bytes")
    return peak / size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under 45 seconds")
    parser.add_argument("--json", action="store_true", help="one flat object as the last line")
    parser.add_argument("--worker", choices=CODECS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        work(arguments.worker)
        return
    times = measure_all(10 if arguments.quick else 60)
    for (name, operation), value in times.items():
        print(f"{operation} {name:12} {value * 1e6:8.2f} us")
    ratios = {
        "decode_vs_cloudevents": times["cloudevents", "decode"] / times["untouched", "decode"],
        "encode_vs_cloudevents": times["cloudevents", "encode"] / times["ours", "encode"],
        "decode_vs_pydantic": times["pydantic", "decode"] / times["untouched", "decode"],
        "encode_vs_pydantic": times["pydantic", "encode"] / times["ours", "encode"],
        "decode_and_look_vs_cloudevents": (
            times["cloudevents", "decode"] / times["ours", "decode"]
        ),
        "reencode_vs_cloudevents": times["cloudevents", "encode"] / times["untouched", "encode"],
        "batch_peak_vs_size": stream_peak(10_000),
    }
    for name, value in ratios.items():
        print(f"{name:32} {value:8.4f}")
    if arguments.json:
        print(json.dumps({name: round(value, 4) for name, value in ratios.items()}))


if __name__ == "__main__":
    main()

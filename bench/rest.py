"""What a read over REST costs while 500 come in every second, beside a bare server.

    p50_ms, p99_ms, max_ms   GET /subjects/{s}/versions/latest of `tally schema serve`
    bare_p50_ms, ...         the same bytes from uvicorn and the smallest ASGI application
    p50_vs_bare              our median / the bare median
    late_p99_ms              how late the load itself was sent: the error of the other figures

The load is open loop: requests leave at fixed times over 16 connections whether or not earlier ones
were answered, and a latency runs from the time a request was due. The rounds of the two servers
alternate; the round with the best p99 counts for each, and every round is shown. The registry
holds 1,000 subjects; each request asks for another. The target is a p99 below 10 ms.

Run: `.venv/bin/python bench/rest.py [--quick] [--json] [--rate N]`
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
SUBJECTS = 1_000
CONNECTIONS = 16
BARE = """import asyncio, socket, sys, uvicorn
body = open(sys.argv[1], "rb").read()
head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
async def app(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})
opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
opened.bind(("127.0.0.1", 0))
print('{"url": "http://127.0.0.1:%d"}' % opened.getsockname()[1], flush=True)
config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off")
uvicorn.Server(config).run(sockets=[opened])"""


class Line(asyncio.Protocol):
    """One kept-alive connection: requests go out in order, answers are counted off in order."""

    def __init__(self) -> None:
        self.due: deque[float] = deque()
        self.latencies: list[float] = []
        self.lateness: list[float] = []
        self.bad = 0
        self.buffer = b""
        self.transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport

    def send(self, request: bytes, due: float) -> None:
        assert self.transport is not None
        self.due.append(due)
        self.lateness.append(time.perf_counter() - due)
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            at = head.index(b"content-length:") + 15
            length = int(head[at:].split(b"\r\n", 1)[0])
            if len(self.buffer) < end + 4 + length:
                return
            self.bad += not head.startswith(b"http/1.1 200")
            self.latencies.append(time.perf_counter() - self.due.popleft())
            self.buffer = self.buffer[end + 4 + length :]


async def load(url: str, paths: list[str], rate: int, seconds: float) -> dict[str, float]:
    """Send `rate` requests a second and give the percentiles in milliseconds."""
    host, port = url.removeprefix("http://").split(":")
    loop = asyncio.get_running_loop()
    lines = [(await loop.create_connection(Line, host, int(port)))[1] for _ in range(CONNECTIONS)]
    requests = [f"GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode() for path in paths]
    count = int(rate * seconds)
    start = time.perf_counter() + 0.1
    sent = 0
    while sent < count:
        now = time.perf_counter()
        while sent < count and start + sent / rate <= now:
            lines[sent % CONNECTIONS].send(requests[sent % len(requests)], start + sent / rate)
            sent += 1
        await asyncio.sleep(max(0.0, start + sent / rate - time.perf_counter()))
    for _ in range(3000):
        if not any(line.due for line in lines):
            break
        await asyncio.sleep(0.01)
    latencies = sorted(one for line in lines for one in line.latencies)
    lateness = sorted(one for line in lines for one in line.lateness)
    bad = sum(line.bad for line in lines)
    for line in lines:
        assert line.transport is not None
        line.transport.close()
    if bad or len(latencies) != count:
        sys.exit(f"{bad} answers were not 200, {count - len(latencies)} never came")
    return {
        "p50_ms": 1e3 * latencies[count // 2],
        "p99_ms": 1e3 * latencies[count * 99 // 100],
        "max_ms": 1e3 * latencies[-1],
        "late_p99_ms": 1e3 * lateness[count * 99 // 100],
    }


def write_registry(folder: Path) -> list[str]:
    """Write 1,000 subjects and give the paths of their latest versions."""
    text = (ROOT / "examples" / "registry" / "schemas" / "orders-created.json").read_text()
    rows = []
    for number in range(SUBJECTS):
        name = f"s{number}.json"
        (folder / name).write_text(text)
        rows.append({"urn": f"urn:babel:bench:subject-{number}", "schema": name})
    (folder / "registry.json").write_text(json.dumps({"schemas": rows}))
    return [f"/subjects/{quote(row['urn'], safe='')}/versions/latest" for row in rows]


def start(command: list[str]) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        sys.exit(f"the server did not start: {process.communicate()[1]}")
    return process, json.loads(line)["url"]


def measure(rate: int, seconds: float, rounds: int) -> dict[str, Any]:
    results: dict[str, list[dict[str, float]]] = {"ours": [], "bare": []}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        paths = write_registry(folder)
        body = folder / "body"
        body.write_text((folder / "s0.json").read_text())
        tally = str(Path(sys.executable).parent / "tally")
        commands = {
            "ours": [tally, "schema", "serve", "--registry", made, "--port", "0", "--json"],
            "bare": [sys.executable, "-c", BARE, str(body)],
        }  # fmt: skip
        started = {name: start(command) for name, command in commands.items()}
        try:
            for _, url in started.values():
                asyncio.run(load(url, paths, rate, 0.5))
            gc.disable()
            for _ in range(rounds):
                for name, (_, url) in started.items():
                    results[name].append(asyncio.run(load(url, paths, rate, seconds)))
        finally:
            gc.enable()
            for process, _ in started.values():
                process.terminate()
                process.communicate()
    ours, bare = (min(results[name], key=lambda one: one["p99_ms"]) for name in ("ours", "bare"))
    return {
        "rate": rate,
        "requests": int(rate * seconds) * rounds,
        **ours,
        **{f"bare_{name}": value for name, value in bare.items() if name != "late_p99_ms"},
        "p50_vs_bare": ours["p50_ms"] / bare["p50_ms"],
        "p99_ms_of_every_round": [one["p99_ms"] for one in results["ours"]],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one short round of each")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rate", type=int, default=500)
    args = parser.parse_args()
    figures = measure(args.rate, 4.0 if args.quick else 10.0, 2 if args.quick else 3)
    if figures["late_p99_ms"] > 3:
        print("the machine is busy: the load itself was late (late_p99_ms)", file=sys.stderr)
    if args.json:
        print(json.dumps(figures))
        return 0
    for name, value in figures.items():
        shown = value if not isinstance(value, list) else [round(one, 2) for one in value]
        print(name, f"{shown:.3f}" if isinstance(shown, float) else shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())

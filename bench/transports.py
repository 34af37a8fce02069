"""The runtime on seven brokers, beside a bare loop on the same client and beside babelqueue 1.24.0.

    BROKER_publish_vs_bare          messages a second: `App.publish_all` / the bare loop
    BROKER_consume_vs_bare          receive, decode, handle, acknowledge: the worker / the loop
    BROKER_consume_vs_aware         Kafka, Pulsar, not --quick: the same / reads native fields too
    BROKER_end_to_end_vs_babelqueue publish and consume together: ours / babelqueue 1.24.0
    BROKER_ours_publish_per_s ...   the rates themselves (this machine, this run)

The bare loops (`transports_bare.py`) write the same bytes and native fields and wait for the same
confirms, with the same durability. All are warmed up by a round that does not count (a tenth with
`--quick`); then they take turns, each round in the other order: a broker on Java grows quicker for
minutes. A ratio is the median of the ratios of the rounds: the two of a round had the same weather.
Rounds are long against what a client fetches before the clock begins (Pulsar: 1000 messages).
One real broker at a time, on empty data. With `--quick` all brokers start at once and each is
measured when it is up: short rounds, one run of babelqueue. `load_1m` is what else the machine
did. The targets: 0.7 of bare both ways, 3 times babelqueue.

`--memory BROKER --messages N` sends N messages through and shows the resident memory of this
process at every tenth: `memory_last_vs_first`.

Run: `.venv/bin/python bench/transports.py [--quick] [--json] [--broker NAME]...`
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from operator import truediv
from pathlib import Path
from statistics import median
from threading import Event
from time import monotonic, perf_counter
from typing import Any, Final, NamedTuple
from uuid import uuid4

import peers
from transports_bare import AWARE, BARE
from transports_message import TAKE, URN, payload

from tallystick import App
from tallystick.brokers.servers import running
from tallystick.runtime.worker import Worker

COUNTS: Final = {
    "redis": 6000, "servicebus": 1000, "sqs": 600, "kafka": 10000, "rabbitmq": 4000,
    "artemis": 2000, "pulsar": 30000,
}  # fmt: skip
"""Messages in a round, in the order in which the brokers start most quickly."""

RATIOS: Final = (("bare", "publish"), ("bare", "consume"), ("aware", "consume"))
OPTIONS: Final = {"kafka": "?reinject=0&group={0}"}


class Size(NamedTuple):
    """How much is measured: a share of `COUNTS`, rounds, seconds at least, babelqueue's part."""

    share: float
    rounds: int
    seconds: float
    theirs: int
    their_rounds: int


FULL: Final = Size(1, 12, 25.0, 200, 5)
QUICK: Final = Size(0.3, 3, 1.2, 50, 1)
SERVICEBUS: Final = (
    "Endpoint={};SharedAccessKeyName=a;SharedAccessKey=b;UseDevelopmentEmulator=true"
)


class Ours:
    """The app, with its worker's connection kept between rounds."""

    def __init__(self, url: str, queue: str) -> None:
        self._queue = queue
        self._app = App(url, queue=queue, prefetch=2 * TAKE)
        self._seen = 0
        self._app.handler(URN)(self._handle)
        self._worker, self._transport = self._app._worker(queue)  # noqa: SLF001

    def _handle(self, data: Any) -> None:
        self._seen = data["order"]

    def publish(self, count: int) -> float:
        start = perf_counter()
        self._app.publish_all((URN, payload(n)) for n in range(count))
        return perf_counter() - start

    def consume(self, count: int) -> float:
        execution = self._worker._execution  # noqa: SLF001
        worker = Worker(self._transport, self._queue, execution, Event())
        start = perf_counter()
        worker.run(limit=count)
        seconds = perf_counter() - start
        if worker.counts["handled"] != count:
            sys.exit(f"not every message was handled: {dict(worker.counts)}")
        return seconds

    def close(self) -> None:
        self._transport.close()
        self._app.close()


class Theirs:
    """babelqueue, which publishes and takes one message at a time."""

    def __init__(self, url: str, queue: str) -> None:
        from babelqueue import BabelQueue  # type: ignore[import-not-found]  # noqa: PLC0415

        os.environ["AZURE_SERVICEBUS_CONNECTION_STRING"] = SERVICEBUS.format(url)
        os.environ.setdefault("AWS_ACCESS_KEY_ID", "local")
        os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "local")
        self._app = BabelQueue(url, queue=queue)
        self._seen = 0
        self._app.register(URN, self._handle)

    def _handle(self, data: Any, meta: Any) -> None:  # noqa: ARG002
        self._seen = data["order"]

    def publish(self, count: int) -> float:
        start = perf_counter()
        for number in range(count):
            self._app.publish(URN, payload(number))
        return perf_counter() - start

    def consume(self, count: int) -> float:
        done, start = 0, perf_counter()
        while done < count:
            done += self._app.consume(max_messages=count - done, timeout=5, handle_signals=False)
        return perf_counter() - start

    def close(self) -> None:
        close = getattr(self._app.transport, "close", None)
        if close is not None:
            close()


def measure(broker: str, url: str, size: Size) -> dict[str, float]:
    """Let the contenders take turns on one broker; give the figures."""
    count = int(COUNTS[broker] * size.share)
    ours = url + OPTIONS.get(broker, "")
    makers: dict[str, tuple[Callable[[str, str], Any], str, int, int]] = {
        "ours": (Ours, ours, count, sys.maxsize),
        "bare": (BARE[broker], url, count, sys.maxsize),
        "babelqueue": (Theirs, url, size.theirs, size.their_rounds),
    }
    if broker in AWARE and size is FULL:
        makers["aware"] = (AWARE[broker], url, count, sys.maxsize)
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    with ExitStack() as stack:
        contenders: dict[str, Any] = {}
        for name, (maker, address, messages, _) in makers.items():
            queue = f"bench-{name}-{uuid4().hex[:8]}"
            if name == "babelqueue":
                Ours(ours.format(queue), queue).close()  # the queue, made beforehand
            one = contenders[name] = maker(address.format(queue), queue)
            stack.callback(one.close)
            warm = messages if size is FULL else messages // 10
            one.publish(warm)
            one.consume(warm)
        end, turn = monotonic() + size.seconds, 0
        while turn < size.rounds or monotonic() < end:
            order = [*makers.items()] if turn % 2 else [*reversed(makers.items())]
            for name, (_, _, messages, turns) in order:
                for verb in ("publish", "consume") if turn < turns else ():
                    rates[name, verb].append(messages / getattr(contenders[name], verb)(messages))
            turn += 1
    middle = {key: median(values) for key, values in rates.items()}
    figures = {
        f"{broker}_{verb}_vs_{peer}": median(map(truediv, rates["ours", verb], rates[peer, verb]))
        for peer, verb in RATIOS
        if peer in makers
    }
    ratio = end_to_end(middle, "ours") / end_to_end(middle, "babelqueue")
    figures[f"{broker}_end_to_end_vs_babelqueue"] = ratio
    per_second = {f"{broker}_{name}_{verb}_per_s": rate for (name, verb), rate in middle.items()}
    return {**figures, **per_second, f"{broker}_rounds": turn}


def end_to_end(rates: dict[tuple[str, str], float], name: str) -> float:
    return 1 / (1 / rates[name, "publish"] + 1 / rates[name, "consume"])


def resident() -> int:
    """Give the resident memory of this process in KiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


def memory(broker: str, messages: int) -> dict[str, Any]:
    """Send so many messages through, a hundredth at a time; note the memory at every tenth."""
    with running(broker) as server, ExitStack() as stack:
        queue = f"bench-memory-{uuid4().hex[:8]}"
        ours = Ours((server.url + OPTIONS.get(broker, "")).format(queue), queue)
        stack.callback(ours.close)
        marks: list[int] = []
        for tenth in range(10):
            for _ in range(10):
                ours.publish(messages // 100)
                ours.consume(messages // 100)
            marks.append(resident())
            print(f"{broker}: {tenth + 1}0 %: {marks[-1]} KiB", file=sys.stderr)
    return {
        "memory_broker": broker,
        "memory_messages": messages // 100 * 100,
        "memory_kib_at_each_tenth": marks,
        "memory_last_vs_first": marks[-1] / marks[0],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="short rounds, within 45 s")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--broker", action="append", choices=COUNTS, help="only this one")
    parser.add_argument("--memory", metavar="BROKER", choices=COUNTS)
    parser.add_argument("--messages", type=int, default=1_000_000)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    figures: dict[str, Any]
    if args.memory:
        figures = memory(args.memory, args.messages)
    else:
        figures = measure_all(args.broker or list(COUNTS), quick=args.quick)
    if args.json:
        print(json.dumps(figures))
        return 0
    for name, value in figures.items():
        print(name, f"{value:.2f}" if isinstance(value, float) else value)
    return 0


def measure_all(brokers: list[str], *, quick: bool) -> dict[str, Any]:
    """Measure the brokers one after the other; quickly, they all start together before."""
    peers.install("babelqueue==1.24.0")
    began, figures = monotonic(), dict[str, Any]()
    names = [name for name in COUNTS if name in brokers]
    if not quick:
        for broker in names:
            with running(broker) as server:
                figures |= measure(broker, server.url, FULL)
    else:
        with ExitStack() as stack, ThreadPoolExecutor(len(names)) as pool:
            slowest_first = [*reversed(names)]
            starting = {
                name: pool.submit(stack.enter_context, running(name)) for name in slowest_first
            }
            for broker in names:
                figures |= measure(broker, starting[broker].result().url, QUICK)
    return {**figures, "seconds": monotonic() - began, "load_1m": os.getloadavg()[0]}


if __name__ == "__main__":
    sys.exit(main())

"""One fault run: a broker of its own, a publisher, workers, and the faults of the schedule.

The run ends when every message has had its effect and all faults were injected, or when there was
no progress for `patience` seconds: then messages are lost, and the verdict says which. In any case
the processes and the broker are ended before this returns.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from time import monotonic, sleep
from typing import Final

from tallystick.brokers.owner import scratch
from tallystick.brokers.servers import Running, down, up
from tallystick.core.errors import Unavailable
from tallystick.suites.faults.children import PUBLISHER, WORKER, Child
from tallystick.suites.faults.judge import Evidence
from tallystick.suites.faults.ledger import Ledger, id_of, read_ranges, read_runs
from tallystick.suites.faults.programs import Task
from tallystick.suites.faults.proxy import Proxy
from tallystick.suites.faults.schedule import Fault, draw
from tallystick.suites.faults.table import Subject

__all__ = ["Plan", "Run", "run"]

_TICK: Final = 0.05
_GLANCE: Final = 0.005
_STOPPED: Final = 3.0
_HANGING: Final = 3.0
_QUIET: Final = 1.0
_UP: Final = 120.0
_HANDLING: Final = 0.03
_FEW: Final = 2000
"""A handler takes 30 ms, less if there are more messages, so that faults hit running handlers."""
_THROUGH_PROXY: Final = ("cut", "hang")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The broker and the faults of a run."""

    subject: Subject
    messages: int
    faults: Mapping[str, int]
    seed: int = 1
    workers: int = 2
    patience: float = 90.0
    options: str | None = None
    worker: tuple[str, ...] = WORKER


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of a run: the evidence, the injected faults, and notes."""

    evidence: Evidence
    injected: Counter[str]
    notes: tuple[str, ...]
    seconds: float
    version: str


def run(plan: Plan, *, advance: Callable[[int], None] = lambda _: None) -> Run:
    """Run a plan; `advance` gets the number of effects."""
    began = monotonic()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=scratch())))
        stack.callback(down, plan.subject.name, wipe=True, home=home, limit=0)
        broker = up(plan.subject.name, fresh=True, home=home, limit=_UP, stays=False)
        stage = _Stage(plan, home, broker, stack)
        stage.play(advance)
        return Run(
            evidence=stage.evidence(),
            injected=stage.injected,
            notes=tuple(stage.notes),
            seconds=monotonic() - began,
            version=broker.version,
        )


class _Stage:
    """The processes of one run, and the faults injected into them."""

    def __init__(self, plan: Plan, home: Path, broker: Running, stack: ExitStack) -> None:
        self.injected: Final[Counter[str]] = Counter()
        self.notes: Final[list[str]] = []
        self._plan: Final = plan
        self._home: Final = home
        self._broker = broker
        self._chance: Final = Random(plan.seed)  # noqa: S311 (a schedule, not a secret)
        self._folder: Final = home / "run"
        self._folder.mkdir()
        self._proxy: Final = self._start_proxy(stack)
        self._ledger: Final = Ledger(self._folder / "effects.db")
        stack.callback(self._ledger.close)
        names = [f"worker-{n}" for n in range(plan.workers)]
        self._workers: Final = [Child(plan.worker, self._task(name)) for name in names]
        self._publisher: Final = Child(PUBLISHER, self._task("publisher"))
        for child in (self._publisher, *self._workers):
            stack.callback(child.kill)
            child.start()

    def play(self, advance: Callable[[int], None]) -> None:
        """Inject the faults at their number of effects; end when all is done or nothing moves."""
        plan = self._plan
        faults = list(draw(plan.faults, plan.messages, plan.seed))
        count, last = 0, monotonic()
        while faults or not self._published() or self._ledger.count_messages() < plan.messages:
            self._supervise()
            now = self._ledger.count()
            if now > count or self._is_starting():
                count, last = now, monotonic()
                advance(count)
            if faults and count >= faults[0].after:
                self._inject(faults.pop(0))
                last = monotonic()
            if monotonic() - last > plan.patience:
                self.notes.append(f"no progress for {plan.patience:g} s, at {count} effects")
                break
            sleep(_TICK)
        self._await_silence()
        self._leave()

    def evidence(self) -> Evidence:
        """Read the files of all processes."""
        seed = self._plan.seed
        runs = read_runs(worker.runs for worker in self._workers)
        sent = read_ranges(self._publisher.runs, "c")
        tried = read_ranges(self._publisher.runs, "a")
        return Evidence(
            sent=Counter({id_of(seed, n): count for n, count in sent.items()}),
            tried=frozenset(id_of(seed, n) for n in tried),
            effects=Counter(
                one if one == id_of(seed, n) else f"{one} as {n}"
                for one, n in self._ledger.effects()
            ),
            begun=runs["b"],
            ended=runs["e"],
            skipped=runs["s"],
        )

    def _task(self, name: str) -> Task:
        plan = self._plan
        return Task(
            url=self._url(),
            queue="faults",
            folder=str(self._folder),
            name=name,
            seed=plan.seed,
            messages=plan.messages,
            backlog=max(100, plan.messages // 10),
            handling=min(_HANDLING, _HANDLING * _FEW / plan.messages),
        )

    def _url(self) -> str:
        subject, broker = self._plan.subject, self._broker
        url = broker.url
        if self._proxy is not None:
            url = url.replace(f":{next(iter(broker.ports.values()))}", f":{self._proxy.port}")
        options = subject.options if self._plan.options is None else self._plan.options
        return f"{url}{'&' if '?' in url else '?'}{options}" if options else url

    def _start_proxy(self, stack: ExitStack) -> Proxy | None:
        if not any(self._plan.faults.get(kind) for kind in _THROUGH_PROXY):
            return None
        return stack.enter_context(Proxy(next(iter(self._broker.ports.values()))))

    def _published(self) -> bool:
        return self._publisher.poll() == 0

    def _is_starting(self) -> bool:
        return not all(worker.has_begun() for worker in self._workers)

    def _supervise(self) -> None:
        for worker in self._workers:
            worker.keep_alive()
        if not self._published():
            self._publisher.keep_alive()

    def _inject(self, fault: Fault) -> None:
        began, count = monotonic(), self._ledger.count()
        what = _INJECT[fault.kind](self)
        self.injected[fault.kind] += 1
        lasted = monotonic() - began
        self.notes.append(f"{fault.kind} at {count}: {what} ({lasted:.1f} s)")

    def kill_broker(self) -> str:
        os.kill(self._broker.pid, signal.SIGKILL)
        again = up(self._plan.subject.name, home=self._home, limit=_UP, stays=False)
        if again.url != self._broker.url:
            raise Unavailable(
                f"{again.name} restarted on another port", code="port", hint="run it again"
            )
        self._broker = again
        return "killed, then restarted with its data"

    def stop_broker(self) -> str:
        os.kill(self._broker.pid, signal.SIGSTOP)
        try:
            sleep(_STOPPED)
        finally:
            os.kill(self._broker.pid, signal.SIGCONT)
        return "stopped (SIGSTOP), then continued"

    def kill_worker(self) -> str:
        end = monotonic() + self._plan.patience
        while monotonic() < end:
            self._supervise()
            if self._is_starting():  # a slow start is not idleness
                end = monotonic() + self._plan.patience
            worker = self._chance.choice(self._workers)
            if at_work := worker.kill_in_mid_handler():
                worker.start()
                return f"{worker.task.name} killed while {at_work} messages were in handlers"
            sleep(_GLANCE)
        raise Unavailable(
            "no worker had a message in a handler, so none was killed",
            code="idle",
            hint=self._last_words(),
        )

    def cut(self) -> str:
        assert self._proxy is not None
        return f"{self._proxy.cut()} connections reset"

    def hang(self) -> str:
        assert self._proxy is not None
        self._proxy.hang()
        sleep(_HANGING)
        count = self._proxy.cut()
        self._proxy.flow()
        return f"{count} connections left half open, then reset"

    def _await_silence(self) -> None:
        """Wait until no more messages are delivered, to see late duplicates and unexpected ones."""
        end = monotonic() + self._plan.patience
        size, last = -1, monotonic()
        while monotonic() - last < _QUIET and monotonic() < end:
            now = sum(one.runs.stat().st_size for one in self._workers if one.runs.exists())
            if now != size:
                size, last = now, monotonic()
            sleep(_TICK)

    def _last_words(self) -> str:
        return "; ".join(f"{one.task.name}: {one.last_words()}" for one in self._workers)

    def _leave(self) -> None:
        for worker in self._workers:
            if worker.poll() is None and (code := worker.stop()):
                self.notes.append(
                    f"{worker.task.name}: exit code {code}; last log line: {worker.last_words()}"
                )


_INJECT: Final[Mapping[str, Callable[[_Stage], str]]] = {
    "kill_broker": _Stage.kill_broker,
    "kill_worker": _Stage.kill_worker,
    "stop_broker": _Stage.stop_broker,
    "cut": _Stage.cut,
    "hang": _Stage.hang,
}

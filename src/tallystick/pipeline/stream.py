"""A stream: read logs as they grow, and publish the tables whenever there is something new.

Spark's Structured Streaming asks for new ranges and keeps its offsets in a checkpoint. A batch is a
list of ranges; each becomes a part of the lake, once: a batch that runs again after a crash finds
its parts and reads nothing. The tables are built beside the query, from all complete parts of the
lake, and publishing takes at most about half of the time. After a kill, the next start continues,
and its tables equal those of a stream that was never stopped.
"""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import TallystickError
from tallystick.pipeline.clean import KEEP, clean
from tallystick.pipeline.copies import find_copies, join_copies
from tallystick.pipeline.judge import build_rules
from tallystick.pipeline.kafka import read_access
from tallystick.pipeline.lake import Lake, open_lake, read_manifest
from tallystick.pipeline.logs import BATCH, Logs, find_logs
from tallystick.pipeline.merge import find_merges, join_parts
from tallystick.pipeline.parts import MARK, finish_part
from tallystick.pipeline.ranges import check_grown, find_new, read_parts
from tallystick.pipeline.run import build_run, plan_of, read_fresh, registry_hash
from tallystick.pipeline.session import explain
from tallystick.pipeline.sources import Access, Source
from tallystick.runtime.address import read_address
from tallystick.schemas.catalog import Catalog, load_catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["Stream", "make_stream", "stream"]

_LOOK: Final = 1
_STARTS: Final = 5
_SLOW_START: Final = "worker failed to connect back"
"""Spark gives a Python process 10 seconds to start, which is too short on a very busy machine."""
_LOG: Final = logging.getLogger("tallystick.pipeline")
Tell = Callable[[dict[str, Any]], None]
"""Is told the manifest of every publication."""


@dataclass(frozen=True, slots=True)
class Stream:
    """The task of a stream: inputs, rules and lake; the registry is read at the start."""

    inputs: tuple[str, ...]
    access: Mapping[str, Access]
    catalog: Catalog
    rules: str
    lake: Path
    weight: int

    @property
    def checkpoint(self) -> Path:
        """Give the folder of the query; other inputs or rules are another query."""
        plain = [str(read_address(one)) if "://" in one else one for one in self.inputs]
        name = sha256(json.dumps(plain).encode()).hexdigest()[:24]
        return self.lake / "streams" / self.rules / name


def make_stream(inputs: Sequence[str], registry: Path, lake: Path) -> Stream:
    """Look at everything that can be wrong before any work is done."""
    catalog = load_catalog(registry)
    build_rules(catalog)
    rules = registry_hash(catalog)
    access = dict(read_access(one) for one in inputs if "://" in one)
    logs = find_logs(inputs)
    known = read_parts(Lake(lake).part(rules, ""))
    copies = find_copies(Lake(lake), rules)
    for log in logs:
        check_grown(join_copies(known.get(log.path, []), copies.get(log.path, [])), log)
    return Stream(tuple(inputs), access, catalog, rules, lake, sum(one.weight for one in logs))


def stream(
    task: Stream,
    session: SparkSession,
    *,
    every: str = "",
    stopping: Event | None = None,
    tell: Tell = lambda _: None,
    keep: int = KEEP,
    batch: int = BATCH,
) -> dict[str, Any] | None:
    """Read until stopped, or, without `every`, the present data; return the last manifest."""
    with open_lake(task.lake) as lake:
        state = _State(task, lake, session, keep)

        def follow() -> None:
            query = _start(task, session, state.read, every, batch)
            try:
                while not query.awaitTermination(_LOOK) and not (stopping and stopping.is_set()):
                    if every:
                        state.publish(tell)
            finally:
                query.stop()

        try:
            state.read_copies()
            _try_again(follow)
        except TallystickError:
            raise
        except Exception as error:
            raise (state.failure or explain(error)) from error
        state.publish(tell, last=True)
        return state.manifest


def _try_again(follow: Callable[[], None]) -> None:
    """Run a query; start it again from its checkpoint while the machine is too busy for Python."""
    for left in reversed(range(_STARTS)):
        try:
            return follow()
        except Exception as error:
            if not left or _SLOW_START not in str(error):
                raise
            _LOG.warning("the stream starts again: Spark's Python process did not start in time")
    return None


def _start(
    task: Stream,
    session: SparkSession,
    read: Callable[[DataFrame, int], None],
    every: str,
    batch: int,
) -> StreamingQuery:
    session.dataSource.register(Logs)
    source = session.readStream.format("tally_logs").option("url", json.dumps(task.inputs))
    logs = source.option("batch", batch).load()
    writer = logs.writeStream.foreachBatch(read)
    writer = writer.option("checkpointLocation", str(task.checkpoint))
    if every:
        return writer.trigger(processingTime=every).start()
    return writer.trigger(availableNow=True).start()


class _State:
    """The parts in the lake, and which of them were published."""

    def __init__(self, task: Stream, lake: Lake, session: SparkSession, keep: int) -> None:
        self._task, self._lake, self._session, self._keep = task, lake, session, keep
        self._lock = Lock()
        self._parts = read_parts(lake.part(task.rules, ""))
        self._not_before = 0.0
        self.failure: TallystickError | None = None
        self.manifest: dict[str, Any] | None = None

    def read_copies(self) -> None:
        """Judge again what was streamed into the lake under another registry."""
        copies = find_copies(self._lake, self._task.rules)
        self._read([one for path, held in copies.items()
                    for one in join_copies(self._known(path), held) if one.copy])  # fmt: skip

    def read(self, frame: DataFrame, _number: int) -> None:
        """Read the ranges of one batch that are not in the lake yet."""
        try:
            logs = [self._log(*row) for row in frame.collect()]
            self._read([one for log in logs for one in find_new(self._known(log.path), log)])
        except TallystickError as error:
            self.failure = error
            raise

    def _read(self, fresh: list[Source]) -> None:
        plan = plan_of(self._task.catalog, self._task.rules, fresh, self._lake.root)
        read_fresh(plan, self._lake, self._session, lambda *_: None)
        with self._lock:
            for one in fresh:
                self._parts[one.path] = sorted(
                    [*self._known(one.path), one], key=lambda part: part.start
                )

    def _known(self, path: str) -> list[Source]:
        return self._parts.get(path, [])

    def _log(self, path: str, form: str, start: int, stop: int, identity: str) -> Source:
        access = next((one for name, one in self._task.access.items() if path.startswith(name)), ())
        return Source(path, form, stop - start, None, start, access, identity=identity)

    def _merge(self) -> None:
        """Join small parts; batches that are read meanwhile add theirs behind them."""
        folder = self._lake.part(self._task.rules, "")
        for path, parts in list(self._parts.items()):
            for group in find_merges(parts):
                whole, receipt = join_parts(folder, group)
                finish_part(folder / whole.key, whole, [receipt])
                with self._lock:
                    kept = [one for one in self._known(path) if one not in group]
                    self._parts[path] = sorted([*kept, whole], key=lambda one: one.start)
                for one in group:
                    (folder / one.key / MARK).unlink()
                    shutil.rmtree(folder / one.key)

    def publish(self, tell: Tell, *, last: bool = False) -> None:
        """Publish the tables of all parts, if there are new ones and it is not too soon."""
        if not last and monotonic() < self._not_before:
            return
        self._merge()
        with self._lock:
            sources = [part for path in sorted(self._parts) for part in self._parts[path]]
        task = self._task
        plan = plan_of(task.catalog, task.rules, sources, self._lake.root, task.inputs)
        if plan.is_current:
            self.manifest = self.manifest or read_manifest(self._lake.root)
            return
        if not sources and not last:
            return
        begun = monotonic()
        self.manifest = build_run(plan, self._lake, self._session, lambda *_: None)
        clean(self._lake, self._keep)
        self._not_before = 2 * monotonic() - begun
        tell(self.manifest)

"""A run: find new input, read and judge it, build every table, check, publish.

The key of a run is the state of its inputs and its rules (registry and code). The same key is not
run twice. An input file is read once under the same rules; built tables are made from all parts
each time. messages = envelopes + quarantine, per file and in total: a run that fails this or any
check of a table publishes nothing.
"""

from __future__ import annotations

import os
import platform
import shutil
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from tallystick import __version__
from tallystick.core.errors import TallystickError, Unavailable
from tallystick.pipeline.arrow import pa, pq
from tallystick.pipeline.build import build_tables, read_files
from tallystick.pipeline.clean import KEEP, clean
from tallystick.pipeline.copies import find_copies, join_copies
from tallystick.pipeline.ingest import Job, Receipt, ingest, part_tables
from tallystick.pipeline.judge import build_rules
from tallystick.pipeline.lake import Lake, open_lake, read_manifest
from tallystick.pipeline.parts import MARK, Part, finish_part, read_part
from tallystick.pipeline.ranges import check_grown, check_unread, find_new, is_log, read_parts
from tallystick.pipeline.session import LOCAL, explain, open_session
from tallystick.pipeline.sources import Source, Split, find_sources, split
from tallystick.pipeline.tables import TABLES
from tallystick.runtime.address import read_address
from tallystick.schemas.catalog import Catalog, load_catalog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "FORMAT", "Plan", "Watch", "build_run", "make_plan", "plan_of", "read_fresh",
    "registry_hash", "run",
]  # fmt: skip

FORMAT: Final = 3
"""Changes whenever the same inputs would give other tables."""

_SMALL: Final = 64 << 20
_TASK: Final = 64 << 20
"""About how many bytes a task reads: small files share one, since a task has a price itself."""
Watch = Callable[[str, int, float], None]
"""Is told the stage, the rows so far, and the share of it that is done."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run: its key, its inputs, and the new ones among them."""

    key: str
    rules: str
    catalog: Catalog
    sources: tuple[Source, ...]
    fresh: tuple[Source, ...]
    lake: Path
    is_current: bool
    given: tuple[str, ...] = ()
    """The names the inputs were found by."""


@dataclass(slots=True)
class _State:
    """The progress of a run."""

    started: str
    seconds: dict[str, float] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    figures: Counter[str] = field(default_factory=Counter)
    parts: dict[str, Part] = field(default_factory=dict)


def registry_hash(catalog: Catalog) -> str:
    """Name the registry by all that can change a verdict: URNs, and every schema in reach."""
    digest = sha256(f"{__version__}/{FORMAT}".encode())
    for urn, entry in sorted(catalog.entries.items()):
        digest.update(f"\0{urn}\0{entry.path}".encode())
    for path, document in sorted(catalog.documents.items()):
        digest.update(f"\0{path}\0{document.text}".encode())
    return digest.hexdigest()[:24]


def make_plan(inputs: Sequence[str], registry: Path, lake: Path) -> Plan:
    """Look at everything that can be wrong before any work is done."""
    catalog = load_catalog(registry)
    build_rules(catalog)
    rules = registry_hash(catalog)
    sources = _cut_logs(find_sources(inputs), Lake(lake), rules)
    return plan_of(catalog, rules, sources, lake, inputs)


def _shown(name: str) -> str:
    """Give the name of an input as it may be written down: no password, from any folder."""
    return str(read_address(name)) if "://" in name else str(Path(name).absolute())


def plan_of(
    catalog: Catalog,
    rules: str,
    sources: Sequence[Source],
    lake: Path,
    inputs: Sequence[str] = (),
) -> Plan:
    """Return the plan of a run over some sources: known sources are not read again."""
    key = sha256("\0".join([rules, *(one.key for one in sources)]).encode()).hexdigest()[:24]
    given = tuple(_shown(one) for one in inputs)
    there = Lake(lake)
    fresh = tuple(one for one in sources if not (there.part(rules, one.key) / MARK).exists())
    current = (lake / "manifest.json").exists() and read_manifest(lake)["key"] == key
    return Plan(key, rules, catalog, tuple(sources), fresh, lake, current, given)


def _cut_logs(sources: Sequence[Source], lake: Lake, rules: str) -> list[Source]:
    """Return each log as the ranges already read and the new ones."""
    if not any(is_log(one) for one in sources):
        return list(sources)
    known, copies = read_parts(lake.part(rules, "")), find_copies(lake, rules)
    found: list[Source] = []
    for one in sources:
        if is_log(one):
            before = join_copies(known.get(one.path, []), copies.get(one.path, []))
            check_grown(before, one)
            found += [*before, *find_new(before, one)]
        else:
            found.append(one)
    return found


def run(
    plan: Plan,
    *,
    master: str = LOCAL,
    conf: Mapping[str, str] | None = None,
    watch: Watch = lambda *_: None,
    session: SparkSession | None = None,
    force: bool = False,
    keep: int = KEEP,
) -> dict[str, Any]:
    """Do a run and give its manifest; the same run is not done twice unless forced."""
    if plan.is_current and not force:
        return {**read_manifest(plan.lake), "skipped": True}
    with open_lake(plan.lake) as lake:
        check_unread(lake.part(plan.rules, ""), plan.fresh)
        if session is not None:
            manifest = build_run(plan, lake, session, watch)
        else:
            begun = monotonic()
            watch("starting Spark", 0, 0.0)
            small = sum(one.weight for one in plan.sources) < _SMALL
            with open_session(master, conf, small=small) as own:
                manifest = build_run(plan, lake, own, watch, monotonic() - begun)
        clean(lake, keep, unfinished=True)
        return manifest


def build_run(
    plan: Plan, lake: Lake, session: SparkSession, watch: Watch, started: float = 0.0
) -> dict[str, Any]:
    """Read new input, build every table and publish them; the lake is locked."""
    state = _State(datetime.now(UTC).isoformat(timespec="seconds"))
    state.seconds["session"] = round(started, 3)
    folder = lake.begin(plan.key)
    try:
        begun = monotonic()
        read_fresh(plan, lake, session, watch)
        state.seconds["read"] = round(monotonic() - begun, 3)
        _link_parts(plan, lake, folder, state)
        rows = state.rows["messages"]
        state.seconds |= build_tables(
            session,
            plan.catalog,
            _part_frames(plan, lake, session),
            folder,
            dict(state.figures),
            lambda name, share: watch(name, rows, share),
        )
        watch("done", rows, 1.0)
        manifest = _manifest(plan, folder, state)
        place = lake.publish(folder, manifest)
    except TallystickError:
        raise
    except Exception as error:
        raise explain(error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {**manifest, "folder": f"runs/{place.name}", "skipped": False}


def read_fresh(plan: Plan, lake: Lake, session: SparkSession, watch: Watch) -> None:
    """Read new input; each source becomes one complete part, or none.

    The unfinished part of a killed run is deleted: it may have been split in another way.
    """
    for source in plan.fresh:
        shutil.rmtree(lake.part(plan.rules, source.key), ignore_errors=True)
    splits = [part for source in plan.fresh for part in split(source)]
    splits.sort(key=lambda one: -one.size)
    parts = lake.part(plan.rules, "")
    ticks = lake.begin(f"{plan.key}.ticks")
    job = Job(plan.catalog, plan.rules, str(parts), str(ticks))
    total = sum(one.size for one in splits) or 1
    try:
        with _watching(ticks, splits, total, watch):
            receipts = _schedule(session, job, splits)
    finally:
        shutil.rmtree(ticks)
    done: dict[str, dict[int, Receipt]] = {}
    for receipt in receipts:
        done.setdefault(receipt.source, {})[receipt.number] = receipt
    expected = Counter(one.source.key for one in splits)
    for source in plan.fresh:
        found = done.get(source.key, {})
        if len(found) != expected[source.key]:
            raise Unavailable(f"{source.path}: a part was not read", code="check.parts")
        finish_part(lake.part(plan.rules, source.key), source, list(found.values()))


def _schedule(session: SparkSession, job: Job, splits: list[Split]) -> list[Receipt]:
    if not splits:
        return []
    context = session.sparkContext
    shared = context.broadcast(job)
    try:
        wanted = max(2 * context.defaultParallelism, sum(one.size for one in splits) // _TASK)
        hands = [splits[at::wanted] for at in range(min(wanted, len(splits)))]
        tasks = context.parallelize(hands, len(hands))
        found: list[Receipt] = tasks.flatMap(
            lambda hand: [ingest(shared.value, one) for one in hand]
        ).collect()
    finally:
        shared.unpersist()
    return found


def _part(lake: Lake, plan: Plan, source: Source) -> Part:
    part = read_part(lake.part(plan.rules, source.key))
    if part is None:
        raise Unavailable(f"{source.path}: its part is missing in the lake", code="check.parts")
    return part


def _link_parts(plan: Plan, lake: Lake, folder: Path, state: _State) -> None:
    """Give the run its tables of rows: links to the parts, no copies."""
    names = [name for name, table in TABLES.items() if table.build is None]
    for name in names:
        state.figures.update(dict.fromkeys(TABLES[name].row_figures, 0))
        (folder / name).mkdir()
        state.rows[name] = 0
    for source in plan.sources:
        part = lake.part(plan.rules, source.key)
        known = state.parts[source.key] = _part(lake, plan, source)
        state.figures.update(known.figures)
        for name in names:
            state.rows[name] += known.rows[name]
            for file in sorted(part.glob(f"{name}-*.parquet")):
                place = folder / name / f"{source.key}-{file.stem.rpartition('-')[2]}.parquet"
                try:
                    os.link(file, place)
                except OSError:
                    shutil.copyfile(file, place)
    if state.rows["messages"] != state.rows["envelopes"] + state.rows["quarantine"]:
        raise Unavailable(
            "the number of messages is not the sum of envelopes and quarantine",
            code="check.nothing_lost",
        )


def _part_frames(plan: Plan, lake: Lake, session: SparkSession) -> dict[str, DataFrame]:
    frames = {}
    for name, schema in part_tables().items():
        table = TABLES.get(name)
        if table is not None and table.partial is None:
            continue
        files = [
            str(file)
            for source in plan.sources
            for file in sorted(lake.part(plan.rules, source.key).glob(f"{name}-*.parquet"))
        ]
        frames[name] = read_files(session, schema, files)
    return frames


def _manifest(plan: Plan, folder: Path, state: _State) -> dict[str, Any]:
    import pyspark  # noqa: PLC0415

    tables = {}
    for name in TABLES:
        files = sorted((folder / name).glob("*.parquet"))
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        tables[name] = {"rows": rows, "files": [f"{name}/{file.name}" for file in files]}
    summary = pq.read_table(folder / "summary").to_pylist()
    fresh = {one.key for one in plan.fresh}
    return {
        "key": plan.key,
        "format": FORMAT,
        "started": state.started,
        "given": list(plan.given),
        "registry": {"manifest": plan.catalog.manifest, "rules": plan.rules},
        "versions": {
            "tallystick": __version__, "pyspark": pyspark.__version__, "pyarrow": pa.__version__,
            "python": platform.python_version(),
        },
        "inputs": [
            {
                **one.as_json(), "key": one.key, "read_now": one.key in fresh,
                "rows": {
                    name: count for name, count in state.parts[one.key].rows.items()
                    if name in ("messages", "envelopes", "quarantine", "verdicts")
                },
            }
            for one in plan.sources
        ],
        "tables": tables,
        "figures": {row["figure"]: row["value"] for row in summary},
        "seconds": state.seconds,
    }  # fmt: skip


class _watching:  # noqa: N801 - used as a statement
    """Tell a watcher every half second how far the tasks are."""

    def __init__(self, ticks: Path, splits: list[Split], total: int, watch: Watch) -> None:
        self._ticks, self._splits, self._total, self._watch = ticks, splits, total, watch
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, daemon=True)

    def __enter__(self) -> None:
        self._watch("reading", 0, 0.0)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _tell(self) -> None:
        while not self._over.wait(0.5):
            rows = done = 0
            for one in self._splits:
                try:
                    rows += int((self._ticks / f"{one.source.key}-{one.number:05}").read_text())
                    done += one.size
                except (OSError, ValueError):  # not begun, or being written
                    continue
            self._watch("reading", rows, done / self._total)

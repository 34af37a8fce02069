"""Validate all past traffic against a candidate schema: how many would fail, since when, from whom.

Every accepted message of the URN in the lake is validated again, file by file, in this process or
as Spark tasks. The result never contains a value: samples are the masked copies of the lake, and a
violation is a pointer and a keyword.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tallystick.pipeline.arrow import pc, pq
from tallystick.pipeline.lake import read_manifest, table_files
from tallystick.schemas.validate import compile_schema

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

__all__ = ["Producer", "Replayed", "replay"]

_COLUMNS: Final = ["source", "position", "urn", "node", "lang", "created_at", "data"]
_SAMPLES: Final = 5
_load: Final = msgspec.json.Decoder().decode


@dataclass(slots=True)
class Producer:
    """The messages of one program that the candidate would reject; times are of the messages."""

    node: str | None
    lang: str | None
    broken: int = 0
    first: int | None = None
    last: int | None = None


@dataclass(slots=True)
class Replayed:
    """The result of a candidate schema on the messages of one URN."""

    urn: str
    messages: int = 0
    broken: int = 0
    producers: list[Producer] = field(default_factory=list)
    rules: list[tuple[str, str, int]] = field(default_factory=list)
    samples: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """Give it as plain values."""
        return asdict(self)


@dataclass(slots=True)
class _Part:
    messages: int = 0
    producers: dict[tuple[str | None, str | None], Producer] = field(default_factory=dict)
    rules: Counter[tuple[str, str]] = field(default_factory=Counter)
    samples: list[tuple[str, str, int]] = field(default_factory=list)


def replay(lake: Path, urn: str, schema: Any, *, session: SparkSession | None = None) -> Replayed:
    """Validate every accepted message of a URN against a self-contained schema."""
    compile_schema(schema)  # a malformed candidate, or one that refers elsewhere, is told now
    files = [str(one) for one in table_files(lake, "envelopes")]
    if session is None:
        parts: Iterable[_Part] = (_replay_file(schema, urn, one) for one in files)
    else:
        tasks = session.sparkContext.parallelize(files, max(1, len(files)))
        parts = tasks.map(lambda one: _replay_file(schema, urn, one)).collect()
    return _add(lake, urn, parts)


def _replay_file(schema: Any, urn: str, file: str) -> _Part:
    checker = compile_schema(schema)
    part = _Part()
    for batch in pq.ParquetFile(file).iter_batches(16_384, columns=_COLUMNS):
        kept = batch.filter(pc.equal(batch.column("urn"), urn))
        part.messages += kept.num_rows
        for row in kept.to_pylist():
            value = _load(row["data"])
            if not checker.is_valid(value):
                _note(part, row, file, [(one.pointer, one.keyword)
                                        for one in checker.violations(value)])  # fmt: skip
    return part


def _note(part: _Part, row: dict[str, Any], file: str, broken: list[tuple[str, str]]) -> None:
    who = (row["node"], row["lang"])
    producer = part.producers.setdefault(who, Producer(*who))
    when = row["created_at"]
    producer.broken += 1
    if when is not None:
        producer.first = when if producer.first is None else min(producer.first, when)
        producer.last = when if producer.last is None else max(producer.last, when)
    part.rules.update({(f"/data{pointer}", keyword) for pointer, keyword in broken})
    if len(part.samples) < _SAMPLES:
        part.samples.append((file, row["source"], row["position"]))


def _add(lake: Path, urn: str, parts: Iterable[_Part]) -> Replayed:
    total = Replayed(urn)
    producers: dict[tuple[str | None, str | None], Producer] = {}
    rules: Counter[tuple[str, str]] = Counter()
    samples: list[tuple[str, str, int]] = []
    for part in parts:
        total.messages += part.messages
        rules.update(part.rules)
        samples += part.samples
        for who, one in part.producers.items():
            known = producers.setdefault(who, Producer(*who))
            known.broken += one.broken
            firsts = [when for when in (known.first, one.first) if when is not None]
            lasts = [when for when in (known.last, one.last) if when is not None]
            known.first, known.last = min(firsts, default=None), max(lasts, default=None)
    total.broken = sum(one.broken for one in producers.values())
    total.producers = sorted(producers.values(), key=lambda one: -one.broken)
    total.rules = [(*rule, times) for rule, times in rules.most_common()]
    folder = lake / read_manifest(lake)["folder"] / "masked"
    total.samples = [_sample(folder, *one) for one in samples[:_SAMPLES]]
    return total


def _sample(folder: Path, file: str, source: str, position: int) -> dict[str, Any]:
    """Find the masked copy of a message: the parts of all tables have the same name."""
    name = file.replace("\\", "/").rpartition("/")[2]
    rows = pq.read_table(folder / name, filters=[("position", "=", position)]).to_pylist()
    masked = next((row["masked"].decode() for row in rows if row["source"] == source), None)
    return {"source": source, "position": position, "masked": masked}

"""Make every table in one plain Python process, to check the tables of Spark.

The rows come from `ingest`, which needs no Spark. The tables that Spark builds later are built here
with dictionaries, in memory, and written as Parquet too. With rules that do not use `quick`
(`judge.build_rules`), it is the definition: `python -m tests.pipeline.exact` compares the two row
by row, and `bench/pipeline.py` compares their speed.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick.pipeline.arrow import pa, pq
from tallystick.pipeline.buckets import LONGEST
from tallystick.pipeline.build import registered_paths
from tallystick.pipeline.events import number_of
from tallystick.pipeline.ingest import Job, ingest
from tallystick.pipeline.sources import split
from tallystick.pipeline.tables import FIGURES, TABLES

if TYPE_CHECKING:
    from tallystick.pipeline.run import Plan

__all__ = ["make_tables"]

Row = dict[str, Any]
_WAY: Final = ("sender", "receiver", "broker", "queue", "urn")


def make_tables(plan: Plan, out: Path) -> dict[str, int]:
    """Make every table below a folder, rows under `parts`, and give the figures of the summary."""
    parts = out / "parts"
    job = Job(plan.catalog, plan.rules, str(parts))
    figures = Counter[str](dict.fromkeys(FIGURES, 0))
    for source in plan.sources:
        for part in split(source):
            figures.update(ingest(job, part).figures)
    deliveries = make_deliveries(parts)
    for row in deliveries:
        figures[row["outcome"]] += 1
        figures["duplicated"] += row["copies"] > 0
        figures["altered"] += row["altered"]
        figures["reordered"] += row["reordered"]
    _write(out, "deliveries", deliveries)
    _write(out, "latency", make_latency(deliveries))
    figures["flows"] = _write(out, "flows", make_flows(parts))
    figures["flaky"] = _write(out, "flaky_circuits", make_flaky(parts))
    coverage = make_coverage(parts, plan)
    figures["unregistered"] = sum(not row["registered"] for row in coverage)
    figures["never_seen"] = sum(not row["seen"] for row in coverage)
    _write(out, "coverage", coverage)
    drift = [dict(key, messages=times) for key, times in _sum_up(parts, "drift").items()]
    figures["drifting"] = sum(row["messages"] for row in drift)
    _write(out, "drift", drift)
    exposure = make_exposure(parts)
    figures["exposed"] = sum(row["basis"] != "mark" for row in exposure)
    _write(out, "exposure", exposure)
    _write(out, "summary", [{"figure": one, "value": value} for one, value in figures.items()])
    return dict(sorted(figures.items()))


def _write(out: Path, name: str, made: list[Row]) -> int:
    table = pa.Table.from_pylist(made, schema=TABLES[name].schema)
    pq.write_table(table, out / f"{name}.parquet", compression="zstd")
    return int(table.num_rows)


def _rows(parts: Path, name: str, columns: Iterable[str]) -> Iterator[tuple[Any, ...]]:
    wanted = list(columns)
    for file in sorted(parts.glob(f"*/{name}-*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(65536, columns=wanted):
            yield from zip(*(batch.column(one).to_pylist() for one in wanted), strict=True)


def _sum_up(parts: Path, name: str) -> Counter[tuple[tuple[str, Any], ...]]:
    """Add up the counts of a partial table, by its key."""
    schema = TABLES[name].partial
    names = list(schema.names) if schema is not None else []
    total = Counter[tuple[tuple[str, Any], ...]]()
    for *key, times in _rows(parts, name, names):
        total[tuple(zip(names, key, strict=False))] += times
    return total


def make_deliveries(parts: Path) -> list[Row]:
    """Compare sent messages with received ones."""
    columns = ("broker", "queue", "urn", "node", "at", "clock_error", "sequence", "attempts",
               "content", "direction", "key_high", "key_low")  # fmt: skip
    seen: dict[tuple[int, int], tuple[list[Any], list[Any]]] = {}
    watched: dict[Any, set[str]] = defaultdict(set)
    for *frame, direction, high, low in _rows(parts, "messages", columns):
        if direction in ("sent", "received"):
            sides = seen.setdefault((high, low), ([], []))
            sides[direction == "received"].append(frame)
            watched[frame[0], frame[1]].add(direction)
    made: list[Row] = []
    ordered: dict[Any, list[tuple[int, int, Row]]] = defaultdict(list)
    for key, (sent, received) in seen.items():
        row, way, places = _deliver(key, sent, received, watched)
        made.append(row)
        if len(sent) == 1 and received and None not in places:
            ordered[way].append((*places, row))
    for held in ordered.values():
        latest = None
        for _, place, row in sorted(held, key=lambda one: one[:2]):
            row["reordered"] = latest is not None and place < latest
            latest = place if latest is None else max(latest, place)
    return made


def _deliver(
    key: tuple[int, int], sent: list[Any], received: list[Any], watched: dict[Any, set[str]]
) -> tuple[Row, Any, tuple[Any, Any]]:
    """Give the row of one message, the way it took, and its places among the received and sent."""
    ways = [min((one[:4] for one in side), key=lambda way: number_of(*way), default=None)
            for side in (sent, received)]  # fmt: skip
    broker, queue, urn, _ = ways[0] or ways[1] or (None,) * 4
    captured = watched[broker, queue]
    outcome = (
        "delivered" if sent and received
        else "lost" if sent and "received" in captured
        else "unexpected" if received and "sent" in captured
        else "unobserved"
    )  # fmt: skip
    rounds = len({min(max(one[7] or 0, 0), 62) for one in received})
    contents = {one[8] for one in sent}
    limits = {min(contents), max(contents)} if contents else set()
    times = [min((one[4] for one in side if one[4] is not None), default=None)
             for side in (sent, received)]  # fmt: skip
    errors: list[Any] = [max((one[5] for one in side if one[5] is not None), default=None)
              for side in (sent, received)]  # fmt: skip
    places = [min((place for one in side if (place := one[4] if one[6] is None else one[6])
                   is not None), default=None) for side in (received, sent)]  # fmt: skip
    extremes = {min(held), max(held)} if (held := [one[8] for one in received]) else set()
    row = {
        "key_high": key[0], "key_low": key[1], "outcome": outcome, "sent": len(sent),
        "received": len(received),
        "copies": max(len(received) - max(len(sent), rounds), 0) if sent else 0,
        "altered": bool(sent and received) and not extremes <= limits,
        "reordered": False, "broker": broker, "queue": queue, "urn": urn,
        "sender": ways[0][3] if ways[0] else None, "receiver": ways[1][3] if ways[1] else None,
        "sent_at": times[0], "received_at": times[1],
        "clock_error": None if None in errors else _fit(sum(errors)),
    }  # fmt: skip
    return row, (tuple(ways[0] or ()), tuple(ways[1] or ())), (places[0], places[1])


def _fit(value: int) -> int | None:
    return value if -LONGEST - 1 <= value <= LONGEST else None


def _apart(later: int, earlier: int) -> int:
    """Give the time between two moments, as `buckets` says."""
    return max(min(later - earlier, LONGEST), -LONGEST)


def _bucket(value: int) -> int:
    """Keep the 11 highest binary digits, as `buckets` says."""
    shift = max(abs(value).bit_length() - 11, 0)
    size = abs(value) >> shift << shift
    return size if value >= 0 else -size


def _percentiles(values: list[int]) -> dict[str, int | None]:
    if not values:
        return {"p50": None, "p90": None, "p99": None}
    ranked = sorted(values)
    found = {}
    for percent in (50, 90, 99):
        place = -(-percent * len(ranked) // 100) - 1
        found[f"p{percent}"] = max(min(_bucket(ranked[place]), ranked[-1]), ranked[0])
    return dict(found)


def make_latency(deliveries: list[Row]) -> list[Row]:
    """Give the percentiles of each way."""
    taken: dict[Any, list[int]] = defaultdict(list)
    errors: dict[Any, list[int | None]] = defaultdict(list)
    for row in deliveries:
        if row["outcome"] == "delivered" and None not in (row["sent_at"], row["received_at"]):
            key = tuple(row[name] for name in _WAY)
            taken[key].append(_apart(row["received_at"], row["sent_at"]))
            errors[key].append(row["clock_error"])
    return [
        {
            **dict(zip(_WAY, key, strict=True)), **_percentiles(values),
            "messages": len(values), "minimum": min(values), "maximum": max(values),
            "clock_error": None if None in errors[key] else max(errors[key]),  # type: ignore[type-var]
        }
        for key, values in taken.items()
    ]  # fmt: skip


def make_flows(parts: Path) -> list[Row]:
    """Find the cause of every sent message: the last one that its sender received in its trace."""
    steps: dict[Any, list[tuple[int, bool, int, str]]] = defaultdict(list)
    numbers: dict[str, int] = {}
    columns = ("trace_id", "node", "at", "direction", "urn")
    for trace, node, at, direction, urn in _rows(parts, "envelopes", columns):
        if direction in ("sent", "received") and at is not None:
            number = numbers.get(urn) or numbers.setdefault(urn, number_of(urn))
            steps[trace, node].append((at, direction == "sent", number, urn))
    found: dict[Any, list[tuple[int, str, int | None]]] = defaultdict(list)
    for (trace, node), held in steps.items():
        cause, when = None, None
        for at, sends, _, urn in sorted(held):
            if sends:
                delay: int | None = None if when is None else _apart(at, when)
                found[cause, urn, node].append((at, trace, delay))
            else:
                cause, when = urn, at
    made = []
    for (cause, effect, node), sent in found.items():
        delays = _percentiles([one[2] for one in sent if one[2] is not None])
        made.append({
            "cause": cause, "effect": effect, "node": node, "messages": len(sent),
            "traces": len({one[1] for one in sent}), "delay_p50": delays["p50"],
            "delay_p99": delays["p99"], "first_at": min(one[0] for one in sent),
            "last_at": max(one[0] for one in sent),
        })  # fmt: skip
    return made


def make_flaky(parts: Path) -> list[Row]:
    """Find the cases that passed in some runs and failed in others."""
    runs: dict[Any, list[tuple[str, str]]] = defaultdict(list)
    columns = ("suite", "subject", "case", "outcome", "time")
    for suite, subject, case, outcome, time in _rows(parts, "verdicts", columns):
        runs[suite, subject, case].append((outcome, time))
    made = []
    for (suite, subject, case), held in runs.items():
        failed = [time for outcome, time in held if outcome in ("failed", "errored")]
        passed = sum(outcome == "passed" for outcome, _ in held)
        if failed and passed:
            made.append({
                "suite": suite, "subject": subject, "case": case, "runs": len(held),
                "passed": passed, "failed": len(failed), "first_failed": min(failed),
                "last_failed": max(failed),
            })  # fmt: skip
    return made


def make_coverage(parts: Path, plan: Plan) -> list[Row]:
    """Set the paths that were seen against those that are registered."""
    seen = {tuple(dict(key).values()): times for key, times in _sum_up(parts, "coverage").items()}
    known = set(_rows(parts, "declared", ["urn", "path"])) | set(seen)
    registered = set(registered_paths(plan.catalog))
    return [
        {"urn": urn, "path": path, "registered": (urn, path) in registered,
         "seen": (urn, path) in known, "messages": seen.get((urn, path))}
        for urn, path in known | registered
    ]  # fmt: skip


def make_exposure(parts: Path) -> list[Row]:
    """Give personal data by mark and by form; by checksum where four in five values pass."""
    total = [dict(key, messages=times) for key, times in _sum_up(parts, "exposure").items()]
    forms = Counter[Any]()
    hits = Counter[Any]()
    for row in total:
        place = (row["urn"], row["path"], row["basis"])
        forms[place] += row["messages"]
        hits[place] += row["messages"] if row["category"] else 0
    return [
        {**row, "of_form": forms[place]}
        for row in total
        for place in [(row["urn"], row["path"], row["basis"])]
        if row["basis"] != "checksum" or (row["category"] and hits[place] >= 0.8 * forms[place])
    ]

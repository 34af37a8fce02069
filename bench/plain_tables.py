"""Every table of the pipeline made by one plain Python process: the peer of a run.

Reading and judging are those of the pipeline (`ingest`), without Spark; what Spark builds after it
is built here with dictionaries, and written as Parquet likewise. The figures must be the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from tallystick.pipeline.build import registered_paths
from tallystick.pipeline.ingest import Job, ingest
from tallystick.pipeline.run import Plan
from tallystick.pipeline.sources import split
from tallystick.pipeline.tables import TABLES
from tallystick.pipeline.tables.quarantine import STAGES


def rows(folder: Path, name: str, columns: list[str]) -> Iterator[tuple[Any, ...]]:
    for file in sorted(folder.glob(f"*/{name}-*.parquet")):
        for batch in pq.ParquetFile(file).iter_batches(65536, columns=columns):
            yield from zip(*(batch.column(one).to_pylist() for one in columns), strict=True)


def write(out: Path, name: str, made: list[dict[str, Any]]) -> None:
    pq.write_table(
        pa.Table.from_pylist(made, schema=TABLES[name].schema), out / f"{name}.parquet",
        compression="zstd",
    )  # fmt: skip


def make(plan: Plan, out: Path) -> dict[str, int]:
    """Make every table and give the figures of the summary."""
    parts = out / "parts"
    job = Job(plan.catalog, plan.rules, str(parts))
    read = Counter[str]()
    for source in plan.sources:
        for part in split(source):
            read.update(ingest(job, part).rows)
    figures = Counter[str]({"messages": read["messages"], "violations": read["violations"]})
    figures |= Counter({"verdicts": 0, "flaky": 0})
    figures.update(Counter(f"refused.{one}" for (one,) in rows(parts, "quarantine", ["stage"])))
    deliveries = make_deliveries(parts, figures)
    write(out, "deliveries", deliveries)
    write(out, "latency", make_latency(deliveries))
    flows = make_flows(parts)
    write(out, "flows", flows)
    counted = make_counted(parts, out, plan)
    names = ("valid", "unknown", "refused", "delivered", "lost", "unexpected", "unobserved",
             "duplicated", "altered", "reordered", "unregistered", "never_seen", "drifting",
             "exposed", "messages", "violations", "verdicts", "flaky")  # fmt: skip
    told = {name: figures[name] for name in names} | {"flows": len(flows)} | counted
    told |= {f"refused.{one}": figures[f"refused.{one}"] for one in STAGES}
    write(out, "summary", [{"figure": name, "value": value} for name, value in told.items()])
    return dict(sorted(told.items()))


def make_deliveries(parts: Path, figures: Counter[str]) -> list[dict[str, Any]]:
    columns = ["key_high", "key_low", "direction", "broker", "queue", "urn", "node", "at",
               "clock_error", "sequence", "attempts", "content", "verdict"]  # fmt: skip
    seen: dict[tuple[int, int], list[list[Any]]] = {}
    watched: dict[tuple[str, str], set[str]] = defaultdict(set)
    for high, low, direction, broker, queue, *rest, verdict in rows(parts, "messages", columns):
        figures[verdict] += 1
        if direction == "tapped" or direction is None:
            continue
        sides = seen.get((high, low))
        if sides is None:
            sides = seen[(high, low)] = [[], []]
        sides[direction == "received"].append((broker, queue, *rest))
        watched[(broker, queue)].add(direction)
    made = []
    order: dict[Any, list[tuple[int, int, dict[str, Any]]]] = defaultdict(list)
    for (high, low), (sent, received) in seen.items():
        one = (sent or received)[0]
        broker, queue, urn = one[:3]
        captured = watched[(broker, queue)]
        outcome = (
            "delivered" if sent and received
            else "lost" if sent and "received" in captured
            else "unexpected" if received and "sent" in captured
            else "unobserved"
        )  # fmt: skip
        again = len({max(row[7] or 0, 0) for row in received})
        contents = {row[8] for row in sent}
        errors = [max((row[5] for row in side if row[5] is not None), default=None)
                  for side in (sent, received)]  # fmt: skip
        row = {
            "key_high": high, "key_low": low, "outcome": outcome, "sent": len(sent),
            "received": len(received),
            "copies": max(len(received) - max(len(sent), again), 0) if sent else 0,
            "altered": bool(sent) and any(one[8] not in contents for one in received),
            "reordered": False, "broker": broker, "queue": queue, "urn": urn,
            "sender": sent[0][3] if sent else None,
            "receiver": received[0][3] if received else None,
            "sent_at": min((one[4] for one in sent), default=None),
            "received_at": min((one[4] for one in received), default=None),
            "clock_error": _sum(errors),
        }  # fmt: skip
        made.append(row)
        if len(sent) == 1 and received:
            way = (broker, queue, urn, sent[0][3], received[0][3])
            order[way].append((min(one[6] for one in received), min(one[6] for one in sent), row))
    for held in order.values():
        latest = -1
        for _, sent_place, row in sorted(held, key=lambda one: one[:2]):
            row["reordered"] = sent_place < latest
            latest = max(latest, sent_place)
    for row in made:
        figures[row["outcome"]] += 1
        figures["duplicated"] += row["copies"] > 0
        figures["altered"] += row["altered"]
        figures["reordered"] += row["reordered"]
    return made


def _sum(errors: list[Any]) -> int | None:
    return None if None in errors else sum(errors)


def make_latency(deliveries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    keys = ("sender", "receiver", "broker", "queue", "urn")
    taken: dict[Any, list[int]] = defaultdict(list)
    errors: dict[Any, int] = defaultdict(int)
    for row in deliveries:
        if row["outcome"] == "delivered":
            key = tuple(row[name] for name in keys)
            taken[key].append(row["received_at"] - row["sent_at"])
            errors[key] = max(errors[key], row["clock_error"])
    made = []
    for key, values in taken.items():
        values.sort()
        at = {name: values[min(int(share * len(values)), len(values) - 1)]
              for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))}  # fmt: skip
        made.append(dict(zip(keys, key, strict=True)) | at | {
            "messages": len(values), "minimum": values[0], "maximum": values[-1],
            "clock_error": errors[key],
        })  # fmt: skip
    return made


def make_flows(parts: Path) -> list[dict[str, Any]]:
    columns = ["trace_id", "node", "at", "direction", "urn"]
    steps: dict[tuple[str, str], list[tuple[int, str, str]]] = defaultdict(list)
    for trace, node, at, direction, urn in rows(parts, "envelopes", columns):
        steps[(trace, node)].append((at, direction, urn))
    found: dict[Any, list[tuple[int, str, int]]] = defaultdict(list)
    for (trace, node), held in steps.items():
        cause, when = None, 0
        for at, direction, urn in sorted(held):
            if direction == "received":
                cause, when = urn, at
            else:
                found[(cause, urn, node)].append((at, trace, at - when))
    made = []
    for (cause, effect, node), sent in found.items():
        delays = sorted(one[2] for one in sent) if cause else [None]
        made.append({
            "cause": cause, "effect": effect, "node": node, "messages": len(sent),
            "traces": len({one[1] for one in sent}), "delay_p50": delays[len(delays) // 2],
            "delay_p99": delays[min(int(0.99 * len(delays)), len(delays) - 1)],
            "first_at": min(one[0] for one in sent), "last_at": max(one[0] for one in sent),
        })  # fmt: skip
    return made


def make_counted(parts: Path, out: Path, plan: Plan) -> dict[str, int]:
    seen = Counter[tuple[str, str]]()
    for urn, path, times in rows(parts, "coverage", ["urn", "path", "messages"]):
        seen[(urn, path)] += times
    known = {(urn, path) for urn, path in rows(parts, "declared", ["urn", "path"])} | set(seen)
    registered = set(registered_paths(plan.catalog))
    write(out, "coverage", [
        {"urn": urn, "path": path, "registered": (urn, path) in registered,
         "seen": (urn, path) in known, "messages": seen.get((urn, path))}
        for urn, path in known | registered
    ])  # fmt: skip
    drift = Counter[Any]()
    names = list(TABLES["drift"].schema.names)
    for *key, times in rows(parts, "drift", names):
        drift[tuple(key)] += times
    write(out, "drift", [dict(zip(names, (*key, times), strict=True))
                         for key, times in drift.items()])  # fmt: skip
    exposure = Counter[Any]()
    for *key, times in rows(parts, "exposure", ["urn", "path", "basis", "category", "messages"]):
        exposure[tuple(key)] += times
    forms = Counter[Any]()
    hits = Counter[Any]()
    for (urn, path, basis, category), times in exposure.items():
        forms[(urn, path, basis)] += times
        hits[(urn, path, basis)] += times if category else 0
    kept = [
        {"urn": urn, "path": path, "basis": basis, "category": category, "messages": times,
         "of_form": forms[(urn, path, basis)]}
        for (urn, path, basis, category), times in exposure.items()
        if basis != "checksum"
        or (category and hits[(urn, path, basis)] >= 0.8 * forms[(urn, path, basis)])
    ]  # fmt: skip
    write(out, "exposure", kept)
    return {
        "unregistered": len(known - registered), "never_seen": len(registered - known),
        "drifting": sum(drift.values()), "exposed": sum(one["basis"] != "mark" for one in kept),
    }  # fmt: skip

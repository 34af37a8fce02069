"""Show perf circuits as a table: throughput, latencies and the clock error of each pair.

Times are in microseconds. Every latency is exact to within the clock error. The last line of a test
merges its histograms, with the largest error among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tallystick.core.extras import importing
from tallystick.core.journal import Journal
from tallystick.report.table import align

__all__ = ["show_perf"]

_POINTS: Final = ("p50", "p90", "p99", "p99.9", "max")
_MICROSECOND: Final = 1000


def show_perf(journal: Journal) -> str:
    """Give a table for each test that was measured, or nothing."""
    tests: dict[str, dict[str, Mapping[str, Any]]] = {}
    for record in journal.records:
        measured = record.verdict.measured
        if "latency_ns" in measured:
            test, sender, receiver = record.verdict.case.rsplit("/", 2)
            tests.setdefault(test, {})[f"{sender} to {receiver}"] = measured
    return "\n".join(_show(test, pairs) for test, pairs in tests.items())


def _show(test: str, pairs: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [[f"{test}, us", "sent/s", "received/s", *_POINTS, "error"]]
    rows += [_row(name, measured) for name, measured in pairs.items()]
    if len(pairs) > 1:
        rows.append(["all", "", "", *_merged(list(pairs.values()))])
    return "\n".join(align(rows)) + "\n"


def _row(name: str, measured: Mapping[str, Any]) -> list[str]:
    rates = [f"{measured[rate]:.0f}" for rate in ("sent_per_second", "received_per_second")]
    times = [measured["latency_ns"][point] for point in _POINTS]
    return [name, *rates, *map(_microseconds, (*times, measured["error_ns"]))]


def _merged(every: Sequence[Mapping[str, Any]]) -> list[str]:
    with importing("lab"):
        from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]  # noqa: PLC0415

    total, *rest = (HdrHistogram.decode(one["histogram"]) for one in every)
    for one in rest:
        total.add(one)
    times = [total.get_value_at_percentile(float(point[1:])) for point in _POINTS[:-1]]
    error = max(one["error_ns"] for one in every)
    return list(map(_microseconds, (*times, total.get_max_value(), error)))


def _microseconds(nanoseconds: float) -> str:
    return f"{nanoseconds / _MICROSECOND:.0f}"

"""Perf circuits: throughput and latency of every ordered pair of clients, with the error.

    Throughput  N messages as fast as the sender can; the rate of each end
    Latency     messages at a rate that the pair can keep; the latency of each message

A receiver reports the arrival time of each message; the latencies go into an HDR histogram of 3
digits. They are corrected by the offset of the two clocks, which is measured over the broker before
and after (`lab/timing.py`), and each is exact within the resulting error. A latency below zero but
within the error counts as zero; outside the error the clocks are not synchronised and the case
fails. No value is clamped (`clocks.Latency`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import Rejected
from tallystick.core.extras import importing
from tallystick.core.verdict import Difference, Outcome
from tallystick.lab.cases import Settings
from tallystick.lab.clocks import Latency, State
from tallystick.lab.instance import BROKEN, Evidence, Finding, Group, Instance, broken_by
from tallystick.lab.judge import judge_circuit
from tallystick.lab.pairs import Trial, trial_group
from tallystick.lab.timing import error_of

if TYPE_CHECKING:
    from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]

__all__ = ["PERCENTILES", "Load", "judge_perf", "merge", "perf_groups"]

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)
_LONGEST: Final = 3_600_000_000_000
"""Nanoseconds: the largest latency of a histogram is an hour."""
_DIGITS: Final = 3
_BATCH: Final = 20_000
"""Messages whose list is well below the largest message of a broker; more go in batches."""
_SECOND: Final = 1e9


@dataclass(frozen=True, slots=True)
class Load:
    """The load of each pair; `given` are more parameters of Appendix C."""

    messages: int = 2000
    rate: int = 200
    duration: int = 2
    size: int = 256
    given: Mapping[str, Any] = field(default_factory=dict)


def perf_groups(settings: Settings, load: Load) -> tuple[Group, ...]:
    """Give both tests, for all pairs."""
    words = f"size={load.size}"
    return (
        _group(settings, f"Throughput/messages={load.messages},{words}", load, load.messages, 0),
        _group(
            settings, f"Latency/rate={load.rate},duration={load.duration},{words}", load,
            load.rate * load.duration, load.rate,
        ),
    )  # fmt: skip


def _group(settings: Settings, path: str, load: Load, messages: int, rate: int) -> Group:
    both = {"message_bytes": load.size, "check": "count", **load.given}
    batches = max(1, -(-messages // _BATCH))
    batch = -(-messages // batches)
    sending = {**both, "num_messages": batch, "outgoing_rate": rate}
    return trial_group(
        settings,
        Trial("Circuit", path, sending, both, judge_perf, batch, timed=True, batches=batches,
              durable=bool(load.given.get("durable", False))),
    )  # fmt: skip


def judge_perf(instance: Instance, evidence: Evidence) -> Finding:
    """Judge the messages as in any circuit; then the clocks; and give the figures."""
    finding = judge_circuit(instance, evidence)
    if finding.outcome is not Outcome.PASSED:
        return finding
    sender, receiver = (part.client for part in instance.parts)
    error = error_of(evidence.clocks, sender, receiver)
    messages = instance.messages * evidence.batches
    sent, received = (evidence.reports[number].body for number in (0, 1))
    try:
        histogram, zeros = merge([received["latency"]], error)
        measured = {
            "messages": messages,
            "octets": instance.parts[0].body["message_bytes"],
            "sent_per_second": _rate(messages, sent["spans"]),
            "received_per_second": _rate(messages - len(received["spans"]), received["spans"]),
            **describe(histogram),
            "error_ns": round(error),
            "zero_within_error": zeros,
        }
    except Rejected as failure:
        difference = Difference(
            "/1/receiver/latency", f">= -{round(error)}", min(received["latency"])
        )
        return Finding(Outcome.FAILED, str(failure), (difference,))
    except BROKEN as broken:
        return broken_by(broken)
    if histogram.get_total_count() != messages:
        told = Difference("/1/receiver/latency", messages, histogram.get_total_count())
        return Finding(Outcome.FAILED, "not every message has a latency", (told,))
    return replace(finding, measured=measured)


def merge(found: Sequence[Mapping[int, int]], error: float) -> tuple[HdrHistogram, int]:
    """Put counted latencies into one histogram; give it, and how many are zero within the error."""
    with importing("lab"):
        from hdrh.histogram import HdrHistogram  # noqa: PLC0415 (perf circuits only)

    histogram, zeros = HdrHistogram(1, _LONGEST, _DIGITS), 0
    for value, count in (item for counted in found for item in counted.items()):
        state = Latency(value, error).state
        if state is State.NOT_SYNCHRONISED:
            raise Rejected(f"{state}: a message arrived {-value} ns before it was sent, but the "
                           f"clock error is only {round(error)} ns", code="clock")  # fmt: skip
        zeros += count if state is State.ZERO_WITHIN_ERROR else 0
        if not histogram.record_value(max(value, 0), count):
            raise ValueError(f"{value} ns is not a valid latency")
    return histogram, zeros


def describe(histogram: HdrHistogram) -> dict[str, Any]:
    """Return the figures of a histogram, and the encoded histogram (V2, compressed)."""
    points = {f"p{point:g}": histogram.get_value_at_percentile(point) for point in PERCENTILES}
    ends = {"min": histogram.get_min_value(), "max": histogram.get_max_value()}
    mean = {"mean": round(histogram.get_mean_value())}
    return {"latency_ns": {**ends, **mean, **points}, "histogram": histogram.encode().decode()}


def _rate(messages: int, spans: Sequence[tuple[Any, Any]]) -> float:
    """Give messages per second over the time of the batches, without the pauses between them."""
    taken = sum(int(last) - int(first) for first, last in spans)
    return round(messages / taken * _SECOND, 1) if taken > 0 else 0.0

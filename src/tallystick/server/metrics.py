"""Metrics for Prometheus (text format 0.0.4): requests, their time, reloads, checks."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tallystick.server.pool import Pool
    from tallystick.server.reload import Store

__all__ = ["CONTENT_TYPE", "Metrics", "render_metrics"]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class Metrics:
    """Counts since the start. Routes are the paths of the table, so unknown paths add no series."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.verdicts: Counter[str] = Counter()
        self.buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * len(_BOUNDS))
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        self.requests[(method, route, status)] += 1
        self.seconds[route] += seconds
        buckets = self.buckets[route]
        for at, bound in enumerate(_BOUNDS):
            if seconds <= bound:
                buckets[at] += 1


def render_metrics(metrics: Metrics, store: Store, pool: Pool) -> str:
    """Write all metrics as text."""
    rows = [
        *_family("http_requests_total", "counter", "Requests answered.", (
            (_labels(method=method, route=route, status=str(status)), count)
            for (method, route, status), count in sorted(metrics.requests.items())
        )),
        *_histogram(metrics),
        *_family("registry_subjects", "gauge", "Subjects served.",
                 [("", len(store.snapshot.subjects))]),
        *_family("registry_stale", "gauge", "1 while the registry files are invalid and the "
                 "last valid registry is served.", [("", int(bool(store.error)))]),
        *_family("registry_loaded_timestamp_seconds", "gauge",
                 "Time when the served registry was read.", [("", round(store.loaded_at, 3))]),
        *_family("registry_reloads_total", "counter", "Attempts to read changed files.", [
            (_labels(result="failed"), store.failures), (_labels(result="ok"), store.reloads),
        ]),
        *_family("candidates_total", "counter", "Candidate schemas checked.", (
            (_labels(verdict=verdict), count) for verdict, count in sorted(metrics.verdicts.items())
        )),
        *_family("candidate_timeouts_total", "counter", "Candidates that exceeded the time limit.",
                 [("", pool.timeouts)]),
    ]  # fmt: skip
    return "\n".join(rows) + "\n"


def _family(name: str, kind: str, text: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield f"# HELP tallystick_{name} {text}"
    yield f"# TYPE tallystick_{name} {kind}"
    for labels, value in samples:
        yield f"tallystick_{name}{labels} {value}"


def _histogram(metrics: Metrics) -> Iterator[str]:
    name = "tallystick_http_request_seconds"
    totals: Counter[str] = Counter()
    for (_, route, _), count in metrics.requests.items():
        totals[route] += count
    yield f"# HELP {name} Time from the request to its answer."
    yield f"# TYPE {name} histogram"
    for route in sorted(totals):
        for bound, count in zip(_BOUNDS, metrics.buckets[route], strict=True):
            yield f"{name}_bucket{_labels(route=route, le=str(bound))} {count}"
        yield f"{name}_bucket{_labels(route=route, le='+Inf')} {totals[route]}"
        yield f"{name}_sum{_labels(route=route)} {metrics.seconds[route]:.6f}"
        yield f"{name}_count{_labels(route=route)} {totals[route]}"


def _labels(**labels: str) -> str:
    """Write a label set; every value comes from our own tables and needs no escaping."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"

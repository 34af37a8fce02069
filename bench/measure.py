"""Measure functions against each other in one run: short turns, one after the other, best of all.

The best turn is what the code costs when nothing else disturbs it; taking turns gives every
contender the same weather.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def best_of(contenders: Mapping[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Give the microseconds of one call for each contender."""
    calls = {name: _calls_in(function, 0.002) for name, function in contenders.items()}
    best = dict.fromkeys(contenders, float("inf"))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, function in contenders.items():
            start = time.perf_counter()
            for _ in range(calls[name]):
                function()
            best[name] = min(best[name], (time.perf_counter() - start) / calls[name])
    return {name: value * 1e6 for name, value in best.items()}


def _calls_in(function: Callable[[], object], seconds: float) -> int:
    function()
    start = time.perf_counter()
    function()
    return max(1, int(seconds / max(time.perf_counter() - start, 1e-7)))

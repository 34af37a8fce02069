"""When a worker counts as idle."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from tallystick.core.errors import Unavailable
from tallystick.suites.faults.run import _Stage

PATIENCE = 0.05
STARTING = 40
"""Looks at a worker that is starting; they take longer than the patience."""


def stage(has_begun: Callable[[], bool], kill: Callable[[], int]) -> Any:
    worker = SimpleNamespace(
        has_begun=has_begun,
        kill_in_mid_handler=kill,
        start=lambda: None,
        task=SimpleNamespace(name="worker-0"),
    )
    return SimpleNamespace(
        _plan=SimpleNamespace(patience=PATIENCE),
        _workers=[worker],
        _chance=Random(1),
        _supervise=lambda: None,
        _last_words=lambda: "",
        _is_starting=lambda: not worker.has_begun(),
    )


def test_a_worker_that_starts_slowly_is_not_idle() -> None:
    looks = count()
    slow = stage(lambda: next(looks) >= STARTING, lambda: 3 if next(looks) > STARTING else 0)
    assert "3 messages" in _Stage.kill_worker(slow)


def test_a_worker_that_has_begun_and_handles_nothing_is_idle() -> None:
    with pytest.raises(Unavailable):
        _Stage.kill_worker(stage(lambda: True, lambda: 0))

"""The sections of a suite that run on a live Redis: case -> one call with all its steps.

The URL of Redis comes from `TALLY_REDIS_URL`, else from `tally broker up redis`. If there is
none, the cases are unsupported and say what they need; a named Redis that does not answer
fails the run (the suite's runner contract).
"""

from __future__ import annotations

import os
from typing import Any, Final

from tallystick.brokers.servers import running_url
from tallystick.core.variables import REDIS_URL
from tallystick.suites.raw import Ask, Raw
from tallystick.suites.run import NEEDS

__all__ = ["VARIABLE", "find_redis", "live_redis"]

VARIABLE: Final = REDIS_URL
_MISSING: Final = f"needs a live Redis: `tally broker up redis`, or set {VARIABLE}"


def find_redis() -> str | None:
    """Find the URL of a live Redis."""
    return os.environ.get(VARIABLE) or running_url("redis")


def live_redis(raw: Raw) -> Ask:
    """Ask: these steps on a queue in this state lead to these states."""
    case: dict[str, Any] = {key: raw.case[key] for key in ("layout", "state") if key in raw.case}
    given: dict[str, Any] = {
        **case,
        "retry_after": raw.case.get("retry_after"),
        "migration_batch_size": raw.case.get("migration_batch_size", -1),
        "steps": [_without_expect(step) for step in raw.case["steps"]],
    }
    url = find_redis()
    given |= {NEEDS: _MISSING} if url is None else {"redis_url": url}
    return Ask("redis_steps", given, {"redis_steps": _expects(raw.case["steps"])})


def _without_expect(step: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in step.items() if name != "expect"}


def _expects(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [step.get("expect", {}) for step in steps]

"""The sections of a suite that run on a live Redis: case -> one call with all its steps.

Redis is at hand when `TALLY_REDIS_URL` names one, or `tally broker up redis` has started one. If
neither is so, the cases say what they need and are not asked; one that is named and does not answer
fails the run (the suite's runner contract).
"""

from __future__ import annotations

import os
from typing import Any, Final

from tallystick.brokers.servers import status
from tallystick.suites.raw import Ask, Raw
from tallystick.suites.run import NEEDS

__all__ = ["VARIABLE", "find_redis", "live_redis"]

VARIABLE: Final = "TALLY_REDIS_URL"
_MISSING: Final = f"needs a live Redis: `tally broker up redis`, or set {VARIABLE}"


def find_redis() -> str | None:
    """Give the URL of the Redis at hand."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    now = status("redis")
    return now.found.url if now.state == "running" and now.found else None


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

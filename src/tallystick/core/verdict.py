"""A `Case` is judged and gives a `Verdict`: passed, failed, errored or unsupported.

`failed` means that the implementation is wrong; `errored` means that it could not be judged (it
crashed, hung or broke the protocol); `unsupported` is declared by the implementation, not inferred.
Differences are data: a pointer, the expected value, the found value. Measurements are data too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["Case", "Difference", "Outcome", "Verdict"]


class Outcome(StrEnum):
    """How a case ended. Journals and reports show the value."""

    PASSED = "passed"
    FAILED = "failed"
    ERRORED = "errored"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Case:
    """One executable rule: `name` is a path, `operation` is the call to the implementation."""

    name: str
    operation: str
    given: dict[str, Any]
    expect: dict[str, Any]
    clause: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where the answer differs from the expectation."""

    pointer: str
    expected: Any
    found: Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of one case for one implementation."""

    case: str
    outcome: Outcome
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    milliseconds: float = 0.0
    measured: Mapping[str, Any] = field(default_factory=dict)
    """Measurements by name, if the case has any."""

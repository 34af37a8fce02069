"""A `Case` is judged and gives a `Verdict`: passed, failed, errored or unsupported.

`failed` means that the subject is wrong; `errored` means that no judgement was possible (it
crashed, hung or broke the protocol); `unsupported` is declared by the subject, never inferred.
Differences are data: a pointer, what was expected, what was found. What was measured is data too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["Case", "Difference", "Outcome", "Verdict"]


class Outcome(StrEnum):
    """How a case ended. The value is what journals and reports say."""

    PASSED = "passed"
    FAILED = "failed"
    ERRORED = "errored"
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True)
class Case:
    """One rule made executable: `name` is a path, `operation` what the subject is asked to do."""

    name: str
    operation: str
    given: dict[str, Any]
    expect: dict[str, Any]
    clause: str = ""


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the answer departs from the expectation."""

    pointer: str
    expected: Any
    found: Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on one case for one subject."""

    case: str
    outcome: Outcome
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    milliseconds: float = 0.0
    measured: Mapping[str, Any] = field(default_factory=dict)
    """Figures by name, where the case took some."""

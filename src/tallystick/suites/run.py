"""Run cases on an implementation: one `Verdict` for each case, whatever the implementation does.

A case whose requirement is missing (`needs`, a live broker) is unsupported, with
that reason, and is not sent. An operation that the implementation does not list is unsupported. A
breach of the protocol gives `errored`, with the line that was read.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.verdict import Case, Outcome, Verdict
from tallystick.suites.judge import STEPS, judge, writable
from tallystick.suites.protocol import Answer, Breach, Identity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tallystick.suites.subject import Subject

__all__ = ["FROM_STEP", "NEEDS", "run_cases"]

NEEDS: Final = "needs"
"""In `given`: why this case cannot run here; then nothing is sent to the implementation."""

FROM_STEP: Final = "$step"
"""In a later step: `{"$step": 0, "member": "bytes_base64"}` stands for what step 0 answered."""


class _Stop(Exception):
    def __init__(self, outcome: Outcome, reason: str) -> None:
        super().__init__(reason)
        self.outcome: Final = outcome
        self.reason: Final = reason


def run_cases(cases: Iterable[Case], subject: Subject, identity: Identity) -> Iterator[Verdict]:
    """Give the verdict of each case, in order."""
    known = frozenset(identity.operations)
    for case in cases:
        began = perf_counter()
        try:
            result = _result(case, subject, known)
        except _Stop as stop:
            yield Verdict(case.name, stop.outcome, writable(stop.reason), (), _since(began))
        except Breach as breach:
            yield Verdict(case.name, Outcome.ERRORED, writable(breach.reason), (), _since(began))
        else:
            yield judge(case, result, _since(began), warnings=identity.warnings)


def _since(began: float) -> float:
    return (perf_counter() - began) * 1000


def _result(case: Case, subject: Subject, known: frozenset[str]) -> dict[str, Any]:
    if NEEDS in case.given:
        raise _Stop(Outcome.UNSUPPORTED, case.given[NEEDS])
    if case.operation != STEPS:
        return _call(case.name, case.operation, case.given, subject, known)
    results: list[dict[str, Any]] = []
    for step in case.given[STEPS]:
        given = {name: _fill(value, results) for name, value in step["given"].items()}
        if ... in given.values():
            break
        results.append(_call(case.name, step["operation"], given, subject, known))
    return {STEPS: results}


def _fill(value: Any, results: list[dict[str, Any]]) -> Any:
    if isinstance(value, dict) and FROM_STEP in value:
        return results[value[FROM_STEP]].get(value["member"], ...)
    return value


def _call(
    name: str, operation: str, given: dict[str, Any], subject: Subject, known: frozenset[str]
) -> dict[str, Any]:
    if operation not in known:
        raise _Stop(Outcome.UNSUPPORTED, f"the implementation does not support `{operation}`")
    return _settle(subject.call(name, operation, given))


def _settle(answer: Answer) -> dict[str, Any]:
    if answer.unsupported is not None:
        reason = answer.unsupported or "the implementation gave no reason"
        raise _Stop(Outcome.UNSUPPORTED, reason)
    if answer.result is None:
        raise _Stop(Outcome.ERRORED, f"the implementation reported an error: {answer.error}")
    return answer.result

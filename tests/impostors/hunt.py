"""Hunt an impostor down: run the cases that must notice it, until one fails.

A crash is no verdict: an impostor is killed only by a case that says what is wrong.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tallystick.core.verdict import Case, Outcome, Verdict
from tallystick.suites.find import load_standard
from tallystick.suites.protocol import Answer
from tallystick.suites.run import run_cases
from tallystick.suites.select import match
from tallystick.suites.tallystick_subject import TallystickSubject
from tests.impostors.codecs import codec_mutants
from tests.impostors.patches import Patches
from tests.impostors.rows import row_mutants
from tests.impostors.tables import Mutant, table_mutants

__all__ = ["every_case", "every_mutant", "killer", "not_passed"]


class Impostor(TallystickSubject):
    """Tallystick in this process; what it raises becomes an answer without a verdict."""

    def call(self, case: str, operation: str, given: dict[str, Any]) -> Answer:
        """Do one operation."""
        try:
            return super().call(case, operation, given)
        except Exception as crash:  # noqa: BLE001 - an impostor may raise anything
            return Answer(id=1, error=repr(crash))


@lru_cache(maxsize=1)
def every_case() -> tuple[Case, ...]:
    """Give the cases of the standard."""
    return load_standard().cases


@lru_cache(maxsize=1)
def every_mutant() -> tuple[Mutant, ...]:
    """Give all impostors."""
    return (*table_mutants(), *row_mutants(), *codec_mutants())


@lru_cache(maxsize=256)
def _select(globs: tuple[str, ...]) -> tuple[Case, ...]:
    tests = [match(glob) for glob in globs]
    named = {case.name: case for test in tests for case in every_case() if test(case.name)}
    return tuple(named.values())


def killer(mutant: Mutant) -> str:
    """Give the name of the first case that fails for an impostor; empty when it survives."""
    cases = _select(mutant.globs)
    subject = Impostor()
    with Patches() as patches:
        mutant.apply(patches)
        verdicts = run_cases(cases, subject, subject.start())
        return next((one.case for one in verdicts if one.outcome is Outcome.FAILED), "")


def not_passed() -> list[Verdict]:
    """Run every case without any impostor, and give what did not pass."""
    subject = Impostor()
    verdicts = run_cases(every_case(), subject, subject.start())
    return [one for one in verdicts if one.outcome is not Outcome.PASSED]

"""The verdict of a proof as one sentence: what was proved, and how much was not run."""

from __future__ import annotations

from tallystick.report.proof.values import Conclusion, ProofReport, StepState

__all__ = ["say_verdict"]


def say_verdict(report: ProofReport, name: str) -> str:
    """Give the sentence; a proof that is not whole says so."""
    total = len(report.steps)
    passed = sum(step.state is StepState.PASSED for step in report.steps)
    bad = [step.name for step in report.failures_first if step.state is not StepState.PASSED]
    counts = {
        Conclusion.CONFORMS: f": {passed} of {total} steps passed",
        Conclusion.FAILS: f": see {', '.join(bad)}",
        Conclusion.INCOMPLETE: f": see {', '.join(bad)}",
        Conclusion.UNTRIED: "",
    }[report.conclusion]
    left = len(report.not_run)
    rest = f"; {left} part{'s' if left != 1 else ''} not run" if left else ""
    return f"{name} {report.conclusion}{counts}{rest}"

"""Count, measure and log the outcomes of the deliveries of one queue.

A log line gives the kind of the outcome and a note without personal data. Messages that were
handled without problems are only counted.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from tallystick.core.errors import TallystickError
from tallystick.runtime.settlement import Plan
from tallystick.runtime.telemetry import Probe

__all__ = ["Outcomes"]

_LOG: Final = logging.getLogger("tallystick.runtime")
_EXPECTED: Final = ("retried", "released", "handed_back")
_QUIET: Final = frozenset({"handled", "skipped"})


class Outcomes:
    """The counts of one worker, and its last error."""

    def __init__(self, queue: str, probe: Probe | None) -> None:
        self.counts: Final[Counter[str]] = Counter()
        self.last_error = ""
        self._queue: Final = queue
        self._probe: Final = probe

    def note(self, plans: Sequence[Plan], *, stays: bool = False) -> None:
        """Count and log the outcomes of deliveries; a delivery that stays here is not counted."""
        outcomes = Counter(plan.outcome for plan in plans if plan.outcome)
        self._add(outcomes, stays=stays)
        if not _QUIET.issuperset(outcomes):
            for plan in plans:
                self._tell(plan)

    def note_handled(self, number: int) -> None:
        """Count deliveries that were simply handled."""
        self._add({"handled": number} if number else {})

    def note_unsettled(self, number: int, error: TallystickError, *, again: bool) -> None:
        """Count and log failed settlements; a repeated failure is only logged."""
        self._add({} if again else {"unsettled": number})
        self.note_error(error)
        text = "queue %s: %d messages could not be settled; the broker will deliver them again: %s"
        _LOG.warning(text, self._queue, number, error)

    def note_lost(self, number: int) -> None:
        """Count and log deliveries whose lease has ended."""
        text = "queue %s: the leases of %d messages have ended; the broker will deliver them again"
        _LOG.warning(text, self._queue, number)
        self._add({"lost": number})

    def note_error(self, error: TallystickError) -> None:
        """Keep the last error."""
        self.last_error = f"{self._queue}: {error}"

    def _tell(self, plan: Plan) -> None:
        """Log how a delivery ended that was not simply handled."""
        if not plan.outcome or plan.outcome in _QUIET:
            return
        if plan.outcome != "handed_back":
            self.last_error = f"{self._queue}: {plan.outcome}: {plan.note}"
        level = logging.INFO if plan.outcome in _EXPECTED else logging.WARNING
        _LOG.log(level, "queue %s: %s: %s", self._queue, plan.outcome, plan.note)

    def _add(self, outcomes: Mapping[str, int], *, stays: bool = False) -> None:
        self.counts.update(outcomes)
        if self._probe is not None:
            for outcome, number in outcomes.items():
                self._probe.settled(self._queue, outcome, number, stays=stays)

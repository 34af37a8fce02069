"""Receive deliveries; when the broker is unreachable, wait longer and longer, and connect again."""

from __future__ import annotations

import logging
from threading import Event
from time import monotonic, time_ns
from typing import Final

from tallystick.core.errors import TallystickError
from tallystick.core.transport import Delivery, Transport
from tallystick.runtime.execution import Execution
from tallystick.runtime.outcomes import Outcomes

__all__ = ["Receiving"]

_LOG: Final = logging.getLogger("tallystick.runtime")
_PAUSES: Final = (0.1, 0.3, 1.0, 3.0, 5.0)
_ATTEND: Final = 5.0
"""Seconds after which a worker without free handlers polls for its consumer group."""


class Receiving:
    """The receiving side of one worker; `away` is the last error of the broker."""

    def __init__(
        self,
        transport: Transport,
        queue: str,
        execution: Execution,
        outcomes: Outcomes,
        stopping: Event,
    ) -> None:
        self.away: TallystickError | None = None
        self._transport: Final = transport
        self._queue: Final = queue
        self._execution: Final = execution
        self._outcomes: Final = outcomes
        self._stopping: Final = stopping
        self._failures = 0
        self._attend_at = 0.0

    def receive(self, limit: int, timeout: float) -> list[Delivery]:
        """Receive deliveries; while the broker is unreachable, pause and return none."""
        began = time_ns()
        self._attend_at = monotonic() + _ATTEND
        try:
            deliveries = self._transport.receive(self._queue, limit, timeout)
        except TallystickError as error:
            self._fail(error)
            return []
        if self._failures:
            _LOG.warning("queue %s: connected again", self._queue)
            self._failures, self.away = 0, None
        if deliveries and self._execution.probe is not None:
            self._execution.probe.received(self._queue, deliveries, began)
        return deliveries

    def attend(self) -> None:
        """Poll without receiving, because a consumer group waits for each of its members."""
        if self._transport.capabilities.log and monotonic() >= self._attend_at:
            self.receive(0, 0)

    def _fail(self, error: TallystickError) -> None:
        pause = _PAUSES[min(self._failures, len(_PAUSES) - 1)]
        if not self._failures:
            _LOG.warning("queue %s: %s; will try again", self._queue, error)
        self._failures += 1
        self.away = error
        self._outcomes.note_error(error)
        self._stopping.wait(pause)

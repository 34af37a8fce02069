"""Tell the broker what came of deliveries: acknowledgements together, every other move by itself.

A settlement that fails is counted, and its delivery is left to the broker after a pause, unless the
broker has taken it back already. On a log, handing a message back as it came is to do nothing:
uncommitted is enough, and a rewind would undo what runs.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Final

from tallystick.core.errors import TallystickError
from tallystick.core.transport import Transport
from tallystick.runtime.outcomes import Outcomes
from tallystick.runtime.settlement import Plan, is_return
from tallystick.runtime.waiting import Waiting

__all__ = ["LEFT", "Settling"]

LEFT: Final = 1.0
"""Seconds until a message that could not be settled is left to the broker, which may be at once."""


class Settling:
    """The settlements of one worker; what fails waits in `held`."""

    def __init__(self, transport: Transport, outcomes: Outcomes, held: Waiting) -> None:
        self._transport: Final = transport
        self._outcomes: Final = outcomes
        self._held: Final = held

    def settle(self, plans: list[Plan]) -> None:
        """Carry plans out, and note what they came to."""
        acks = [plan for plan in plans if plan.move == "ack"]
        if acks:
            self._perform(acks, lambda: self._transport.ack([plan.delivery for plan in acks]))
        for plan in plans if len(acks) < len(plans) else ():
            if self._transport.capabilities.log and is_return(plan):
                self._outcomes.note([plan])
            elif plan.move != "ack":
                self._perform([plan], self._move(plan))

    def _move(self, plan: Plan) -> Callable[[], None]:
        transport, delivery, frame = self._transport, plan.delivery, plan.frame
        if plan.move == "replace" and frame is not None:
            return lambda: transport.replace(delivery, plan.queue, frame)
        return {
            "release": lambda: transport.release(delivery, plan.delay),
            "leave": lambda: transport.leave(delivery),
            "give_up": lambda: transport.give_up(delivery, plan.note),
        }[plan.move]

    def _perform(self, plans: list[Plan], move: Callable[[], None]) -> None:
        try:
            move()
        except TallystickError as error:
            self._outcomes.note_unsettled(plans, error)
            if error.code != "delivery_lost":
                for plan in plans:
                    self._held.add(Plan("leave", plan.delivery, ""), monotonic() + LEFT)
        else:
            self._outcomes.note(plans)

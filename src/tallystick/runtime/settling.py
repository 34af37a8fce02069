"""Settle deliveries at the broker: acknowledgements in batches, every other move on its own.

A settlement that fails is counted, and after a pause its delivery is left to the broker, unless the
broker has already taken it back. On a log, returning an unchanged message needs no action: its
offset is not committed, and a rewind would undo running work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final

from tallystick.core.errors import TallystickError
from tallystick.core.transport import Delivery, Transport
from tallystick.runtime.outcomes import Outcomes
from tallystick.runtime.settlement import Plan, is_return
from tallystick.runtime.waiting import Waiting

__all__ = ["LEFT", "Settling"]

LEFT: Final = 1.0
"""Seconds until a message that could not be settled is left to the broker, which may be at once."""


class Settling:
    """The settlements of one worker; failed ones wait in `held`."""

    def __init__(self, transport: Transport, outcomes: Outcomes, held: Waiting) -> None:
        self._transport: Final = transport
        self._outcomes: Final = outcomes
        self._held: Final = held

    def settle(self, plans: list[Plan], handled: Sequence[Delivery] = ()) -> None:
        """Acknowledge handled deliveries, execute plans, and record the outcomes."""
        acks = [plan for plan in plans if plan.move == "ack"]
        ended = [*handled, *(plan.delivery for plan in acks)]
        if ended and self._is_done(lambda: self._transport.ack(ended), ended):
            self._outcomes.note_handled(len(handled))
            self._outcomes.note(acks)
        for plan in plans if len(acks) < len(plans) else ():
            if plan.move != "ack" and (self._is_void(plan) or self._is_moved(plan)):
                self._outcomes.note([plan])

    def _is_void(self, plan: Plan) -> bool:
        return self._transport.capabilities.log and is_return(plan)

    def _is_moved(self, plan: Plan) -> bool:
        return self._is_done(self._move(plan), [plan.delivery], again=not plan.outcome)

    def _move(self, plan: Plan) -> Callable[[], None]:
        transport, delivery, frame = self._transport, plan.delivery, plan.frame
        if plan.move == "replace" and frame is not None:
            return lambda: transport.replace(delivery, plan.queue, frame)
        return {
            "release": lambda: transport.release(delivery, plan.delay),
            "leave": lambda: transport.leave(delivery),
            "give_up": lambda: transport.give_up(delivery, plan.note),
        }[plan.move]

    def _is_done(
        self, move: Callable[[], None], deliveries: Sequence[Delivery], *, again: bool = False
    ) -> bool:
        """Make a move, and return whether it succeeded; a failure `again` is already counted."""
        try:
            move()
        except TallystickError as error:
            self._outcomes.note_unsettled(len(deliveries), error, again=again)
            if error.code != "delivery_lost":
                for one in deliveries:
                    self._held.add(Plan("leave", one, ""), monotonic() + LEFT)
            return False
        return True

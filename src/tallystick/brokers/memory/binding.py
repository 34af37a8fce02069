"""Memory: the body and headers beside it, nothing else; attempts are those of the body."""

from __future__ import annotations

from typing import Final

from tallystick.core.binding import Binding, Extras
from tallystick.core.delay import DelayRule
from tallystick.core.names import Names
from tallystick.core.settle import SettleRule
from tallystick.core.slot import Slot

__all__ = ["BINDING"]

BINDING: Final = Binding(
    name="memory",
    slots=(),
    extras=Extras("headers", "text"),
    delay=DelayRule((Slot("message", "due", "delay.due", "long"),)),
    names=Names({"work": "{queue}", "dead_letter": "{queue}{suffix}"}),
    settle=SettleRule(
        gated_off="",
        poison_off="bounded",
        verbs={"ack": "remove", "retry": "republish", "unsettled": "put back"},
    ),
)

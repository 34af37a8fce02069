"""Redis (clause 1): a list element is the envelope, byte for byte; attempts are the body's.

There are two layouts. The app layout (`legacy`) reserves into `:processing`, keeps deadlines beside
it, and has no delays. Laravel's layout uses sorted sets, has delays, and carries no headers. Poison
messages are always dead-lettered.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tallystick.core.binding import Binding, Extras
from tallystick.core.delay import DelayRule
from tallystick.core.names import Names
from tallystick.core.settle import SettleRule
from tallystick.core.slot import Slot

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BINDING", "LARAVEL", "LAYOUTS"]

BINDING: Final = Binding(
    name="redis",
    slots=(),
    extras=Extras("headers", "text"),
    names=Names(
        {
            "work": "{queue}",
            "processing": "{queue}:processing",
            "deadlines": "{queue}:processing:deadlines",
            "dead_letter": "{queue}{suffix}",
        }
    ),
    settle=SettleRule(
        gated_off="",
        poison_off="dead_letter",
        poison_delete="dead_letter",
        verbs={"ack": "LREM", "retry": "republish", "unsettled": "leave in :processing"},
    ),
)

LARAVEL: Final = replace(
    BINDING,
    extras=None,
    delay=DelayRule((Slot("delayed", "score", "delay.score", "integer"),)),
    names=Names(
        {
            "work": "{prefix}{queue}",
            "delayed": "{prefix}{queue}:delayed",
            "reserved": "{prefix}{queue}:reserved",
            "notify": "{prefix}{queue}:notify",
            "dead_letter": "{prefix}{queue}{suffix}",
        },
        prefix="queues:",
    ),
    settle=replace(
        BINDING.settle,
        verbs={"ack": "ZREM", "retry": "ZADD :delayed", "unsettled": "leave in :reserved"},
    ),
)

LAYOUTS: Final[Mapping[str, Binding]] = {"legacy": BINDING, "laravel": LARAVEL}

"""The table of comparison modes: the directions to prove, and the policy.

strict        every document valid before is valid now
babelqueue    as strict, but a field that the old schema never named may be added, and
              a field may never be removed, because consumers read fields
BACKWARD      readers of the new schema: every old document is valid (as strict)
FORWARD       readers of the old schema: every new document was valid before
FULL          both
*_TRANSITIVE  the same against every version in git history, not only the last
NONE          everything is compatible
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tallystick.core.errors import UsageError

__all__ = ["MODES", "Mode", "mode_named"]


@dataclass(frozen=True, slots=True)
class Mode:
    """One row: the directions to prove, the policy, and how many versions to compare with."""

    name: str
    backward: bool
    forward: bool = False
    field_policy: bool = False
    transitive: bool = False


_ROWS: Final = (
    Mode("babelqueue", backward=True, field_policy=True),
    Mode("strict", backward=True),
    Mode("BACKWARD", backward=True),
    Mode("BACKWARD_TRANSITIVE", backward=True, transitive=True),
    Mode("FORWARD", backward=False, forward=True),
    Mode("FORWARD_TRANSITIVE", backward=False, forward=True, transitive=True),
    Mode("FULL", backward=True, forward=True),
    Mode("FULL_TRANSITIVE", backward=True, forward=True, transitive=True),
    Mode("NONE", backward=False),
)
MODES: Final[dict[str, Mode]] = {mode.name: mode for mode in _ROWS}


def mode_named(name: str) -> Mode:
    """Give a mode by its name; the Confluent levels in any case."""
    mode = MODES.get(name) or MODES.get(name.upper())
    if mode is None:
        raise UsageError(
            f"unknown mode {name!r}", code="compat.mode", hint=f"use one of: {', '.join(MODES)}"
        )
    return mode

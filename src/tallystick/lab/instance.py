"""A test case instance as a value: the role, the parameters and the queues of each client.

`Part` is one ASSIGN_ROLE. `Evidence` holds all that the reports and the queues showed. A judge is a
pure function from both to a `Finding`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tallystick.core.errors import Rejected
from tallystick.core.verdict import Difference, Outcome
from tallystick.lab.clocks import Estimate
from tallystick.lab.control import Control, Role

__all__ = [
    "BROKEN", "Evidence", "Finding", "Group", "Instance", "Judge", "Part", "QueueSpec", "broken_by",
]  # fmt: skip

BROKEN: Final = (
    ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, Rejected,
)  # fmt: skip
"""What reading a report raises that is not as the protocol has it: its case is errored then."""


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """A queue the coordinator makes before and deletes after; bound where `exchange` is set."""

    name: str
    exchange: str = ""
    key: str = ""
    durable: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """One client in one role. `share` is the number of messages it receives per batch, or None."""

    client: str
    role: Role
    fields: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    share: int | None = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """The last report of each part, the messages left on queues, and the finished batches."""

    reports: Mapping[int, Control]
    left: int = 0
    batches: int = 1
    clocks: tuple[Mapping[str, Estimate], ...] = ()
    """The clocks of a timed instance: before the traffic, and after it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a judge."""

    outcome: Outcome
    reason: str = ""
    differences: tuple[Difference, ...] = ()
    note: str = ""
    measured: Mapping[str, Any] = field(default_factory=dict)


def broken_by(error: Exception) -> Finding:
    """Give the finding for a report that could not be read."""
    return Finding(Outcome.ERRORED, f"a report violates the protocol: {error!r}")


Judge = Callable[["Instance", Evidence], Finding]


@dataclass(frozen=True, slots=True)
class Instance:
    """One case: its name is a path and unique in a run."""

    name: str
    test: str
    parts: tuple[Part, ...]
    judge: Judge
    queues: tuple[QueueSpec, ...] = ()
    messages: int = 0
    """Messages of each publisher in a batch."""
    total: int = 0
    """Messages all receivers together get in a batch."""
    batches: int = 1
    duration: float = 0.0
    """Seconds to go on with batches; 0 is to count them."""
    fault: str = ""
    """Why it cannot be run at all."""
    note: str = ""
    timed: bool = False
    """Whether latencies are taken, so that clocks must be asked."""
    refusal: str = ""
    """How the broker has to refuse the queues (`connection 541`); empty where it must not."""


@dataclass(frozen=True, slots=True)
class Group:
    """Instances that share one named invite. `make` gets (able senders, able receivers)."""

    test: str
    make: Callable[[Sequence[str], Sequence[str]], Sequence[Instance]]
    fields: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    everyone: bool = True
    """Make instances for all clients, able or not (pairs), or for the able ones (circuits)."""

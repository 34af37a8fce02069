"""The coordinator's state, what can happen to it, and what it can do: all values.

    step(state, event) -> (state, actions)          lab/coordinator.py

Clocks come in with the events (law 7). `Plan` is what a run is asked to do and never changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from tallystick.core.verdict import Outcome, Verdict
from tallystick.lab.clocks import Estimate, Sample
from tallystick.lab.control import Control, Role
from tallystick.lab.instance import Finding, Group, Instance, QueueSpec

__all__ = [
    "Action", "Drain", "Drained", "Ended", "Event", "Garbled", "Heard", "Judged", "Limits", "Live",
    "Lost", "Member", "Note", "Phase", "Plan", "Prepare", "Prepared", "Say", "Stage", "State",
    "Ticked", "Unrouted",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Limits:
    """Seconds."""

    enlist: float = 30.0
    """For the expected clients to enlist; with none expected, for whoever comes."""
    answer: float = 30.0
    """For any other answer (Appendix C, timeout)."""
    settle: float = 5.0
    """For receivers to have everything, once the senders have reported."""
    ping: float = 5.0
    """Between signs of life, so that no client ends itself (IOP-5) and a dead one is noticed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A run: the expected clients, the cases, and the outcome of declined cases."""

    run: str
    groups: tuple[Group, ...]
    names: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    parallel: int = 4
    opt_out: Outcome = Outcome.UNSUPPORTED
    key: str = "iop.control"
    terminate: bool = True


@dataclass(frozen=True, slots=True)
class Heard:
    """A control message came from a client."""

    at: float
    control: Control
    stamp: int = 0
    """When it came, in ns by the clock that stamps T1."""


@dataclass(frozen=True, slots=True)
class Garbled:
    """A message that is not a control message of a client arrived."""

    at: float
    reason: str


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time went by."""

    at: float


@dataclass(frozen=True, slots=True)
class Prepared:
    """The queues of an instance are there, or the broker refused them."""

    at: float
    number: int
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Drained:
    """The queues of an instance are deleted; this many messages were left on them."""

    at: float
    number: int
    left: int = 0


@dataclass(frozen=True, slots=True)
class Unrouted:
    """A message to a client's private key found no queue: the client has stopped."""

    at: float
    client: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection to the broker is lost."""

    at: float
    reason: str


Event = Heard | Garbled | Ticked | Prepared | Drained | Unrouted | Lost


@dataclass(frozen=True, slots=True)
class Say:
    """Send a control message: to one client, or to all when `client` is empty."""

    control: Control
    client: str = ""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Make queues and bind them; then tell `Prepared`."""

    number: int
    queues: tuple[QueueSpec, ...]


@dataclass(frozen=True, slots=True)
class Drain:
    """Delete queues; then tell `Drained`."""

    number: int
    queues: tuple[QueueSpec, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """One case has its verdict; `live` is the instance as it ended, if it ever began."""

    verdict: Verdict
    live: Live | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A line for the foot of the journal."""

    text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """There is nothing more to do."""


Action = Say | Prepare | Drain | Judged | Note | Ended


class Phase(Enum):
    """Where a run is."""

    ENLISTING = auto()
    PROBING = auto()
    INVITING = auto()
    RUNNING = auto()
    ENDED = auto()


class Stage(Enum):
    """Where one instance is."""

    PREPARING = auto()
    TIMING = auto()
    ASSIGNING = auto()
    SENDING = auto()
    COLLECTING = auto()
    DRAINING = auto()


@dataclass(frozen=True, slots=True)
class Member:
    """A client that enlisted. `trouble` says why it can play no part any more."""

    name: str
    instance: str
    about: Mapping[str, Any] = field(default_factory=dict)
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Live:
    """An instance that is under way."""

    instance: Instance
    stage: Stage
    began: float
    until: float
    pending: frozenset[int] = frozenset()
    over: frozenset[int] = frozenset()
    reports: Mapping[int, Control] = field(default_factory=dict)
    batch: int = 0
    sending_since: float = 0.0
    settled: float = 0.0
    """When to stop asking receivers that compete for a queue."""
    final: bool = True
    give_up: Finding | None = None
    samples: tuple[Sample, ...] = ()
    """What the client whose clock is asked has answered so far."""
    clocks: tuple[Mapping[str, Estimate], ...] = ()
    """By burst, the clock of each client."""


@dataclass(frozen=True, slots=True)
class State:
    """All the coordinator knows."""

    plan: Plan
    at: float
    phase: Phase = Phase.ENLISTING
    until: float = 0.0
    pinged: float = 0.0
    group: int = -1
    members: Mapping[str, Member] = field(default_factory=dict)
    answers: Mapping[str, Mapping[Role, str]] = field(default_factory=dict)
    """By client, why it cannot play a role; an empty text where it can."""
    waiting: tuple[Instance, ...] = ()
    started: int = 0
    live: Mapping[int, Live] = field(default_factory=dict)
    correlations: frozenset[str] = frozenset()
    """Every correlation id a sender has used (IOP-42)."""
    garbled: int = 0
    """Messages that broke the protocol."""

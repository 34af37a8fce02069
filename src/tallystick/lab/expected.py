"""`expected_results`: the result that a broker's profile expects for a parameter set.

The result decides the counts: N messages are received, left on the queue, returned with a code, or
dropped. The other parameters add what a circuit can see of them: the body and its frames, the
delivery mode, a second consumer that is refused if the first is exclusive, and no visible message
before the publisher's commit (sheet, 5.2 to 5.4).

An `Observation` holds what a probe saw; `compare` gives the differences, field by field. For a
nondeterministic result, every message must be received or returned, and none both.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

from tallystick.core.verdict import Difference
from tallystick.lab.combinations import BODY_SIZES, Parameters
from tallystick.lab.profiles import Kind, Profile, Result, Row

__all__ = [
    "CRASH_MESSAGES", "FRAME_MAX", "MESSAGES", "Expectation", "Observation", "compare",
    "crash_cuts", "decide", "expected_crash",
    "expected_restart", "expected_results",
]  # fmt: skip

MESSAGES: Final = 2
"""Messages of one circuit of the thorough procedure."""

FRAME_MAX: Final = 4096
_FRAME_OVERHEAD: Final = 8

_ADMITTED: Final = "admitted"


@dataclass(frozen=True, slots=True)
class Observation:
    """The observations of one circuit, at both ends and on the queue."""

    refused: str = ""
    """`connection 540` when the broker closed the publisher's way; empty when it did not."""
    returned: tuple[int, ...] = ()
    received: tuple[int, ...] = ()
    """The numbers of the messages, in the order of their arrival."""
    depth: int = 0
    early: int = 0
    """Messages received, returned or on the queue before the publisher's commit."""
    delivery_modes: tuple[int, ...] = ()
    body_frames: tuple[int, ...] = ()
    altered: tuple[str, ...] = ()
    """Bodies that are not what was sent: `message 1 at byte 77`."""
    second_consumer: str = ""
    """`admitted`, or the refusal; empty where there is no first consumer."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """The expected result, the reason for a difference from AMQP, and what must be seen."""

    result: Result
    departs: str
    sight: Observation


def decide(parameters: Parameters, profile: Profile, *, local: bool = False) -> Row:
    """Give the first row of the table that holds for a parameter set."""
    return next(row for row in profile.rows if _matches(row, parameters, local=local))


def _matches(row: Row, parameters: Parameters, *, local: bool) -> bool:
    if row.local is not None and row.local is not local:
        return False
    return all(getattr(parameters, name) is value for name, value in row.when.items())


def expected_results(
    parameters: Parameters,
    profile: Profile,
    *,
    local: bool = False,
    cannot: Mapping[str, str] | None = None,
) -> Expectation:
    """Give what must be seen; `local` when both ends are on one connection.

    `cannot` are the parameters a client's library has no way to ask for, each with the reason:
    `{"immediate": "..."}` or `{"ack_mode=tx": "..."}`. They are not applicable, which is no result.
    """
    for name, why in (cannot or {}).items():
        if _asks_for(parameters, name):
            return Expectation(Result(Kind.NOT_APPLICABLE), why, Observation())
    row = decide(parameters, profile, local=local)
    every = tuple(range(MESSAGES))
    result = row.result
    refused = f"{result.level} {result.code}" if result.kind is Kind.REFUSED else ""
    if result.at == "declare":
        return Expectation(result, row.departs, Observation(refused=refused))
    received = every if result.kind is Kind.DELIVERED else ()
    size = BODY_SIZES[parameters.message_size]
    sight = Observation(
        refused=refused,
        returned=(result.code,) * MESSAGES if result.kind is Kind.RETURNED else (),
        received=received,
        depth=MESSAGES if result.kind is Kind.QUEUED else 0,
        delivery_modes=(2 if parameters.persistent else 1,) * len(received),
        body_frames=(-(-size // (FRAME_MAX - _FRAME_OVERHEAD)),) * len(received),
        second_consumer=_second(parameters, profile),
    )
    return Expectation(result, row.departs, sight)


def _asks_for(parameters: Parameters, name: str) -> bool:
    parameter, _, value = name.partition("=")
    asked = getattr(parameters, parameter)
    return bool(asked == value if value else asked)


def _second(parameters: Parameters, profile: Profile) -> str:
    if not parameters.consumer_out_active:
        return ""
    refusal = profile.second_consumer
    return f"{refusal.level} {refusal.code}" if parameters.exclusive else _ADMITTED


def compare(expected: Expectation, found: Observation) -> tuple[Difference, ...]:
    """Return every field in which the observation differs from the expected result."""
    if expected.result.kind is Kind.NONDETERMINISTIC:
        return _conserved(expected, found)
    return tuple(
        Difference(f"/{field.name}", _plain(want), _plain(have))
        for field in fields(Observation)
        if (want := getattr(expected.sight, field.name)) != (have := getattr(found, field.name))
    )


def _conserved(expected: Expectation, found: Observation) -> tuple[Difference, ...]:
    """Hold a race to this: each message is received or returned, in order, once, unaltered."""
    faults = []
    total = len(found.returned) + len(found.received)
    if total != MESSAGES or len(set(found.received)) != len(found.received):
        faults.append(Difference("/returned+received", MESSAGES, total))
    if set(found.returned) - {expected.result.code}:
        faults.append(Difference("/returned", [expected.result.code], list(found.returned)))
    still = {"refused": "", "depth": 0, "early": 0, "altered": ()}
    still["second_consumer"] = expected.sight.second_consumer
    for name, want in still.items():
        if (have := getattr(found, name)) != want:
            faults.append(Difference(f"/{name}", _plain(want), _plain(have)))
    return tuple(faults)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


CRASH_MESSAGES: Final = 4
_CRASH: Final[Mapping[str, tuple[int, int]]] = {
    "auto/before": (4, 4), "auto/half": (2, 2), "auto/after": (0, 0),
    "client/before": (4, 4), "client/half": (2, 2), "client/after": (0, 0),
    "dups_ok/before": (4, 4), "dups_ok/half": (2, 2), "dups_ok/after": (0, 0),
    "no_ack/before": (0, 0), "no_ack/half": (0, 0), "no_ack/after": (0, 0),
    "pre_ack/before": (0, 0), "pre_ack/half": (0, 0), "pre_ack/after": (0, 0),
    "tx/before": (4, 4), "tx/acked": (4, 4), "tx/rolled_back": (4, 4),
    "tx/half": (2, 2), "tx/after": (0, 0),
}  # fmt: skip
"""`mode/cut` -> (messages left, of them marked as redelivered), of four, after the cut."""


def expected_crash(cut: str, profile: Profile) -> tuple[tuple[int, int], str]:
    """Give (left, redelivered) for `mode/cut`, and the reason where the broker departs."""
    return profile.crash.get(cut, (_CRASH[cut], ""))


def crash_cuts() -> tuple[str, ...]:
    """Give every `mode/cut` of the crash tier."""
    return tuple(_CRASH)


def expected_restart(*, durable: bool, persistent: bool) -> tuple[bool, int]:
    """Give whether the queue is there after a restart of the broker, and how many messages."""
    return durable, MESSAGES if durable and persistent else 0

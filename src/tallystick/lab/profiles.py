"""One rule table per broker: the result of a message, by parameter (spec, `expected_results`).

A profile is an ordered table; the first row whose conditions are true decides. Rows that differ
from the text of AMQP 0-9-1 come first and have a reason; the rows of the text follow. They alone
are the profile of the in-process broker `vm`. A row may apply to some versions only: the version of
the running broker decides (sheet, 5.2 to 5.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from tallystick.core.errors import UsageError

__all__ = ["PROFILES", "Kind", "Profile", "Result", "Row", "find_profile", "version_key"]


class Kind(StrEnum):
    """The possible results for the messages of a circuit."""

    DELIVERED = "delivered"
    QUEUED = "queued"
    DROPPED = "dropped"
    RETURNED = "returned"
    REFUSED = "refused"
    NONDETERMINISTIC = "nondeterministic"
    NOT_APPLICABLE = "not_applicable"


@dataclass(frozen=True, slots=True)
class Result:
    """An outcome: the reply code, the level that is closed, and where it can be seen."""

    kind: Kind
    code: int = 0
    level: str = ""
    at: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """`when` all these parameters have these values: `result`, and why it departs from AMQP."""

    when: Mapping[str, bool]
    result: Result
    departs: str = ""
    local: bool | None = None
    """Whether it holds on one connection only (True), on two only (False), or on both."""
    since: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True)
class Profile:
    """One broker's table, the refusal of a second consumer, and the crash rows that depart."""

    name: str
    version: str
    rows: tuple[Row, ...]
    second_consumer: Result
    crash: Mapping[str, tuple[tuple[int, int], str]] = field(default_factory=dict)
    """`mode/cut` -> ((left, redelivered), the reason) where it departs from `expected_crash`."""


_DELIVERED: Final = Result(Kind.DELIVERED)
_QUEUED: Final = Result(Kind.QUEUED)
_NO_ROUTE: Final = Result(Kind.RETURNED, 312)
_NO_CONSUMERS: Final = Result(Kind.RETURNED, 313)

_ROUTED: Final = {"bind_out_route": True, "consumer_out_active": True}

AMQP: Final = (
    Row({"bind_out_route": False, "mandatory": True}, _NO_ROUTE),
    Row({"bind_out_route": False, "immediate": True}, _NO_ROUTE),
    Row({"bind_out_route": False}, Result(Kind.DROPPED)),
    Row({"consumer_out_active": False, "immediate": True}, _NO_CONSUMERS),
    Row({"consumer_out_active": False}, _QUEUED),
    Row({"no_local": True, "immediate": True}, _NO_CONSUMERS, local=True),
    Row({"no_local": True}, _QUEUED, local=True),
    Row({}, _DELIVERED),
)
"""The text of AMQP 0-9-1: basic.publish, basic.consume and the reply codes 312 and 313."""

_RABBITMQ: Final = (
    Row(
        {"durable": False},
        Result(Kind.REFUSED, 541, "connection", "declare"),
        "since 4.3 a queue that is neither durable nor exclusive is rejected (deprecated feature "
        "transient_nonexcl_queues)",
        since="4.3",
    ),
    Row(
        {"immediate": True},
        Result(Kind.REFUSED, 540, "connection", "publish"),
        "RabbitMQ has not implemented immediate since 3.0 and closes the connection",
    ),
    Row(
        {**_ROUTED, "no_local": True},
        _DELIVERED,
        "RabbitMQ ignores no_local: a connection gets its own messages",
        local=True,
    ),
    *AMQP,
)

_QPID: Final = (
    Row(
        {"bind_out_route": False, "transactional": True, "mandatory": True},
        Result(Kind.REFUSED, 312, "connection", "publish"),
        "Broker-J closes the connection at publish instead of returning the message at commit "
        "(qpid.port.closeWhenNoRoute)",
    ),
    Row({**_ROUTED, "no_local": True, "immediate": True}, _NO_CONSUMERS, local=True),
    Row(
        {**_ROUTED, "immediate": True},
        Result(Kind.NONDETERMINISTIC, 313),
        "Broker-J checks whether an immediate message was delivered while its delivery is still in "
        "progress: the message is either delivered or returned, never both and never neither",
    ),
    *AMQP,
)


def version_key(version: str) -> tuple[int, ...]:
    """Give a version as numbers that compare: 4.10 is newer than 4.3."""
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _holds(row: Row, version: str) -> bool:
    here = version_key(version)
    return not (row.since and here < version_key(row.since)) and not (
        row.before and here >= version_key(row.before)
    )


PROFILES: Final[Mapping[str, Profile]] = {
    "rabbitmq": Profile("rabbitmq", "", _RABBITMQ, Result(Kind.REFUSED, 403, "channel")),
    "qpid": Profile(
        "qpid",
        "",
        _QPID,
        Result(Kind.REFUSED, 403, "connection"),
        {
            "tx/acked": (
                (4, 0),
                "Broker-J redelivers acknowledged, uncommitted messages as if they were new",
            )
        },
    ),
    "vm": Profile("vm", "", AMQP, Result(Kind.REFUSED, 403, "channel")),
}
"""Every profile by the name of its broker, for any version: `find_profile` picks the rows."""


def find_profile(name: str, version: str) -> Profile:
    """Give the profile of a broker in a version: only the rows that hold for it."""
    if name not in PROFILES:
        raise UsageError(
            f"there is no profile for {name!r}",
            code="profile",
            hint=f"use one of {', '.join(PROFILES)}",
        )
    every = PROFILES[name]
    rows = tuple(row for row in every.rows if _holds(row, version))
    return Profile(name, version, rows, every.second_consumer, every.crash)

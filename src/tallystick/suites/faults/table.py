"""Which brokers can be broken, and how: one row each.

`options` make deliveries of a dead worker come back soon. `front` names the port that a proxy takes
and `back` the one it forwards to, where the broker tells its clients an address of its own; else
the proxy stands on any port, before the broker's first. `durable` says whether the broker keeps its
messages over kill -9; one that does not is not killed, and its report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tallystick.core.errors import UsageError

__all__ = ["SUBJECTS", "Subject", "find_subject"]


@dataclass(frozen=True, slots=True)
class Subject:
    """One broker as a fault run sees it."""

    name: str
    options: str = ""
    durable: bool = True
    proxied: bool = True


SUBJECTS: Final[Mapping[str, Subject]] = {
    one.name: one
    for one in (
        Subject("redis", "retry_after=5&timeout=5"),
        Subject("rabbitmq", "heartbeat=10&timeout=10"),
        Subject("kafka", "partitions=2&group=faults&timeout=15", proxied=False),
        Subject("sqs", "visibility=10&timeout=10"),
        Subject("pulsar", "timeout=15", proxied=False),
        Subject("artemis", "timeout=10"),
        Subject("servicebus", "timeout=10"),
    )
}


def find_subject(name: str) -> Subject:
    """Give a row by its name, or say which there are."""
    if name not in SUBJECTS:
        raise UsageError(
            f"there are no fault runs on {name!r}",
            code="broker",
            hint=f"one of {', '.join(SUBJECTS)}",
        )
    return SUBJECTS[name]

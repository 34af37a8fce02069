"""The brokers of fault runs, one row each.

`options` make the broker redeliver the messages of a dead worker soon. `proxied` says whether a
proxy can stand before the broker; it cannot if the broker tells its clients its own address.
`durable` says whether the broker keeps its
messages after a SIGKILL; a broker that does not is never killed, and its report says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tallystick.core.errors import UsageError

__all__ = ["SUBJECTS", "Subject", "find_subject"]


@dataclass(frozen=True, slots=True)
class Subject:
    """One broker of the fault runs."""

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
    """Find a row by its name, or raise `UsageError` with the known names."""
    if name not in SUBJECTS:
        raise UsageError(
            f"no fault run exists for the broker {name!r}",
            code="broker",
            hint=f"use one of: {', '.join(SUBJECTS)}",
        )
    return SUBJECTS[name]

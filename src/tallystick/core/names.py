"""The names of a broker's keys, topics and queues for one logical queue.

The dead-letter queue is `<queue>.dlq`; SQS allows no dot in names, so it has `<queue>-dlq`
(ADR-0037). On a FIFO queue `.fifo` comes last: `orders-dlq.fifo`. Kafka's retry
topics are `<topic>.retry.<n>`, n being the 1-based index of the tier, never its delay (clause 6.4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DEFAULT_QUEUE", "Names", "is_fifo", "name", "names"]

DEFAULT_QUEUE: Final = "default"


@dataclass(frozen=True, slots=True)
class Names:
    """Templates by role, over `{prefix}`, `{queue}`, `{suffix}`, `{fifo}` and `{n}`.

    `suffix` marks the dead-letter queue, every key begins with `prefix`, and `fifo` is the ending
    that the broker needs for an ordered queue (empty if it has none).
    """

    templates: Mapping[str, str]
    suffix: str = ".dlq"
    prefix: str = ""
    fifo: str = ""


def is_fifo(table: Names, queue: str, fifo: bool | None = None) -> bool:
    """Tell whether the queue is ordered: as configured, else by the ending of its name."""
    return bool(table.fifo) and (queue.endswith(table.fifo) if fifo is None else fifo)


def name(
    table: Names,
    role: str,
    queue: str,
    *,
    n: int = 1,
    suffix: str | None = None,
    prefix: str | None = None,
    fifo: bool | None = None,
) -> str:
    """Give the broker's name for one role (`work`, `dead_letter`, `retry`, ...) of a queue."""
    if role not in table.templates:
        known = ", ".join(table.templates)
        raise UsageError(f"unknown queue role {role!r}", code="role", hint=f"use one of: {known}")
    if n < 1:
        raise UsageError(f"retry tiers are numbered from 1, found {n}", code="tier")
    ending = table.fifo if is_fifo(table, queue, fifo) else ""
    return table.templates[role].format(
        prefix=table.prefix if prefix is None else prefix,
        queue=queue.removesuffix(ending),
        suffix=(table.suffix if suffix is None else suffix).removesuffix(ending),
        fifo=ending,
        n=n,
    )


def names(
    table: Names,
    queue: str,
    *,
    tiers: int = 0,
    suffix: str | None = None,
    prefix: str | None = None,
    fifo: bool | None = None,
) -> dict[str, str | list[str]]:
    """Give every name of a queue by role; a role with tiers has one name for each tier."""
    given: dict[str, str | list[str]] = {}
    for role, template in table.templates.items():
        if "{n}" in template:
            given[role] = [name(table, role, queue, n=n + 1) for n in range(tiers)]
        else:
            given[role] = name(table, role, queue, suffix=suffix, prefix=prefix, fifo=fifo)
    return given

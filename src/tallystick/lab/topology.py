"""Divide circuits and receivers over nodes as evenly as possible (specification, Probing).

C circuits with N consumers each are divided over P nodes that may publish and R nodes that may
receive. If the division has a remainder of r, the first r nodes get one more. With `single_role` no
node has both roles; if then no node can receive, the test fails here, before anything is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tallystick.core.errors import UsageError

__all__ = ["Placed", "Requested", "describe", "divide", "place"]


@dataclass(frozen=True, slots=True)
class Requested:
    """The topology a test asks for; the names are those of Appendix C."""

    num_circuits: int = 1
    num_publishers: int = 1
    num_consumers: int = 1
    num_destinations: int = 1
    max_publishing_node: int = 1
    single_role: bool = True


@dataclass(frozen=True, slots=True)
class Placed:
    """One circuit on real nodes: the publisher, and the consumers of each receiver."""

    publisher: str
    receivers: tuple[tuple[str, tuple[int, ...]], ...]


def divide(total: int, nodes: int) -> tuple[int, ...]:
    """Divide evenly: sizes differ by at most one, the larger ones first."""
    share, rest = divmod(total, nodes)
    return tuple(share + (index < rest) for index in range(nodes))


def place(
    requested: Requested, senders: Sequence[str], receivers: Sequence[str]
) -> tuple[Placed, ...]:
    """Apply the requested topology to the nodes that are there."""
    publishing = list(senders)[: requested.max_publishing_node]
    left = [node for node in receivers if not (requested.single_role and node in publishing)]
    if not publishing or not left:
        raise UsageError(
            f"{len(publishing)} nodes publish, so no node can receive"
            if publishing
            else "no node can publish",
            code="topology",
            hint="start more clients, lower max_publishing_node, or set single_role=false",
        )
    owners = [
        node
        for node, share in zip(
            publishing, divide(requested.num_circuits, len(publishing)), strict=True
        )
        for _ in range(share)
    ]
    total = requested.num_circuits * requested.num_consumers
    seats = [
        node
        for node, share in zip(left, divide(total, len(left)), strict=True)
        for _ in range(share)
    ]
    return tuple(
        Placed(owner, _gather(seats[at * requested.num_consumers :], requested.num_consumers))
        for at, owner in enumerate(owners)
    )


def _gather(seats: Sequence[str], count: int) -> tuple[tuple[str, tuple[int, ...]], ...]:
    held: dict[str, list[int]] = {}
    for consumer, node in enumerate(seats[:count]):
        held.setdefault(node, []).append(consumer)
    return tuple((node, tuple(indexes)) for node, indexes in held.items())


def describe(requested: Requested, placed: Sequence[Placed]) -> str:
    """Describe the requested and the actual topology in one line of the journal."""
    publishers: dict[str, int] = {}
    receivers: dict[str, int] = {}
    for circuit in placed:
        publishers[circuit.publisher] = publishers.get(circuit.publisher, 0) + 1
        for node, consumers in circuit.receivers:
            receivers[node] = receivers.get(node, 0) + len(consumers)
    wanted = (
        f"{requested.num_circuits} circuits of {requested.num_publishers} publishers, "
        f"{requested.num_consumers} consumers, {requested.num_destinations} destinations, "
        f"max_publishing_node={requested.max_publishing_node}, "
        f"single_role={str(requested.single_role).lower()}"
    )
    return f"requested {wanted}; actual circuits {_list(publishers)}, consumers {_list(receivers)}"


def _list(counts: dict[str, int]) -> str:
    return " ".join(f"{name}={count}" for name, count in counts.items())

"""Test cases 1 to 5, and circuits, as groups of instances (IOP-44 to 47, 50 to 60; Appendix D).

Every ordered pair of clients is a case, including a client with itself. Queue names and keys are
new for each instance (IOP-44, 46, 53, 57): they contain the id of the run, so messages of an
earlier run are never received.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from zlib import crc32

from tallystick.core.errors import UsageError
from tallystick.lab.control import Role
from tallystick.lab.instance import Group, Instance, Part, QueueSpec
from tallystick.lab.judge import judge_circuit
from tallystick.lab.parameters import SHAPE, TRAFFIC, read_parameters
from tallystick.lab.topology import Placed, Requested, describe, place

__all__ = [
    "DEFAULTS", "SIZES", "TESTS", "Settings", "circuit_group", "pair_groups", "read_circuit",
]  # fmt: skip

DEFAULTS: Final[Mapping[str, int]] = {
    "P2P_NUM_MESSAGES": 50,
    "PUBSUB_NUM_RECEIVERS": 5,
    "PUBSUB_NUM_MESSAGES": 10,
}
"""Appendix D."""

SIZES: Final = (0, 63, 64, 65, 127, 128, 129, 255, 256, 257)
"""In units of 1024 bytes (IOP-55, IOP-59)."""

TESTS: Final = (
    "TC1_DummyRun",
    "TC2_BasicP2P",
    "TC3_BasicPubSub",
    "TC4_P2PMessageSize",
    "TC5_PubSubMessageSize",
)

_PLAIN: Final = 256
_DIRECT: Final = "amq.direct"
_TOPIC: Final = "amq.topic"


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that all cases of a run share; `given` overrides Appendix D (IOP-21)."""

    run: str
    broker: str
    seed: int = 1
    given: Mapping[str, Any] = field(default_factory=dict)

    def number(self, name: str) -> int:
        """Give a parameter of Appendix D."""
        value = str(self.given.get(name, DEFAULTS[name]))
        if not value.isdecimal():
            raise UsageError(
                f"{name}={value} is not valid",
                code="parameter",
                hint="give a whole number, 0 or more",
            )
        return int(value)


@dataclass(frozen=True, slots=True)
class _Row:
    """One line of the table of pair cases."""

    test: str
    pattern: str
    size: int | None = None

    @property
    def path(self) -> str:
        return self.test if self.size is None else f"{self.test}/{self.size}K"

    @property
    def octets(self) -> int:
        return _PLAIN if self.size is None else self.size * 1024


_ROWS: Final = (
    _Row("TC1_DummyRun", "none"),
    _Row("TC2_BasicP2P", "p2p"),
    _Row("TC3_BasicPubSub", "pubsub"),
    *(_Row("TC4_P2PMessageSize", "p2p", size) for size in SIZES),
    *(_Row("TC5_PubSubMessageSize", "pubsub", size) for size in SIZES),
)


def pair_groups(settings: Settings) -> tuple[Group, ...]:
    """Give test cases 1 to 5: one group, and one invite, for each test and size."""
    return tuple(_pair_group(settings, number, row) for number, row in enumerate(_ROWS))


def _pair_group(settings: Settings, group: int, row: _Row) -> Group:
    def make(senders: Sequence[str], receivers: Sequence[str]) -> list[Instance]:
        return [
            _pair(settings, f"{group}.{at}.{index}", group, row, sender, receiver)
            for at, sender in enumerate(senders)
            for index, receiver in enumerate(receivers)
        ]

    fields, _ = _fields(settings, row, "")
    return Group(row.test, make, fields, {"pattern": row.pattern, "message_bytes": row.octets})


def _fields(settings: Settings, row: _Row, name: str) -> tuple[dict[str, Any], tuple[int, int]]:
    """Give the header fields IOP-45, 47, 54, 58 name, and (messages, receivers)."""
    sized = {} if row.size is None else {"messageSize": row.octets}
    if row.pattern == "p2p":
        count = settings.number("P2P_NUM_MESSAGES")
        key = {"P2P_QUEUE_AND_KEY_NAME": name} if name else {}
        return {**key, "P2P_NUM_MESSAGES": count, **sized}, (count, 1)
    if row.pattern == "pubsub":
        count, many = (settings.number(f"PUBSUB_NUM_{what}") for what in ("MESSAGES", "RECEIVERS"))
        key = {"PUBSUB_KEY": name} if name else {}
        counts = {"PUBSUB_NUM_RECEIVERS": many, "PUBSUB_NUM_MESSAGES": count}
        return {**key, **counts, **sized}, (count, many)
    return {}, (0, 0)


def _pair(
    settings: Settings, number: str, group: int, row: _Row, sender: str, receiver: str
) -> Instance:
    name = f"iop.{settings.run}.{number}"
    fields, (messages, receivers) = _fields(settings, row, name)
    queued = row.pattern == "p2p"
    common = {
        "pattern": row.pattern,
        "destinations": []
        if row.pattern == "none"
        else [
            {
                "exchange": _DIRECT if queued else _TOPIC,
                "key": name,
                "queue": name if queued else "",
            }
        ],
        "message_bytes": row.octets,
        "seed": seed_of(settings.seed, group),
    }
    consumers = [{"index": index, "destination": 0} for index in range(receivers)]
    return Instance(
        f"{settings.broker}/{row.path}/{sender}/{receiver}",
        row.test,
        (
            Part(sender, Role.SENDER, fields, {**common, "num_messages": messages}),
            Part(
                receiver, Role.RECEIVER, fields, {**common, "consumers": consumers},
                share=messages * receivers,
            ),
        ),
        judge_circuit,
        queues=(QueueSpec(name, _DIRECT, name),) if queued else (),
        messages=messages,
        total=messages * receivers,
    )  # fmt: skip


def seed_of(seed: int, group: int) -> int:
    """Give a group's seed: the same for all its pairs, so that blocks are made once."""
    return (seed * 31 + group * 7919 + 1) & 0x7FFFFFFF


def circuit_group(
    settings: Settings,
    name: str,
    requested: Requested,
    body: Mapping[str, Any],
    *,
    batches: int = 1,
    duration: float = 0.0,
) -> Group:
    """Return one test of circuits in parallel, placed on the enlisted clients."""

    def make(senders: Sequence[str], receivers: Sequence[str]) -> list[Instance]:
        path = f"{settings.broker}/Circuit/{name}"
        try:
            _check(requested, body, repeated=batches > 1 or duration > 0)
            placed = place(requested, senders, receivers)
        except UsageError as error:
            fault = f"{error}; {error.hint}" if error.hint else str(error)
            return [Instance(path, "Circuit", (), judge_circuit, fault=fault)]
        return [_circuit(settings, path, requested, placed, body, batches, duration)]

    return Group("Circuit", make, {}, dict(body), everyone=False)


def read_circuit(settings: Settings, given: Mapping[str, str]) -> Group:
    """Read one test of circuits from words: Appendix C's names, `batches` and `duration`."""
    values = read_parameters(given, {**SHAPE, **TRAFFIC})
    shape = {name: values.pop(name) for name in Requested.__slots__ if name in values}
    batches, duration = values.pop("batches", 1), float(values.pop("duration", 0))
    name = ",".join(f"{key}={text}" for key, text in sorted(given.items())) or "default"
    return circuit_group(
        settings, name, Requested(**shape), values, batches=batches, duration=duration
    )


def _check(requested: Requested, body: Mapping[str, Any], *, repeated: bool) -> None:
    places = requested.num_destinations
    if body.get("pattern", "p2p") == "p2p" and requested.num_consumers < places:
        raise UsageError("a queue would have no consumer", code="topology")
    if repeated and int(body.get("num_messages", 100)) % places:
        raise UsageError(
            "the number of batches must be a multiple of the number of destinations",
            code="topology",
        )


def _circuit(
    settings: Settings,
    path: str,
    requested: Requested,
    placed: Sequence[Placed],
    body: Mapping[str, Any],
    batches: int,
    duration: float,
) -> Instance:
    parts: list[Part] = []
    queues: list[QueueSpec] = []
    pattern = body.get("pattern", "p2p")
    messages = int(body.get("num_messages", 100))
    places = requested.num_destinations
    for number, circuit in enumerate(placed):
        base = f"iop.{settings.run}.{crc32(path.encode()):08x}.{number}"
        names = [f"{base}.{index}" for index in range(places)]
        if pattern == "p2p":
            durable = bool(body.get("durable", False))
            queues += [QueueSpec(one, _DIRECT, one, durable=durable) for one in names]
        destinations = [
            {"exchange": _DIRECT, "key": one, "queue": one}
            if pattern == "p2p"
            else {"exchange": _TOPIC, "key": one, "queue": ""}
            for one in names
        ]
        common = {"seed": seed_of(settings.seed, number), **body, "circuit": number,
                  "pattern": pattern, "destinations": destinations}  # fmt: skip
        sending = {**common, "num_publishers": requested.num_publishers, "num_messages": messages}
        parts.append(Part(circuit.publisher, Role.SENDER, {}, sending))
        for node, indexes in circuit.receivers:
            consumers = [{"index": one, "destination": one % places} for one in indexes]
            share = _share(requested, pattern, messages, indexes)
            parts.append(Part(node, Role.RECEIVER, {}, {**common, "consumers": consumers}, share))
    total = sum(_share_all(requested, pattern, messages) for _ in placed)
    return Instance(
        path, "Circuit", tuple(parts), judge_circuit, tuple(queues), messages, total,
        batches, duration, note=describe(requested, placed),
    )  # fmt: skip


def _at(requested: Requested, messages: int, destination: int) -> int:
    """Count the messages of all publishers that go to one destination in a batch."""
    return sum(
        (publisher + sequence) % requested.num_destinations == destination
        for publisher in range(requested.num_publishers)
        for sequence in range(messages)
    )


def _share(requested: Requested, pattern: str, messages: int, indexes: Sequence[int]) -> int | None:
    """Say how many a receiver gets, unless consumers compete for a queue."""
    if pattern == "p2p" and requested.num_consumers > requested.num_destinations:
        return None
    return sum(_at(requested, messages, index % requested.num_destinations) for index in indexes)


def _share_all(requested: Requested, pattern: str, messages: int) -> int:
    served = min(requested.num_consumers, requested.num_destinations)
    if pattern == "p2p":
        return sum(_at(requested, messages, index) for index in range(served))
    return sum(
        _at(requested, messages, index % requested.num_destinations)
        for index in range(requested.num_consumers)
    )

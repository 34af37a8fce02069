"""Make the role assignment of a client: every parameter is included, so no client has defaults.

The first ENLIST of a client lists what its library does not support, with the reason, so the
coordinator knows which roles it can take. An ack mode is sent as numbers: how often to acknowledge,
before or after reading the message, in transactions or not. So is other work that would be equal in
every client: which channels to open, and the time between messages at a given rate
(docs/reference/lab-protocol.md, Parameters).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tallystick.lab.control import Role
from tallystick.lab.parameters import SHAPE, TRAFFIC, read_literal
from tallystick.lab.values import write_values

__all__ = ["ACK_SETTINGS", "complete", "instruct", "why_not"]

_NEVER: Final = {"no_ack": False, "ack_every": 0, "ack_first": False, "ack_tx": False}
ACK_SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "no_ack": {**_NEVER, "no_ack": True},
    "auto": {**_NEVER, "ack_every": 1},
    "pre_ack": {**_NEVER, "ack_every": 1, "ack_first": True},
    "client": _NEVER,
    "dups_ok": {**_NEVER, "ack_every": 10},
    "tx": {**_NEVER, "ack_every": 1, "ack_tx": True},
}
"""What a client is told for each ack mode."""

_DEFAULTS: Final[Mapping[str, Any]] = {
    "pattern": "p2p", "destinations": [], "message_bytes": 0, "seed": 1, "check": "hash",
    "num_publishers": 1, "persistent": False, "mandatory": False, "immediate": False,
    "transactional": False, "tx_batch_size": 100, "outgoing_rate": 0, "header_fields": {},
    "envelopes": [], "consumers": [], "consumer_out_active": True, "ack_mode": "auto",
    "no_local": False, "exclusive": False, "prefetch_count": 0, "inbound_rate": 0, "echo": False,
    "requeue_first": 0,
}  # fmt: skip
_RULES: Final = {**SHAPE, **TRAFFIC}
_OF_ROLE: Final = {
    Role.SENDER: ("immediate", "mandatory", "transactional", "persistent"),
    Role.RECEIVER: ("no_local", "exclusive", "ack_mode"),
}


def complete(body: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """Give every parameter: the case's over those of the client's command line (IOP-21)."""
    own, _ = _own(about)
    whole = {**_DEFAULTS, **own, **body}
    whole |= ACK_SETTINGS.get(str(whole["ack_mode"]), ACK_SETTINGS["auto"])
    if not whole["consumer_out_active"]:
        whole["consumers"] = []
    return whole


def _own(about: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the parameters of a client's command line, and the invalid ones, if any."""
    given = _object(about, "given")
    own = {name: read_literal(given[name]) for name in given if name in _DEFAULTS}
    senseless = [name for name in own if name not in _RULES or not _RULES[name][1](own[name])]
    fault = "".join(f"its command line has {name}={given[name]}" for name in senseless[:1])
    return {name: own[name] for name in own if name not in senseless}, fault


def instruct(role: Role, body: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the assignment of a role: every parameter, and the values derived for this client."""
    whole = complete(body, about)
    sends = role is Role.SENDER
    rate = whole["outgoing_rate" if sends else "inbound_rate"]
    whole |= {
        "lines": list(_publishers(whole) if sends else _consumers(whole)),
        "tx_batch": whole["tx_batch_size"] if whole["transactional" if sends else "ack_tx"] else 0,
        "every_ns": 1_000_000_000 // rate if rate else 0,
        "delivery_mode": 2 if whole["persistent"] else 1,
        "header_values": write_values(whole["header_fields"], about),
    }
    room = whole["prefetch_count"]
    if room and not sends:  # who acknowledges later than that gets no more messages
        whole["ack_every"] = min(whole["ack_every"] or room, room)
        whole["tx_batch"] = min(whole["tx_batch"], room)
    whole["ack_rest"] = whole["ack_every"] != 1 and not whole["no_ack"]
    return whole


def _publishers(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give a channel for each publisher, all on one connection."""
    for index in range(whole["num_publishers"]):
        yield {"index": index, "connect": index == 0}


def _consumers(whole: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return a connection and a channel for each consumer, and its queues."""
    for one in whole["consumers"]:
        place = whole["destinations"][one["destination"]]
        yield {"index": one["index"], "connect": True, **place}


def _object(about: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = about.get(name)
    return found if isinstance(found, Mapping) else {}


def why_not(role: Role, body: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """Say why a client cannot play a role with these parameters, or nothing."""
    if fault := _own(about)[1]:
        return fault
    cannot = _object(about, "cannot")
    for name in _OF_ROLE[role]:
        value = body.get(name)
        reason = cannot.get(f"{name}={value}") or (value is True and cannot.get(name))
        if reason:
            return f"{name}: {reason}"
    if role is Role.SENDER and "field_tags" in about:
        able = about["field_tags"] if isinstance(about["field_tags"], str) else ""
        for tag in sorted(set(_tags(_object(body, "header_fields").values()))):
            if tag not in able:
                return f"{about.get('library')} cannot write a header value of type {tag}"
    return ""


def _tags(values: Iterable[Any]) -> Iterator[str]:
    """Return every tag in tagged values; other values have none."""
    for value in values:
        match value:
            case ["F", {**named}]:
                yield "F"
                yield from _tags(named.values())
            case ["A", [*listed]]:
                yield "A"
                yield from _tags(listed)
            case [str(tag), *_]:
                yield tag

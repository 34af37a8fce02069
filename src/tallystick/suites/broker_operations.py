"""The broker operations of the protocol, done by the package's own functions."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from tallystick.brokers import find_binding
from tallystick.brokers.kafka.reinject import return_topic, returned_headers
from tallystick.brokers.redis.element import read_element, write_element
from tallystick.core import binding as bindings
from tallystick.core import delay as delays
from tallystick.core import envelope as envelopes
from tallystick.core.frame import Frame
from tallystick.core.names import name, names
from tallystick.core.settle import (
    MAX_ATTEMPTS,
    Settlement,
    exhaust,
    settle_gated,
    settle_poison,
)
from tallystick.core.slot import TYPES, native_type
from tallystick.runtime.dead_letter import original_queue

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BROKER_OPERATIONS", "to_bytes", "to_text"]

Given = dict[str, Any]
Result = dict[str, Any]


def to_bytes(given: Given, member: str = "body_base64") -> bytes:
    """Read bytes as the protocol carries them."""
    return base64.b64decode(given[member], validate=True)


def to_text(data: bytes) -> str:
    """Give bytes as the protocol carries them."""
    return base64.b64encode(data).decode()


def project(given: Given) -> Result:
    """Give the native frame of a message."""
    frame = bindings.project(
        find_binding(given["broker"]),
        envelopes.decode(to_bytes(given)),
        **given.get("options", {}),
    )
    types = {
        f"/{section}/{key}": native_type(value)
        for section, fields in frame.sections.items()
        for key, value in fields.items()
    }
    carried = {"sections": _readable(frame.sections), "body_base64": to_text(frame.body)}
    return {**carried, "types": types}


def _readable(value: Any) -> Any:
    """Give native values as JSON can carry them: bytes as UTF-8 text."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items()}
    return value


def reconcile(given: Given) -> Result:
    """Give the attempts of a delivery."""
    binding = find_binding(given["broker"])
    attempts = bindings.reconcile(binding, given.get("body_attempts"), given.get("native", {}))
    return {"attempts": attempts}


def gate(given: Given) -> Result:
    """Say whether a body may be decoded, from a delivery with this version property."""
    binding = find_binding(given["broker"])
    rule = binding.gate
    if rule is None or given.get("absent"):
        return {"decode": bindings.gate_frame(binding, {})}
    carrier = next(s for s in binding.slots if (s.section, s.key) == (rule.section, rule.key))
    value = given["value"]
    if given.get("value_type") == "double":
        value = float(value)
    if given.get("value_type") == "bytes":
        value = value.encode()
    elif isinstance(value, str) and carrier.type != "integer":
        value = TYPES[carrier.type].write(value)
    return {"decode": bindings.gate_frame(binding, {rule.section: {rule.key: value}})}


def settle(given: Given) -> Result:
    """Settle a delivery that failed the version check; give the outcome and the written record."""
    outcome = settle_gated(
        find_binding(given["broker"]).settle,
        given.get("on_unknown_urn"),
        given["dead_letter"] == "on",
        dlq_write=given.get("dlq_write", "ok"),
    )
    record = {"record_base64": given["body_base64"]} if outcome == "dlq_raw" else {}
    return {"outcome": outcome, **record}


def exhaustion(given: Given) -> Result:
    """Settle a failed delivery."""
    binding = find_binding(given["broker"])
    attempts = bindings.reconcile(binding, given.get("body_attempts"), given.get("native", {}))
    ended = exhaust(
        binding.settle,
        given["kind"],
        attempts,
        strategy=given.get("on_unknown_urn"),
        dead_letter=given["dead_letter"],
        max_attempts=given.get("max_attempts", MAX_ATTEMPTS),
    )
    return _ended(ended)


def _ended(ended: Settlement) -> Result:
    if ended.reason is None:
        return {"outcome": ended.outcome}
    return {"outcome": ended.outcome, "reason": ended.reason, "attempts": ended.attempts}


def poison(given: Given) -> Result:
    """Settle a poison body."""
    options = {key: given[key] for key in ("dlq_write", "writer", "tiers") if key in given}
    binding = find_binding(given["broker"])
    ended = settle_poison(
        binding.settle,
        bindings.reconcile(binding, given.get("body_attempts"), given.get("native", {})),
        strategy=given.get("on_unknown_urn"),
        dead_letter=given["dead_letter"],
        max_attempts=given.get("max_attempts", MAX_ATTEMPTS),
        **options,
    )
    return _ended(ended)


def origin(given: Given) -> Result:
    """Give the `original_queue` of a dead letter."""
    queue = original_queue(
        find_binding(given["broker"]),
        given["meta_queue"],
        given["consumed"],
        given.get("native", {}),
    )
    return {"original_queue": queue}


def route(given: Given) -> Result:
    """Give the URN by which a delivery is routed."""
    binding, envelope = find_binding(given["broker"]), envelopes.decode(to_bytes(given))
    return {"urn": bindings.route(binding, given.get("native", {}), envelope.urn)}


def delay(given: Given) -> Result:
    """Give the native fields of a delayed publish."""
    fifo = {"fifo": given["queue_type"] == "fifo"} if "queue_type" in given else {}
    sections = bindings.delay_fields(
        find_binding(given["broker"], given.get("layout", "")),
        given["delay_seconds"],
        now=given.get("now", 0),
        delayed_exchange=given.get("delayed_exchange", False),
        **fifo,
    )
    fields = {key: value for section in sections.values() for key, value in section.items()}
    return {"fields": _readable(fields)}


def visibility(given: Given) -> Result:
    """Give the visibility timeout of a release."""
    rule = find_binding(given["broker"]).visibility
    return {"visibility_timeout": delays.visibility(rule, given["delay_seconds"])}


def tier(given: Given) -> Result:
    """Pick a retry topic, by one of two rules; or name one; or give the default list."""
    return _TIER_MODES[given["mode"]](given)


def _requested_tier(given: Given) -> Result:
    picked = delays.requested_tier(given["tiers_ms"], given["delay_ms"])
    sections = bindings.delay_fields(
        find_binding("kafka"),
        given["delay_ms"] / 1000,
        queue=given["topic"],
        tiers_ms=given["tiers_ms"],
    )
    return _parked(_readable(sections), picked)


def _retry_tier(given: Given) -> Result:
    before = given["attempts"]
    picked = delays.retry_tier(given["tiers_ms"], before)
    message = envelopes.make("urn:tallystick:retry", {}, now_ms=0, new_id=lambda: "id")
    frame = bindings.project(
        find_binding("kafka"),
        envelopes.replace(message, attempts=before + 1),
        queue=given["topic"],
        tiers_ms=given["tiers_ms"],
        attempts_before=before,
        key=to_bytes(given, "key_base64") if "key_base64" in given else None,
    )
    key = frame.get("record", "key")
    parked = _parked(_readable(frame.sections), picked)
    parked["attempts"] = envelopes.decode(frame.body).attempts
    return parked if key is None else {**parked, "key_base64": to_text(key)}


def _parked(sections: dict[str, dict[str, Any]], picked: delays.Tier) -> Result:
    headers = sections["headers"]
    return {
        "topic": sections["record"]["topic"],
        "tier_ms": picked.milliseconds,
        "headers": headers,
    }


def _topic_name(given: Given) -> Result:
    return {"topic": name(find_binding("kafka").names, "retry", given["topic"], n=given["n"])}


def _default_tiers(_given: Given) -> Result:
    return {"tiers_ms": list(delays.DEFAULT_RETRY_TIERS_MS)}


_TIER_MODES: Final[dict[str, Callable[[Given], Result]]] = {
    "requested": _requested_tier,
    "retry": _retry_tier,
    "name": _topic_name,
    "default": _default_tiers,
}


def names_of(given: Given) -> Result:
    """Give the broker's names for the keys, topics and queues of a queue."""
    table = find_binding(given["broker"], given.get("layout", "")).names
    options = {key: given[key] for key in ("suffix", "prefix", "fifo") if key in given}
    return {"keys": names(table, given["queue"], **options)}


def redis_score(given: Given) -> Result:
    """Give the score of a delayed member."""
    return {"score": delays.score(given["now"], given["delay"])}


def reinject(given: Given) -> Result:
    """Give the topic and the headers with which a record returns from a tier topic."""
    headers = {key: value.encode() for key, value in given["headers"].items()}
    topic = return_topic(headers)
    return {"topic": topic, "headers": _readable(returned_headers(headers))}


def due(given: Given) -> Result:
    """Give the time when a record returns from a tier topic."""
    return {"due_ms": delays.due_at(given["timestamp_ms"], given["tier_ms"], given["now_ms"])}


def element(given: Given) -> Result:
    """Give the list element that Redis stores."""
    headers = given.get("headers")
    sections = {} if headers is None else {"headers": headers}
    return {"element_base64": to_text(write_element(Frame(to_bytes(given), sections)))}


def opened_element(given: Given) -> Result:
    """Give the body and the headers of a list element."""
    frame = read_element(to_bytes(given, "element_base64"))
    return {"body_base64": to_text(frame.body), "headers": dict(frame.sections.get("headers", {}))}


BROKER_OPERATIONS: Final[dict[str, Callable[[Given], Result]]] = {
    "project": project,
    "reconcile": reconcile,
    "gate": gate,
    "settle_gated": settle,
    "exhaustion": exhaustion,
    "settle_poison": poison,
    "original_queue": origin,
    "route": route,
    "delay": delay,
    "visibility": visibility,
    "tier": tier,
    "names": names_of,
    "redis_score": redis_score,
    "reinject": reinject,
    "due": due,
    "element": element,
    "read_element": opened_element,
}
"""Broker operation -> the function that does it."""

"""The broker sections of a suite: case -> calls.

One small function per kind of section, in the words of docs/reference/protocol.md and `rules`.
Cases that need a live Redis are in `redis_sections`.
"""

from __future__ import annotations

from typing import Any, Final

from tallystick.suites.raw import Ask, Raw, rejects, to_base64


def projection(raw: Raw) -> Ask:
    """Ask: a projection holds these native fields; others beside them are allowed."""
    body = to_base64(raw.file("envelope_file"))
    sections = {
        name: value
        for name, value in raw.case.items()
        if name not in {"description", "envelope_file"} and isinstance(value, dict)
    }
    return Ask("project", {"broker": raw.broker, "body_base64": body}, _projected(sections))


def _projected(sections: dict[str, Any]) -> dict[str, Any]:
    return {"contains": {"sections": sections}}


def artemis_projection(raw: Raw) -> Ask:
    """Ask: the suite names the JMS slots one by one; they live in three AMQP sections."""
    case = raw.case
    sections = {
        "annotations": {case["jms_type_annotation"]: case["jms_type"]},
        "properties": {"correlation-id": case["correlation_id"]},
        "application_properties": case["properties"],
    }
    given = {"broker": "artemis", "body_base64": to_base64(raw.file("envelope_file"))}
    return Ask("project", given, _projected(sections))


def payload_identity(raw: Raw) -> Ask:
    """Ask: the element a broker stores is the message, byte for byte."""
    body = to_base64(raw.file("envelope_file"))
    given = {"broker": raw.broker, "body_base64": body}
    return Ask("project", given, {"bytes": {"body_base64": body}})


_COUNTS: Final = {
    "approximate_receive_count": ("attributes", "ApproximateReceiveCount"),
    "delivery_count": ("message", "delivery_count"),
    "redelivery_count": ("message", "redelivery_count"),
    "header_attempts": ("headers", "bq-attempts"),
    "bq_attempts": ("properties", "bq-attempts"),
}
"""Field of a case -> section and key in which a broker carries that count."""

_AMQP_COUNT: Final = ("header", "delivery-count")


def _native(raw: Raw) -> dict[str, dict[str, Any]]:
    native: dict[str, dict[str, Any]] = {}
    for field, place in _COUNTS.items():
        count = raw.case.get(field)
        if count is None:
            continue
        amqp = raw.broker == "artemis" and field == "delivery_count"
        section, key = _AMQP_COUNT if amqp else place
        native.setdefault(section, {})[key] = str(count) if section == "headers" else count
    return native


def reconciliation(raw: Raw) -> Ask:
    """Ask: the count a consumer sees, from the body's and the broker's own."""
    given = {
        "broker": raw.broker,
        "body_attempts": raw.case["body_attempts"],
        "native": _native(raw),
    }
    return Ask("reconcile", given, {"members": {"attempts": raw.case["expected_attempts"]}})


def gate(raw: Raw) -> list[Ask]:
    """Ask: the version gate: decode, or reject without decoding; integers at both widths."""
    expect = {"members": {"decode": raw.case["expect"] == "decode"}}
    if raw.case.get("absent"):
        return [Ask("gate", {"broker": raw.broker, "absent": True}, expect)]
    value = raw.case["value"]
    return [
        Ask("gate", {"broker": raw.broker, "value": value, "value_type": kind}, expect)
        for kind in _widths(value)
    ]


def _widths(value: Any) -> tuple[str, ...]:
    """Name the native types a JSON value stands for: an integer is tried at both widths."""
    kinds: dict[type, tuple[str, ...]] = {
        str: ("string",), bool: ("bool",), int: ("int32", "int64"), float: ("double",),
        type(None): ("null",),
    }  # fmt: skip
    return kinds[type(value)]


def version_gate(raw: Raw) -> list[Ask]:
    """How a gated delivery is settled, for each of the bodies of the section."""
    given = {"broker": raw.broker, "native": _native(raw)}
    given |= {
        name: raw.case[name]
        for name in ("on_unknown_urn", "dead_letter", "dlq_write")
        if name in raw.case
    }
    asked = []
    for incoming in raw.whole["incoming_bodies"]:
        body = to_base64(incoming["body"].encode())
        expect: dict[str, Any] = {"members": {"outcome": raw.case["expect"]["outcome"]}}
        if raw.case["expect"].get("record") == "incoming_body":
            expect["bytes"] = {"record_base64": body}
        asked.append(Ask("settle_gated", given | {"body_base64": body}, expect))
    return asked


def exhaustion(raw: Raw) -> Ask:
    """Ask: what happens to a delivery that failed: retry, dead-letter or drop."""
    given = {"broker": raw.broker, "native": _native(raw)}
    given |= {
        name: raw.case[name]
        for name in ("kind", "body_attempts", "max_attempts", "dead_letter", "on_unknown_urn")
        if name in raw.case
    }
    names = {"outcome": "outcome", "reason": "reason", "dead_letter_attempts": "attempts"}
    wanted = raw.case["expect"]
    return Ask(
        "exhaustion",
        given,
        {"members": {ours: wanted[theirs] for theirs, ours in names.items() if theirs in wanted}},
    )


def sqs_delay(raw: Raw) -> Ask:
    """Ask: a delayed publish on SQS: the native field, or a refusal."""
    given = {"broker": "sqs", **{n: raw.case[n] for n in ("queue_type", "delay_seconds")}}
    if rejects(raw):
        return Ask("delay", given, {"rejected": {}})
    fields = {"DelaySeconds": raw.case["expect"]["delay_seconds_attribute"]}
    return Ask("delay", given, {"members": {"fields": fields}})


def visibility(raw: Raw) -> Ask:
    """Ask: the visibility timeout of an SQS release."""
    given = {"broker": "sqs", "delay_seconds": raw.case["delay_seconds"]}
    return Ask("visibility", given, {"members": raw.case["expect"]})


def _tier_given(raw: Raw, mode: str) -> dict[str, Any]:
    case = raw.case
    return {"mode": mode, "topic": case["work_topic"], "tiers_ms": case["retry_tiers_ms"]}


def requested_tier(raw: Raw) -> Ask:
    """Ask: the requested-delay rule: the smallest tier that is long enough."""
    given = _tier_given(raw, "requested") | {"delay_ms": raw.case["delay_ms"]}
    if rejects(raw):
        return Ask("tier", given, {"rejected": {}})
    wanted, tiers = raw.case["expect"], raw.case["retry_tiers_ms"]
    number = tiers.index(wanted["tier_ms"]) + 1
    topic = f"{raw.case['work_topic']}.retry.{number}"
    members = {"topic": topic, "tier_ms": wanted["tier_ms"]}
    return Ask("tier", given, {"members": members, "contains": {"headers": wanted["headers"]}})


def retry_tier(raw: Raw) -> Ask:
    """Ask: the retry rule: the tier follows from the attempts, whatever the delay."""
    before = raw.case.get("attempts_before", raw.case.get("attempts"))
    given = _tier_given(raw, "retry") | {"attempts": before}
    if "key" in raw.case:
        given["key_base64"] = to_base64(raw.case["key"].encode())
    if rejects(raw):
        return Ask("tier", given, {"rejected": {}})
    wanted = raw.case["expect"]
    names = {"topic": "topic", "tier_ms": "tier_ms", "body_attempts": "attempts"}
    expect = {
        "members": {ours: wanted[theirs] for theirs, ours in names.items()},
        "contains": {"headers": wanted["headers"]},
    }
    if "key" in wanted:
        expect["bytes"] = {"key_base64": to_base64(wanted["key"].encode())}
    return Ask("tier", given, expect)


def topic_name(raw: Raw) -> Ask:
    """Ask: what the retry topic of a tier is called."""
    given = {"mode": "name", "topic": raw.case["work_topic"], "n": raw.case["n"]}
    return Ask("tier", given, {"members": {"topic": raw.case["expect_topic"]}})


def default_tiers(raw: Raw) -> Ask:
    """Ask: the recommended list of tiers."""
    return Ask("tier", {"mode": "default"}, {"members": {"tiers_ms": raw.case["expect"]}})


_ROLES: Final = {"ready": "work"}
"""The suite's name of a key -> ours, where they differ."""


def redis_names(raw: Raw) -> Ask:
    """Ask: the keys of the Laravel-compatible layout."""
    given = {"broker": "redis", "queue": raw.case["queue"], "layout": "laravel"}
    given["prefix"] = raw.case["key_prefix"]
    keys = {_ROLES.get(role, role): key for role, key in raw.case["expect"].items()}
    return Ask("names", given, {"contains": {"keys": keys}})


def redis_score(raw: Raw) -> Ask:
    """Ask: the score of a delayed member."""
    given = {name: raw.case[name] for name in ("now", "delay")}
    return Ask("redis_score", given, {"members": {"score": raw.case["expect_score"]}})

"""The sections of a suite about the message itself and its rules: case -> calls.

One small function per kind of section, in the words of docs/reference/protocol.md and `rules`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from tallystick.suites.compare import parse
from tallystick.suites.raw import (
    BROKERS,
    Ask,
    Raw,
    attempts_of,
    rejects,
    to_base64,
    to_json,
    with_bytes,
)
from tallystick.suites.run import FROM_STEP


def cases(raw: Raw) -> Ask:
    """Ask: a whole envelope: accepted or not, and what it says."""
    wanted = dict(raw.case.get("expect", {}))
    expect: dict[str, Any] = {"valid": raw.case["valid"]}
    for member, rule in (("data", "json"), ("dead_letter", "json_contains")):
        if member in wanted:
            expect[rule] = {f"{member}_base64": wanted.pop(member)}
    return Ask("decode", {"body_base64": to_base64(raw.body())}, expect | {"members": wanted})


def decoding(raw: Raw) -> Ask:
    """Decode: it succeeds or raises, with this identity, with or without a warning."""
    expect: dict[str, Any] = {"decodes": raw.case["valid"]}
    if raw.case["valid"]:
        expect["members"] = raw.case.get("expect", {})
        expect["warned"] = raw.case["expect_warning"]
    return Ask("decode", {"body_base64": to_base64(raw.body())}, expect)


def _reencoding(raw: Raw, attempts: int) -> Ask:
    given: dict[str, Any] = {"body_base64": to_base64(raw.body()), "attempts": attempts}
    if "apply_dead_letter" in raw.case:
        given["dead_letter"] = raw.case["apply_dead_letter"]
    document = {"/attempts": attempts, **raw.case.get("expect_preserved", {})}
    dead = raw.case.get("expect_dead_letter", {})
    document |= {f"/dead_letter/{name}": value for name, value in dead.items()}
    expect: dict[str, Any] = {"document": document}
    if "expect_absent_after_reencode" in raw.case:
        expect["absent"] = raw.case["expect_absent_after_reencode"]
    return Ask("reencode", given, expect)


def roundtrip(raw: Raw) -> list[Ask]:
    """Decode without a warning, count one attempt, encode: what was there is still there."""
    read = Ask("decode", {"body_base64": to_base64(raw.body())}, {"valid": True, "warned": False})
    return [read, _reencoding(raw, raw.case["expect_attempts"])]


def forbidden_keys(raw: Raw) -> list[Ask]:
    """Ask: a forbidden key is warned about on decode and never written again."""
    body = raw.body()
    expect = {"decodes": True, "warnings": [raw.case["forbidden_key"]]}
    return [
        Ask("decode", {"body_base64": to_base64(body)}, expect),
        _reencoding(raw, attempts_of(body)),
    ]


_MADE: Final = {
    "data": "data_base64", "meta": "meta_base64", "meta_entries": "meta_entries_base64",
    "extras_top": "extras_top_base64", "extras_meta": "extras_meta_base64",
}  # fmt: skip


def _making(raw: Raw) -> dict[str, Any]:
    given = {"urn": raw.case["urn"], "queue": raw.case.get("queue", "default")}
    if "trace_id" in raw.case:
        given["trace_id"] = raw.case["trace_id"]
    parts = {"data": {}} | raw.case
    return given | {_MADE[name]: to_json(parts[name]) for name in _MADE if name in parts}


def data_shape(raw: Raw) -> Ask:
    """Ask: `data` is an object on both ways."""
    if raw.case["mode"] == "decode":
        expect = {"valid": raw.case["valid"]}
        return Ask("decode", {"body_base64": to_base64(raw.body())}, expect)
    return Ask(
        "make",
        _making(raw),
        {"document": {"/data": parse(raw.case["expect_encoded_data_json"])}},
    )


def encode_reject(raw: Raw) -> Ask:
    """Ask: making this message must be refused."""
    return Ask("make", _making(raw), {"rejected": {}})


def extension_write(raw: Raw) -> list[Ask]:
    """Extra `meta` entries are written, and survive one more hop."""
    made = raw.case["expect_envelope"]
    body = {FROM_STEP: 0, "member": "bytes_base64"}
    again = {"document": made | {"/attempts": 1}}
    return [
        Ask("make", _making(raw), {"document": made}),
        Ask("reencode", {"body_base64": body, "attempts": 1}, again),
    ]


def trim(raw: Raw) -> Ask:
    """Ask: the ASCII trim, in each of its four modes."""
    match raw.case["mode"]:
        case "make" if rejects(raw):
            return encode_reject(raw)
        case "make":
            wanted = {f"/{name}": value for name, value in raw.case["expect"].items()}
            return Ask("make", _making(raw), {"document": wanted})
        case "accepts":
            expect = {
                "decodes": raw.case["expect_decode_ok"],
                "accepted": raw.case["expect_accepts"],
            }
            return Ask("decode", {"body_base64": to_base64(raw.body())}, expect)
        case "reemit":
            return _reencoding(raw, raw.case["expect_attempts"])
        case _:
            return decoding(raw)


def identity_verdict(raw: Raw) -> Ask:
    """Two verdicts: an envelope with an identity, or poison."""
    expect = {"decodes": raw.case["expect"] == "ok"}
    return Ask("decode", {"body_base64": to_base64(raw.body())}, expect)


def three_verdicts(raw: Raw) -> Ask:
    """Three verdicts: ok, no_identity and poison."""
    expect = {"members": {"verdict": raw.case["expect"]}}
    return Ask("decode", {"body_base64": to_base64(raw.body())}, expect)


def poison_dlq(raw: Raw) -> Ask:
    """Ask: the dead-letter record of a poison body."""
    queue = raw.whole["original_queue"]
    dead_letter = {"reason": "poison", "original_queue": queue}
    return Ask(
        "poison_record",
        {"body_base64": to_base64(raw.body()), "original_queue": queue, "failed_at": 0},
        {"poison_record": {"dead_letter": dead_letter, **raw.case["expect"]}},
    )


def dedup_key(raw: Raw) -> Ask:
    """Ask: the same message twice runs once, by the key of its `meta.id`."""
    body, key = to_base64(raw.file("envelope_file")), raw.case["expected_key"]
    deliveries = [{"body_base64": body, "outcome": "ok"}] * 2
    expect = {"members": {"effects": ["run", "skip"], "keys": [key, key]}}
    return Ask("idempotency", {"deliveries": deliveries}, expect)


def sequences(raw: Raw) -> Ask:
    """Which deliveries run and which are skipped."""
    steps = raw.case["deliveries"]
    deliveries = [{n: v for n, v in step.items() if n != "expect_effect"} for step in steps]
    effects = [step["expect_effect"] for step in steps]
    return Ask("idempotency", {"deliveries": deliveries}, {"members": {"effects": effects}})


def payload_schema(raw: Raw) -> Ask:
    """Ask: the small JSON Schema subset: valid or not."""
    given = {
        "schema_base64": to_json(raw.whole["schema"]),
        "data_base64": to_json(raw.case["data"]),
    }
    return Ask("validate_subset", given, {"members": {"valid": raw.case["valid"]}})


def traceparent(raw: Raw) -> Ask:
    """Which trace a delivery belongs to."""
    given = {name: raw.case[name] for name in ("traceparent", "trace_id")}
    return Ask("traceparent", given, {"members": raw.case["expect"]})


_BACKOFF: Final = (
    "retry_backoff", "retry_backoff_multiplier", "retry_backoff_max", "retry_jitter", "n",
)  # fmt: skip


def retry_backoff(raw: Raw) -> Ask:
    """Ask: the delay before a retry, exact or within the bounds of its jitter."""
    exact = raw.case.get("expect_delay_seconds")
    between = raw.case.get("expect_delay_range_seconds") or {"min": exact, "max": exact}
    return Ask("backoff", {name: raw.case[name] for name in _BACKOFF}, {"within": between})


_ABOUT: Final = frozenset({"name", "clause", "source", "description", "expect"})


def operated(raw: Raw) -> Ask:
    """Ask what a block asks that names its `operation` itself.

    Either the case says `given` and `expect` in the words of the protocol and the rules, or it has
    a message, arguments beside it, and `expect` is the exact text that must come back. In the
    section of a broker, the broker need not be named again.
    """
    case, operation = raw.case, raw.block["operation"]
    if "given" in case:
        given = with_bytes(case["given"], raw.read)
    else:
        given = {name: value for name, value in case.items() if name not in _ABOUT}
        given = {name: given[name] for name in given if name not in {"body", "file"}}
        given["body_base64"] = to_base64(raw.body())
    if raw.section in BROKERS:
        given = {"broker": raw.section, **given}
    if rejects(raw):
        return Ask(operation, given, {"rejected": {}})
    if isinstance(case["expect"], str):
        text = to_base64(case["expect"].encode())
        return Ask(operation, given, {"bytes": {"bytes_base64": text}})
    return Ask(operation, given, with_bytes(case["expect"], raw.read))


def byte_vector(raw: Raw) -> Ask:
    """Ask for the canonical bytes of a message, or its rejection.

    The manifest names the vectors of a theme; what goes in and comes out stands in its file.
    """
    vector = _vectors(raw.read(raw.block["file"]))[raw.case["name"]]
    given = {"body_base64": vector.get("input_base64") or to_base64(vector["input"].encode())}
    if "rejected" in vector:
        return Ask("canonical", given, {"rejected": vector["rejected"]})
    expected = to_base64(vector["expect"].encode())
    return Ask("canonical", given, {"bytes": {"bytes_base64": expected}})


@lru_cache
def _vectors(text: bytes) -> dict[str, dict[str, Any]]:
    return {vector["name"]: vector for vector in parse(text)["vectors"]}

"""The message operations of the protocol, over the public interface of `babelqueue`.

The canonical bytes of this package are what it writes after its consumer has taken the body:
`encode(decode(body))`, where `poison_cause` finds nothing and `accepts` says yes.
Bodies are text to it, so bytes that are not UTF-8 are handed over as surrogate escapes, which is
how its own check for them expects to see them.
"""

from __future__ import annotations

import json
import logging
import re
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from babelqueue import (
    BabelQueue,
    EnvelopeCodec,
    InMemoryStore,
    InMemoryTransport,
    dead_letter,
    idempotency,
    redrive,
)
from babelqueue.app import retry_delay
from babelqueue.schema import validate_schema
from carried import BROKER_OPERATIONS
from wire import Given, Result, Unsupported, to_base64, to_json, to_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["NOT_OFFERED", "OPERATIONS"]

_SOON = 0.01  # seconds to wait for a message that is already there
_POINTER = re.compile(r"(?<!\S)/[\w/]+")


class _Notes(logging.Handler):
    """Keeps the pointers that the package's warnings name."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.pointers: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the pointers of one warning."""
        self.pointers += _POINTER.findall(record.getMessage())


logging.getLogger("babelqueue").propagate = False


@contextmanager
def _warnings() -> Iterator[list[str]]:
    logger, notes = logging.getLogger("babelqueue"), _Notes()
    logger.addHandler(notes)
    try:
        yield notes.pointers
    finally:
        logger.removeHandler(notes)


def _bytes(envelope: dict[str, Any]) -> Result:
    return {"bytes_base64": to_base64(EnvelopeCodec.encode(envelope))}


def _canonical(given: Given) -> Result:
    """Read the body as its consumer does (poison check, decode, accept), then encode."""
    text = to_text(given)
    cause = EnvelopeCodec.poison_cause(text, require_identity=True)
    if cause is not None:
        return {"rejected": cause}
    with _warnings():
        envelope = EnvelopeCodec.decode(text)
    if not EnvelopeCodec.accepts(envelope):
        return {"rejected": "accepts() says no"}
    return _bytes(envelope)


def _decode(given: Given) -> Result:
    text = to_text(given)
    for verdict, identity in (("poison", False), ("no_identity", True)):
        cause = EnvelopeCodec.poison_cause(text, require_identity=identity)
        if cause is not None:
            return {"verdict": verdict, "reason": cause}
    with _warnings() as warnings:
        envelope = EnvelopeCodec.decode(text)
    meta = envelope.get("meta") or {}
    result = {
        "verdict": "ok",
        "reason": "",
        "accepted": EnvelopeCodec.accepts(envelope),
        "urn": EnvelopeCodec.urn(envelope),
        "attempts": envelope.get("attempts"),
        "lang": meta.get("lang"),
        "schema_version": meta.get("schema_version"),
        "warnings": warnings,
    }
    for member in ("data", "dead_letter"):
        if member in envelope:
            result[f"{member}_base64"] = to_base64(json.dumps(envelope[member]))
    return result


def _annotated(envelope: dict[str, Any], block: Given, attempts: int) -> dict[str, Any]:
    more = {name: block[name] for name in ("error", "exception", "lang") if block.get(name)}
    marked = dead_letter.annotate(
        envelope, block["reason"], block["original_queue"], attempts, **more
    )
    if "failed_at" in block:  # its clock cannot be set; the block is the caller's own dict
        marked["dead_letter"]["failed_at"] = block["failed_at"]
    return marked


def _reencode(given: Given) -> Result:
    with _warnings() as warnings:
        envelope = EnvelopeCodec.decode(to_text(given))
    envelope["attempts"] = given["attempts"]
    if "dead_letter" in given:
        envelope = _annotated(envelope, given["dead_letter"], given["attempts"])
    return {**_bytes(envelope), "warnings": warnings}


def _retry(given: Given) -> Result:
    return {"bytes_base64": _reencode(given)["bytes_base64"]}


def _dead_letter(given: Given) -> Result:
    with _warnings():
        envelope = EnvelopeCodec.decode(to_text(given))
    envelope["attempts"] = given["attempts"]
    return _bytes(_annotated(envelope, given, given["attempts"]))


def _make(given: Given) -> Result:
    if "meta_entries_base64" in given:
        raise Unsupported("`make` takes one mapping; a repeated key cannot be expressed")
    trace = {"trace_id": given["trace_id"]} if "trace_id" in given else {}
    envelope = EnvelopeCodec.make(
        given["urn"],
        to_json(given, "data_base64"),
        queue=given.get("queue", "default"),
        meta=to_json(given, "meta_base64"),
        **trace,
    )
    envelope.update(to_json(given, "extras_top_base64") or {})
    envelope["meta"].update(to_json(given, "extras_meta_base64") or {})
    return _bytes(envelope)


def _redrive(given: Given) -> Result:
    transport = InMemoryTransport()
    transport.publish("letters", to_text(given))
    with _warnings():
        redrive.redrive(transport, "letters", to_queue="work", timeout=_SOON)
    message = transport.pop("work", timeout=_SOON)
    if message is None:
        return {"rejected": "it was not redriven"}
    return {"bytes_base64": to_base64(message.body)}


def _poison_record(given: Given) -> Result:
    """Let a worker meet the body, and look at what it put into the dead-letter queue."""
    transport, queue = InMemoryTransport(), given["original_queue"]
    worker = BabelQueue(
        transport=transport, queue=queue, dead_letter=True, dead_letter_queue="letters"
    )
    transport.publish(queue, to_text(given))
    with _warnings():
        worker.consume(max_messages=1, timeout=_SOON, handle_signals=False)
    message = transport.pop("letters", timeout=_SOON)
    if message is None:
        raise Unsupported("its worker takes this body for good, and it has no public poison record")
    return {"bytes_base64": to_base64(message.body)}


class _Store(InMemoryStore):  # type: ignore[misc]
    """The package's own store, which also keeps the key it was last asked for."""

    asked = ""

    def seen(self, message_id: str) -> bool:
        """Answer as the package does."""
        self.asked = message_id
        return bool(super().seen(message_id))


def _idempotency(given: Given) -> Result:
    store, runs = _Store(), []
    effects, keys = [], []
    for delivery in given["deliveries"]:
        if "body_base64" in delivery:
            meta = EnvelopeCodec.decode(to_text(delivery)).get("meta") or {}
        else:
            meta = {"id": delivery["meta_id"]}
        if delivery.get("forget_before"):
            store.forget(meta["id"])

        def handle(_data: Any, _meta: Any, outcome: str = delivery.get("outcome", "ok")) -> None:
            runs.append(outcome)
            if outcome == "throw":
                raise InterruptedError

        before, store.asked = len(runs), ""
        with suppress(InterruptedError):  # raised where the delivery was to fail
            idempotency.wrap(store, handle)({}, meta)
        effects.append("run" if len(runs) > before else "skip")
        keys.append(store.asked)
    return {"effects": effects, "keys": keys}


def _backoff(given: Given) -> Result:
    def bound(pick: Callable[[float, float], float]) -> float:
        return float(
            retry_delay(
                given["n"],
                given["retry_backoff"],
                given["retry_backoff_multiplier"],
                given["retry_backoff_max"],
                given["retry_jitter"],
                pick,
            )
        )

    return {"min": bound(min), "max": bound(max)}


def _validate_subset(given: Given) -> Result:
    schema, data = to_json(given, "schema_base64"), to_json(given, "data_base64")
    violation = validate_schema(schema, data)
    return {"valid": True} if violation is None else {"valid": False, "violation": violation}


OPERATIONS: dict[str, Callable[[Given], Result]] = {
    "canonical": _canonical,
    "decode": _decode,
    "reencode": _reencode,
    "make": _make,
    "retry": _retry,
    "dead_letter": _dead_letter,
    "redrive": _redrive,
    "poison_record": _poison_record,
    "idempotency": _idempotency,
    "backoff": _backoff,
    "validate_subset": _validate_subset,
    **BROKER_OPERATIONS,
}

NOT_OFFERED = {
    "reconcile": "babelqueue counts attempts inside its transports and offers no function for it",
    "gate": "babelqueue checks the version property inside its transports only",
    "settle_gated": "babelqueue settles inside its consume loop only",
    "exhaustion": "babelqueue decides on exhaustion inside its consume loop only",
    "traceparent": "babelqueue's tracing needs its `otel` extra, which is not installed here",
}

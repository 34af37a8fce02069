"""`tally envelope`: look at one message, write its canonical bytes, carry it over a broker."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tallystick.cli.files import read_bytes
from tallystick.core.envelope import (
    Envelope,
    accepts,
    classify,
    decode,
    encode,
    reason_not_accepted,
)
from tallystick.core.errors import Rejected, UsageError

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    show = verbs.add_parser("show", help="what a consumer sees, and whether it would accept it")
    show.set_defaults(run=_show)
    written = verbs.add_parser("encode", help="write the canonical bytes to stdout, nothing else")
    written.set_defaults(run=_encode)
    projected = verbs.add_parser("project", help="the native fields a broker carries beside it")
    projected.set_defaults(run=_project)
    counted = verbs.add_parser("reconcile", help="the attempts a consumer counts")
    counted.set_defaults(run=_reconcile)
    portable = verbs.add_parser("portable", help="what JSON libraries of others would alter")
    portable.set_defaults(run=_portable)
    for verb in (show, written, projected, counted, portable):
        verb.add_argument("file", help="the message, or - for standard input")
    for verb in (show, projected, counted, portable):
        verb.add_argument("--json", action="store_true", help="one JSON object on stdout")
    for verb in (projected, counted):
        verb.add_argument("--broker", required=True, help="redis, rabbitmq, sqs, kafka, ...")
    projected.add_argument("--queue", default="", help="queue or topic; default: meta.queue")
    projected.add_argument("--delay", type=float, metavar="SECONDS", help="deliver later")
    projected.add_argument("--now", type=float, metavar="EPOCH", help="the clock, for --delay")
    projected.add_argument("--fifo", action="store_true", default=None, help="an ordered queue")
    counted.add_argument(
        "--native",
        default="{}",
        metavar="JSON",
        help='native fields: {"section": {"key": value}}',
    )


def _show(arguments: argparse.Namespace) -> int:
    body = read_bytes(arguments.file)
    verdict = classify(body)
    if verdict.verdict != "ok":
        if arguments.json:
            print(json.dumps({"verdict": verdict.verdict, "reason": verdict.reason}))
            return 1
        raise verdict.rejection or Rejected(verdict.reason, code=verdict.verdict)
    envelope = decode(body)
    view = _view(envelope, body)
    if arguments.json:
        print(json.dumps(view, ensure_ascii=False))
    else:
        for name, value in view.items():
            print(f"{name:15} {value if isinstance(value, str) else json.dumps(value)}")
    return 0 if accepts(envelope) else 1


def _view(envelope: Envelope, body: bytes) -> dict[str, Any]:
    meta = envelope.meta
    return {
        "verdict": "ok",
        "accepted": accepts(envelope),
        "reason": reason_not_accepted(envelope) or "",
        "urn": envelope.urn,
        "trace_id": envelope.trace_id,
        "id": meta.id if meta else None,
        "queue": meta.queue if meta else None,
        "lang": meta.lang if meta else None,
        "schema_version": meta.schema_version if meta else None,
        "created_at": meta.created_at if meta else None,
        "attempts": envelope.attempts,
        "bytes": len(body),
        "canonical": encode(envelope) == body,
        "warnings": [f"{notice.pointer}: {notice.message}" for notice in envelope.warnings],
    }


def _encode(arguments: argparse.Namespace) -> int:
    envelope = decode(read_bytes(arguments.file))
    written = encode(envelope)
    for notice in envelope.warnings:
        print(f"tally: {notice.pointer}: {notice.message}", file=sys.stderr)
    sys.stdout.buffer.write(written)
    return 0


def _project(arguments: argparse.Namespace) -> int:
    from tallystick.brokers import find_binding  # noqa: PLC0415 (only these verbs need the tables)
    from tallystick.core.binding import project  # noqa: PLC0415

    binding = find_binding(arguments.broker)
    envelope = decode(read_bytes(arguments.file))
    given = {name: getattr(arguments, name) for name in ("queue", "delay", "now", "fifo")}
    options = {name: value for name, value in given.items() if value not in (None, "")}
    frame = project(binding, envelope, **options)
    sections = _plain(frame.sections)
    if arguments.json:
        print(json.dumps({"broker": binding.name, "sections": sections}, ensure_ascii=False))
        return 0
    for section, fields in sections.items():
        for key, value in fields.items():
            print(f"{section}.{key} = {json.dumps(value, ensure_ascii=False)}")
    print(f"body = {len(frame.body)} bytes")
    return 0


def _reconcile(arguments: argparse.Namespace) -> int:
    from tallystick.brokers import find_binding  # noqa: PLC0415
    from tallystick.core.binding import reconcile  # noqa: PLC0415

    binding = find_binding(arguments.broker)
    try:
        native = json.loads(arguments.native)
    except ValueError as error:
        raise UsageError(f"--native is not JSON: {error}", code="native") from None
    if not isinstance(native, dict) or not all(isinstance(v, dict) for v in native.values()):
        raise UsageError("--native must be {section: {key: value}}", code="native")
    attempts = reconcile(binding, decode(read_bytes(arguments.file)).attempts, native)
    print(json.dumps({"attempts": attempts}) if arguments.json else attempts)
    return 0


def _portable(arguments: argparse.Namespace) -> int:
    from tallystick.core.portable import find_alterations  # noqa: PLC0415

    found = list(find_alterations(read_bytes(arguments.file)))
    if arguments.json:
        print(json.dumps({"alterations": [asdict(row) for row in found]}, ensure_ascii=False))
    else:
        for row in found:
            place = row.pointer or "(the message)"
            print(f"{place}  {row.language}  {row.found} -> {row.becomes}  ({row.why})")
        if not found:
            print("portable: every library writes it back as it is", file=sys.stderr)
    return 1 if found else 0


def _plain(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Make native values printable: bytes as text, or as base64 when they are no text."""
    return {
        section: {key: _printable(value) for key, value in fields.items()}
        for section, fields in sections.items()
    }


def _printable(value: Any) -> Any:
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}

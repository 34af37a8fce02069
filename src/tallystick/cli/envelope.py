"""`tally envelope`: inspect one message, write its canonical bytes, map it to a broker."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tallystick.cli.config.arguments import add_setting
from tallystick.cli.files import read_message
from tallystick.cli.numbers import above_zero, stamp
from tallystick.core.envelope import (
    Envelope,
    accepts,
    classify,
    decode,
    encode,
    reason_not_accepted,
)
from tallystick.core.errors import Refused, Rejected, UsageError
from tallystick.report.table import one_line

if TYPE_CHECKING:
    from tallystick.core.binding import Binding

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    show = verbs.add_parser(
        "show", help="show the fields that a consumer reads, and whether it accepts the message"
    )
    show.set_defaults(run=_show)
    written = verbs.add_parser(
        "encode", help="write the canonical bytes to stdout, and nothing else"
    )
    written.set_defaults(run=_encode)
    projected = verbs.add_parser(
        "project", help="show the native fields that a broker carries beside the message"
    )
    projected.set_defaults(run=_project)
    counted = verbs.add_parser(
        "reconcile",
        help="show the attempts that a consumer counts, by body and native fields",
    )
    counted.set_defaults(run=_reconcile)
    portable = verbs.add_parser(
        "portable", help="find values that the JSON libraries of other languages change"
    )
    portable.set_defaults(run=_portable)
    for verb in (show, written, projected, counted, portable):
        verb.add_argument("file", help="file with the message, or - for standard input")
    for verb in (show, projected, counted, portable):
        verb.add_argument("--json", action="store_true", help="one JSON object on stdout")
    for verb in (projected, counted):
        add_setting(verb, "broker", required=True, help="redis, rabbitmq, sqs, kafka, ...")
    projected.add_argument("--queue", default="", help="queue or topic (default: meta.queue)")
    projected.add_argument(
        "--layout", default="", help="another layout of the broker, such as laravel"
    )
    projected.add_argument(
        "--delay", type=stamp, metavar="SECONDS", help="deliver after this delay"
    )
    projected.add_argument(
        "--now", type=stamp, metavar="EPOCH", help="current time for --delay, in seconds since 1970"
    )
    projected.add_argument(
        "--tiers",
        type=_tiers,
        metavar="MS,MS",
        dest="tiers_ms",
        help="delays of Kafka's retry topics",
    )
    projected.add_argument(
        "--delayed-exchange", action="store_true", default=None,
        help="the RabbitMQ server has the delayed-message plugin",
    )  # fmt: skip
    projected.add_argument(
        "--fifo", action="store_true", default=None, help="use an ordered (FIFO) queue"
    )
    counted.add_argument(
        "--native",
        default="{}",
        metavar="JSON",
        help='native fields: {"section": {"key": value}}',
    )


def _tiers(text: str) -> list[int]:
    try:
        return [above_zero(part) for part in text.split(",")]
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"{error}; write a list of milliseconds such as 5000,30000"
        ) from None


def _show(arguments: argparse.Namespace) -> int:
    body = read_message(arguments.file)
    verdict = classify(body)
    if verdict.verdict != "ok":
        if arguments.json:
            print(json.dumps({"verdict": verdict.verdict, "reason": verdict.reason}))
            return 1
        raise verdict.rejection or Rejected(verdict.reason, code=verdict.verdict)
    envelope = decode(body)
    view = _view(envelope, body)
    if arguments.json:
        print(json.dumps(view))
    else:
        for name, value in view.items():
            text = value if isinstance(value, str) else json.dumps(value)
            print(f"{name:15} {one_line(text)}")
    return 0 if accepts(envelope) else 1


def _view(envelope: Envelope, body: bytes) -> dict[str, Any]:
    meta = envelope.meta
    canonical, why_unknown = _compare_canonical(envelope, body)
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
        "canonical": canonical,
        **({"canonical_unknown": why_unknown} if why_unknown else {}),
        "warnings": [f"{notice.pointer}: {notice.message}" for notice in envelope.warnings],
    }


def _compare_canonical(envelope: Envelope, body: bytes) -> tuple[bool | None, str]:
    """Say whether the body is in canonical form; None and the reason when it has no such form."""
    try:
        return encode(envelope) == body, ""
    except Refused as refusal:
        return None, str(refusal)


def _encode(arguments: argparse.Namespace) -> int:
    envelope = decode(read_message(arguments.file))
    written = encode(envelope)
    for notice in envelope.warnings:
        print(one_line(f"tally: {notice.pointer}: {notice.message}"), file=sys.stderr)
    sys.stdout.buffer.write(written)
    return 0


_OPTIONS = ("queue", "delay", "now", "fifo", "tiers_ms", "delayed_exchange")
_HINTS = {
    "now": "pass the time of the publish with --now, in seconds since 1970",
    "no_tier": "pass Kafka's retry delays with --tiers; the longest must be at least the delay",
    "delay_unsupported": "for redis use --layout laravel, for rabbitmq --delayed-exchange",
}
"""The code of an error -> the option of ours that helps."""


def _with_option(error: Refused | UsageError) -> Refused | UsageError:
    """Give the error with a hint that names an option of the command line."""
    hint = _HINTS.get(error.code, error.hint)
    if isinstance(error, UsageError):
        return UsageError(error.message, code=error.code, hint=hint)
    return Refused(error.message, code=error.code, pointer=error.pointer, hint=hint)


def _project(arguments: argparse.Namespace) -> int:
    from tallystick.brokers import find_binding  # noqa: PLC0415 (only these verbs need the tables)
    from tallystick.core.binding import project  # noqa: PLC0415

    binding = find_binding(arguments.broker, arguments.layout)
    if arguments.fifo and not binding.names.fifo:
        raise UsageError(
            f"{binding.name} has no ordered (FIFO) queues", code="fifo", hint="leave out --fifo"
        )
    envelope = decode(read_message(arguments.file))
    given = {name: getattr(arguments, name) for name in _OPTIONS}
    options = {name: value for name, value in given.items() if value not in (None, "")}
    try:
        frame = project(binding, envelope, **options)
    except (Refused, UsageError) as error:
        raise _with_option(error) from None
    sections = _plain(frame.sections)
    if arguments.json:
        print(json.dumps({"broker": binding.name, "sections": sections}))
        return 0
    for section, fields in sections.items():
        for key, value in fields.items():
            print(one_line(f"{section}.{key} = {json.dumps(value, ensure_ascii=False)}"))
    print(f"body = {len(frame.body)} bytes")
    return 0


def _reconcile(arguments: argparse.Namespace) -> int:
    from tallystick.brokers import find_binding  # noqa: PLC0415
    from tallystick.core.binding import reconcile  # noqa: PLC0415

    binding = find_binding(arguments.broker)
    try:
        native = json.loads(arguments.native)
    except RecursionError:
        raise UsageError("--native is nested too deeply", code="native") from None
    except ValueError as error:
        raise UsageError(f"--native is not JSON: {error}", code="native") from None
    if not isinstance(native, dict) or not all(isinstance(v, dict) for v in native.values()):
        raise UsageError("--native must be {section: {key: value}}", code="native")
    _check_sections(binding, native)
    attempts = reconcile(binding, decode(read_message(arguments.file)).attempts, native)
    print(json.dumps({"attempts": attempts}) if arguments.json else attempts)
    return 0


def _check_sections(binding: Binding, native: Mapping[str, Any]) -> None:
    """Refuse a section in which this broker counts nothing: it would be ignored unseen."""
    counted = sorted({count.section for count in binding.counts})
    unknown = sorted(native.keys() - set(counted))
    if unknown:
        raise UsageError(
            f"{binding.name} has no delivery count in section {unknown[0]!r}",
            code="native",
            hint=f"sections with counts: {', '.join(counted) or 'none; only the body has a count'}",
        )


def _portable(arguments: argparse.Namespace) -> int:
    from tallystick.core.portable import find_alterations  # noqa: PLC0415

    found = list(find_alterations(read_message(arguments.file)))
    if arguments.json:
        print(json.dumps({"alterations": [asdict(row) for row in found]}))
    else:
        for row in found:
            place = row.pointer or "(the message)"
            line = f"{place}  {row.language}  {row.found} -> {row.becomes}  ({row.why})"
            print(one_line(line))
        if not found:
            print("portable: every library writes the same values back", file=sys.stderr)
    return 1 if found else 0


def _plain(sections: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Make native values printable: bytes as text, or as base64 if they are not text."""
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

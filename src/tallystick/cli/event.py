"""`tally event`: convert CloudEvents from any format to any other, and validate them.

An input is one event or a batch: JSON and XML show which, other formats need `--batch`. The format
is `--from`, else the file's suffix, else JSON. `envelope` is a message of the contract.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tallystick.cli.files import read_bytes, standard_input
from tallystick.core.envelope import decode, encode
from tallystick.core.errors import Rejected, UsageError
from tallystick.events.event import CORE, Event
from tallystick.events.extensions import (
    CONSTRAINED,
    DOCUMENTED,
    SAMPLES,
    Extensions,
    declare,
    parse_declaration,
)
from tallystick.events.formats import FORMATS, find_format
from tallystick.events.mapping import to_envelope, to_event
from tallystick.events.stream import read_json_batch
from tallystick.events.values import write_base64

__all__ = ["register"]

_ENVELOPE: Final = "envelope"
_NAMES: Final = (*FORMATS, _ENVELOPE)
_SUFFIXES: Final = {
    ".json": "json", ".xml": "xml", ".pb": "protobuf", ".protobuf": "protobuf",
    ".binpb": "protobuf", ".avro": "avro",
}  # fmt: skip
_KNOWN: Final = {"samples": SAMPLES, "constrained": CONSTRAINED, "documented": DOCUMENTED}
_XML_ROOT: Final = re.compile(rb"<(?:[^\s/>:!?]+:)?([^\s/>:!?]+)")
_CHUNK: Final = 65_536


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    convert = verbs.add_parser("convert", help="read events in one format, write them in another")
    convert.set_defaults(run=_convert)
    validate = verbs.add_parser(
        "validate", help="check an event or a batch, and show the first error"
    )
    validate.set_defaults(run=_validate)
    for verb in (convert, validate):
        verb.add_argument("file", help="file with the event or batch, or - for standard input")
        verb.add_argument(
            "--from",
            dest="source",
            choices=_NAMES,
            help="format of the input (default: by the file's suffix, else json)",
        )
        verb.add_argument("--batch", action="store_true", help="the input is a batch")
        verb.add_argument(
            "--extension",
            action="append",
            default=[],
            metavar="NAME=TYPE",
            help="declare an extension attribute, such as seen=Timestamp; repeatable",
        )
        verb.add_argument(
            "--known",
            choices=_KNOWN,
            help="declare a list of extensions: those of the "
            "conformance samples, or the documented ones",
        )
        verb.add_argument("--json", action="store_true", help="one JSON object on stdout")
    convert.add_argument(
        "--to",
        dest="target",
        choices=_NAMES,
        default="json",
        help="format of the output (default: json)",
    )
    convert.add_argument("-o", "--output", metavar="FILE", help="write to FILE (default: stdout)")


def _extensions(arguments: argparse.Namespace) -> Extensions:
    declared = declare(*map(parse_declaration, arguments.extension))
    for name in declared:
        if name in CORE:
            raise UsageError(
                f"{name!r} is not an extension: it is an attribute of the CloudEvents "
                "specification",
                code="bad_extension_name",
            )
    return {**_KNOWN.get(arguments.known, {}), **declared}


def _format_name(arguments: argparse.Namespace) -> str:
    chosen: str | None = arguments.source
    return chosen or _SUFFIXES.get(Path(arguments.file).suffix.lower(), "json")


def _is_batch(head: bytes, name: str) -> bool:
    """Tell a batch by its beginning, where the format shows it."""
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if name == "json":
        return text.startswith(b"[")
    root = _XML_ROOT.search(text) if name == "xml" else None
    return root is not None and root[1] == b"batch"


def _read(body: bytes, name: str, known: Extensions, *, batch: bool) -> Event | tuple[Event, ...]:
    if name == _ENVELOPE:
        return to_event(decode(body))
    form = find_format(name)
    if not (batch or _is_batch(body[:4096], name)):
        return form.read(body, known)
    if form.read_batch is None:
        raise UsageError(f"the format {name} has no batches", code="no_batch")
    return form.read_batch(body, known)


def _write(found: Event | tuple[Event, ...], name: str) -> bytes:
    if isinstance(found, Event):
        return encode(to_envelope(found)) if name == _ENVELOPE else find_format(name).write(found)
    form = None if name == _ENVELOPE else find_format(name)
    if form is None or form.write_batch is None:
        raise UsageError(
            f"the format {name} has no batches", code="no_batch", hint="use json, protobuf or xml"
        )
    return form.write_batch(found)


def _convert(arguments: argparse.Namespace) -> int:
    body = read_bytes(arguments.file)
    found = _read(body, _format_name(arguments), _extensions(arguments), batch=arguments.batch)
    written = _write(found, arguments.target)
    if arguments.output is not None:
        Path(arguments.output).write_bytes(written)
    if arguments.json:
        count = 1 if isinstance(found, Event) else len(found)
        about: dict[str, Any] = {"format": arguments.target, "events": count}
        if arguments.output is None:
            about["bytes_base64"] = write_base64(written)
        print(json.dumps(about))
    elif arguments.output is None:
        sys.stdout.buffer.write(written)
        sys.stdout.buffer.flush()
    return 0


def _chunks(name: str) -> Iterator[bytes]:
    """Give a file, or standard input, piece by piece."""
    if name == "-":
        yield from iter(lambda: standard_input().buffer.read(_CHUNK), b"")
        return
    with Path(name).open("rb") as file:
        yield from iter(lambda: file.read(_CHUNK), b"")


def _validate(arguments: argparse.Namespace) -> int:
    name, known = _format_name(arguments), _extensions(arguments)
    try:
        batch, count = _count(arguments, name, known)
    except Rejected as error:
        if not arguments.json:
            raise
        about = {"valid": False, "format": name, "error": error.message, "code": error.code}
        about |= {"pointer": error.pointer, "offset": error.offset}
        print(json.dumps(about))
        return 1
    if arguments.json:
        print(json.dumps({"valid": True, "format": name, "batch": batch, "events": count}))
    else:
        print(f"valid: a {name} batch of {count} events" if batch else f"valid: one {name} event")
    return 0


def _count(arguments: argparse.Namespace, name: str, known: Extensions) -> tuple[bool, int]:
    """Judge the input and give whether it is a batch, and how many events; JSON as a stream."""
    pieces = _chunks(arguments.file)
    head = next(pieces, b"")
    if name == "json" and (arguments.batch or _is_batch(head, name)):

        def rejoined() -> Iterator[bytes]:
            yield head
            yield from pieces

        return True, sum(1 for _ in read_json_batch(rejoined(), known))
    found = _read(head + b"".join(pieces), name, known, batch=arguments.batch)
    return (False, 1) if isinstance(found, Event) else (True, len(found))

"""`bqschema`: a replacement for the Go tool of that name, with the same interface.

It has the same commands, flags, texts and exit codes: 0 valid or compatible, 1 a violation or a
breaking change, 2 usage or I/O error. Where the Go tool differs from its own README, this tool
follows the README: removing a field is breaking in any model, changes behind `$ref` and combinators
are found, a mark works at any depth, lengths are characters, big integers stay exact, and an
exported reference has a target. An address without a host means loopback. For a gate that fails on
unknown results use `tally schema`.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick.cli.bqschema_flags import Flag, parse_flags
from tallystick.cli.bqschema_json import DecodeError, decode, decode_object, encode, quote
from tallystick.cli.bqschema_registry import (
    Registry,
    bundle_file,
    fail,
    load_registry,
    read_file,
    read_schema_file,
)
from tallystick.cli.bqschema_rules import find_lines, find_violations, path_of_pointer
from tallystick.core.errors import MissingExtra, Rejected, TallystickError, UsageError
from tallystick.core.extras import check_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["COMMANDS", "main"]

_USAGE: Final = """\
bqschema — file-based per-URN schema governance for BabelQueue

Usage:
  bqschema validate        [--registry registry.json] <envelope.json>...
  bqschema compat          <old-schema.json> <new-schema.json>
  bqschema check           [--registry registry.json]
  bqschema export-asyncapi [--registry registry.json] [-o asyncapi.json]
                           [--title T] [--doc-version V]
  bqschema serve           [--registry registry.json] [--addr :8081] [--compatibility BACKWARD]
  bqschema gdpr            [--registry registry.json] [--require [--pattern RE]]
                           [--mask message.json [--urn URN]]

Exit codes: 0 valid or compatible, 1 violation or breaking change, 2 usage or IO error.
Schemas are draft-07 JSON Schema (subset) for the envelope's "data" block."""
_PATTERN: Final = (
    "(?i)(email|e_mail|mail|ssn|phone|msisdn|tckn|national_id|passport|iban|credit_card"
    "|card_number|cvv|address|birth|dob)"
)
_REGISTRY: Final = Flag("registry", "registry.json", "path to the registry manifest")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(words)
    except SystemExit as stop:
        return int(stop.code or 0)
    except TallystickError as error:
        sys.stdout.flush()
        print(f"bqschema: {error.message}", file=sys.stderr)
        if isinstance(error, MissingExtra):
            print(f"  hint: {error.hint}", file=sys.stderr)
        return 2


def _run(words: list[str]) -> int:
    if not words:
        print(_USAGE, file=sys.stderr)
        return 2
    name, rest = words[0], words[1:]
    if name in ("help", "-h", "--help"):
        print(_USAGE)
        return 0
    if name not in COMMANDS:
        print(f"bqschema: unknown command {quote(name)}\n\n{_USAGE}", file=sys.stderr)
        return 2
    flags, command = COMMANDS[name]
    return command(*parse_flags(name, flags, rest))


def _validate(flags: dict[str, Any], words: list[str]) -> int:
    if not words:
        raise fail("validate: pass one or more envelope JSON files")
    registry = load_registry(flags["registry"])
    failed = False
    for file in words:
        message = _read_message(file)
        urn = _urn_of(message)
        if not urn:
            print(f"{file}: no job/urn — skipped")
        elif urn not in registry.paths:
            print(f"{file} [{urn}]: no schema registered — skipped")
        else:
            violations = find_violations(registry.read(urn), message.get("data"))
            failed = failed or bool(violations)
            count = f"{len(violations)} violation(s)" if violations else "ok"
            print("\n  - ".join([f"{file} [{urn}]: {count}", *violations]))
    return 1 if failed else 0


def _read_message(file: str) -> dict[str, Any]:
    try:
        message = decode_object(read_file(file))
    except DecodeError as error:
        raise fail(f"{file}: invalid JSON: {error}") from error
    return message or {}


def _urn_of(message: dict[str, Any]) -> str:
    names = (message.get(name) for name in ("job", "urn"))
    return next((name for name in names if isinstance(name, str) and name), "")


def _compat(_: dict[str, Any], words: list[str]) -> int:
    if len(words) != 2:
        raise fail("compat: need exactly two schema files: <old> <new>")
    old, new = (read_schema_file(word) for word in words)
    lines, undecided = _breaks(words, old, new)
    if undecided:
        print(f"undecided: {undecided} (mint a new URN to be safe)")
        return 1
    if not lines:
        print("backward-compatible: no breaking changes.")
        return 0
    head = f"{len(lines)} breaking change(s) — mint a new URN instead (versioning-policy §3):"
    print("\n  - ".join([head, *sorted(lines, key=str.encode)]))
    return 1


def _breaks(words: list[str], old: Any, new: Any) -> tuple[list[str], str]:
    """Return the breaking changes, or why nothing could be proven.

    The proof decides. The rules of the reference give the texts, and replace the proof if a schema
    does not compile.
    """
    from tallystick.schemas.compat import compare_bundled  # noqa: PLC0415 - loads jsonschema-rs

    rules = find_lines(old, new)
    try:
        before, after = (
            bundle_file(Path(word).parent, Path(word).name, schema)
            for word, schema in zip(words, (old, new), strict=True)
        )
        comparison = compare_bundled(before, after, "babelqueue")
    except (Rejected, UsageError) as error:
        doubt = error.message if error.code == "schema.mixed" and not rules else ""
        return [line.text for line in rules], doubt
    if comparison.verdict == "compatible":
        return [], ""
    extra = [
        f"{path}: {change.message}" if (path := path_of_pointer(change.pointer)) else change.message
        for change in comparison.changes
        if change.effect == "breaking"
        and not any(
            line.covers(change.pointer) or line.covers(f"{change.pointer}/{change.rule}")
            for line in rules
        )
    ]
    lines = [*(line.text for line in rules), *dict.fromkeys(extra)]
    return lines, "" if lines else comparison.reason or "the schemas could not be compared"


def _check(flags: dict[str, Any], _: list[str]) -> int:
    registry = load_registry(flags["registry"])
    failed = False
    for urn in registry.paths:
        try:
            registry.read(urn)
        except UsageError as error:
            failed = True
            print(f"  x {urn}: {error.message}")
        else:
            print(f"  ok {urn}")
    print(f"{len(registry.paths)} URN(s) in registry.")
    return 1 if failed else 0


def _export(flags: dict[str, Any], _: list[str]) -> int:
    from tallystick.schemas.asyncapi import (  # noqa: PLC0415 - loads the catalog
        aim_references,
        message_ids,
    )

    registry = load_registry(flags["registry"])
    channels, messages = {}, {}
    for urn, name in message_ids(registry.paths).items():
        payload = registry.bundled(urn)
        here = f"#/components/messages/{name}"
        if '"$ref"' in encode(payload):
            payload = aim_references(payload, f"{here}/payload")
        channels[urn] = {"address": urn, "messages": {name: {"$ref": here}}}
        messages[name] = {"name": urn, "payload": payload}
    text = encode({
        "asyncapi": "3.0.0",
        "info": {"title": flags["title"], "version": flags["doc-version"]},
        "channels": channels,
        "components": {"messages": messages},
    })  # fmt: skip
    target = flags["o"]
    if not target:
        print(text)
        return 0
    try:
        Path(target).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise fail(f"write {target}: open {target}: {reason}") from error
    print(f"wrote {target} ({len(channels)} URN(s))", file=sys.stderr)
    return 0


def _serve(flags: dict[str, Any], _: list[str]) -> int:
    from tallystick.core.errors import Unavailable  # noqa: PLC0415 - used here alone
    from tallystick.server.levels import read_level  # noqa: PLC0415 - the server is an extra
    from tallystick.server.reload import open_store  # noqa: PLC0415
    from tallystick.server.serve import listen, serve  # noqa: PLC0415

    check_extra("server")
    level = read_level(flags["compatibility"])
    host, _colon, port = flags["addr"].rpartition(":")
    if not port.isdecimal():
        raise fail(f"serve: listen tcp: address {flags['addr']}: missing port in address")
    store = open_store(Path(flags["registry"]))
    try:
        opened = listen(host.strip("[]") or "127.0.0.1", int(port))
    except Unavailable as error:
        reason = error.message.rpartition(": ")[2].lower()
        raise fail(f"serve: listen tcp {flags['addr']}: bind: {reason}") from error
    place = flags["addr"] if int(port) else f"{host}:{opened.getsockname()[1]}"
    count = len(store.snapshot.subjects)

    def ready() -> None:
        print(
            f"bqschema serve: Confluent-compatible REST on {place} "
            f"({count} subject(s), compatibility={level})",
            file=sys.stderr,
            flush=True,
        )

    serve(store, opened, level, "babelqueue", reload_seconds=1.0, ready=ready)
    return 0


def _gdpr(flags: dict[str, Any], _: list[str]) -> int:
    registry = load_registry(flags["registry"])
    if flags["mask"]:
        return _mask(registry, flags["mask"], flags["urn"])
    if flags["require"]:
        return _require(registry, flags["pattern"] or _PATTERN)
    from tallystick.cli.schema_gdpr import print_inventory  # noqa: PLC0415 - loads the walk
    from tallystick.schemas.pii import inventory  # noqa: PLC0415

    print_inventory({urn: inventory(registry.bundled(urn)) for urn in registry.paths})
    return 0


def _require(registry: Registry, pattern: str) -> int:
    from tallystick.schemas.pii import fields_of  # noqa: PLC0415 - loads the walk

    matches = _compile(pattern)
    found = [
        (urn, field.path)
        for urn in registry.paths
        for field in fields_of(registry.bundled(urn))
        if field.is_leaf and field.category is None and not field.covered
        and not field.path.endswith(("]", "*", "}")) and matches(field.name)
    ]  # fmt: skip
    if not found:
        count = len(registry.paths)
        print(f"ok: every PII-named field across {count} URN(s) is marked x-gdpr-sensitive.")
        return 0
    rows = sorted(set(found), key=lambda pair: (pair[0].encode(), pair[1].encode()))
    print(
        f'{len(rows)} un-annotated PII field(s) — add "x-gdpr-sensitive": true '
        "(or mint the URN deliberately):"
    )
    for urn, path in rows:
        print(f"  x {urn}: {path}")
    return 1


_REGEXP_FAULTS: Final = (
    (re.compile(r"\(\?(?:[=!]|<[=!])"), "invalid or unsupported Perl syntax: `{}`"),
    (re.compile(r"\\[1-9]"), "invalid escape sequence: `{}`"),
)


def _compile(pattern: str) -> Callable[[str], object]:
    fault = ""
    for form, words in _REGEXP_FAULTS:
        found = form.search(pattern)
        fault = fault or (words.format(found[0]) if found else "")
    if not fault:
        try:
            return re.compile(pattern).search
        except re.error as error:
            closing = {"missing ), unterminated subpattern": "missing closing )",
                       "unbalanced parenthesis": "unexpected )",
                       "unterminated character set": "missing closing ]",
                       "nothing to repeat": "missing argument to repetition operator"}  # fmt: skip
            part = pattern[error.pos or 0 :] if "character set" in error.msg else pattern
            part = pattern[error.pos or 0] if error.msg == "nothing to repeat" else part
            fault = f"{closing.get(error.msg, error.msg)}: `{part}`"
    raise fail(f"gdpr: invalid PII name pattern: error parsing regexp: {fault}")


def _mask(registry: Registry, file: str, named: str) -> int:
    from tallystick.schemas.mask import (  # noqa: PLC0415 - loads the walk
        REFERENCE,
        plan_envelope,
        plan_payload,
        splice,
    )

    message = _read_message(file)
    own = _urn_of(message)
    urn = own if own and ("data" in message or not named) else named
    if not urn:
        raise fail("gdpr --mask: no URN — pass --urn, or use an envelope with a job/urn field")
    if urn not in registry.paths:
        print(f"bqschema: gdpr --mask: no schema registered for {quote(urn)}", file=sys.stderr)
        return 1
    schema = registry.bundled(urn)
    text = encode(message)
    if urn == own and "data" in message:
        text = splice(text.encode(), plan_envelope(schema, message, REFERENCE)).decode()
    elif urn == named:
        text = splice(text.encode(), plan_payload(schema, message, REFERENCE)).decode()
    print(encode(decode(text.encode())))
    return 0


COMMANDS: Final[
    dict[str, tuple[tuple[Flag, ...], Callable[[dict[str, Any], list[str]], int]]]
] = {
    "validate": ((_REGISTRY,), _validate),
    "compat": ((), _compat),
    "check": ((_REGISTRY,), _check),
    "export-asyncapi": ((
        _REGISTRY,
        Flag("o", "", "write to this file instead of stdout"),
        Flag("title", "BabelQueue Event Catalog", "title of the catalog"),
        Flag("doc-version", "1.0.0", "version of the catalog"),
    ), _export),
    "serve": ((
        _REGISTRY,
        Flag("addr", ":8081", "address to listen on; without a host, loopback"),
        Flag("compatibility", "BACKWARD", "compatibility level that is applied and reported"),
    ), _serve),
    "gdpr": ((
        _REGISTRY,
        Flag("require", False, "fail when a PII-named field is not marked"),
        Flag("pattern", "", "with -require: names that are PII, as a regular expression"),
        Flag("mask", "", "print this message with its sensitive fields masked"),
        Flag("urn", "", "with -mask: the URN of a bare data object"),
    ), _gdpr),
}  # fmt: skip
"""Command -> (its flags, what it does)."""

if __name__ == "__main__":
    sys.exit(main())

"""`tally schema gdpr`: list fields with personal data, require marks for them, mask messages.

    tally schema gdpr --registry registry.json                    list the marked fields
    tally schema gdpr --require [--pattern RE] [--waivers FILE]   fail if a mark is missing
    tally schema gdpr --mask message.json [--urn URN]             print the masked message

`--require` finds personal data by field names (English and Turkish), by formats, and by the
checksums of example values. `--pattern` replaces these checks by one regular expression for names.
A waiver has a reason and an expiry date; an expired waiver is a finding. `waivers.json` beside the
manifest is read automatically.

`--mask` keeps a value only if the schema proves that it is not sensitive, and masks all others.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallystick.cli.annotations import add_outputs, gate, tell_machines, wants_marks
from tallystick.cli.config.arguments import add_setting
from tallystick.cli.files import read_bytes
from tallystick.cli.outputs.colour import paint_verdict
from tallystick.cli.schema import REGISTRY_HELP
from tallystick.core.errors import UsageError
from tallystick.schemas.catalog import Catalog, load_catalog
from tallystick.schemas.mask import mask_message
from tallystick.schemas.outputs import Mark
from tallystick.schemas.pii import Suspect, audit, inventory, read_examples
from tallystick.schemas.validate import compile_entry, is_envelope, urn_of
from tallystick.schemas.values import parse_json
from tallystick.schemas.waivers import Settled, Waiver, parse_waivers, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["register", "run"]

_WAIVERS = "waivers.json"


def register(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "gdpr",
        help="list personal data, require marks for it, or mask it",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_setting(parser, "registry", metavar="PATH", help=REGISTRY_HELP)
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--require", action="store_true", help="fail if a field with personal data has no mark"
    )
    mode.add_argument(
        "--mask",
        metavar="FILE",
        help="print the message in FILE with its personal data masked; - is stdin",
    )
    parser.add_argument(
        "--pattern",
        metavar="RE",
        help="with --require: regular expression for names of personal data",
    )
    parser.add_argument("--urn", help="with --mask: URN of the data, if the file has no envelope")
    parser.add_argument(
        "--waivers",
        type=Path,
        metavar="FILE",
        help=f"file with waivers (default: {_WAIVERS} beside the manifest, if it exists)",
    )
    parser.add_argument(
        "--today", type=_day, metavar="DATE", help="date for the expiry of waivers (default: today)"
    )
    add_outputs(parser)
    parser.set_defaults(run=run)


def _day(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a date; write for example 2026-01-31"
        ) from None


@gate("tally schema gdpr")
def run(args: argparse.Namespace) -> int:
    """List, require or mask; 1 when something personal has no mark or a waiver has run out."""
    for name, needed, given in (
        ("pattern", "--require", args.require),
        ("waivers", "--require", args.require),
        ("urn", "--mask", args.mask is not None),
    ):
        if getattr(args, name) is not None and not given:
            raise UsageError(
                f"--{name} needs {needed}",
                code="option.alone",
                hint=f"add {needed}, or leave out --{name}",
            )
    catalog = load_catalog(args.registry)
    if args.mask is not None:
        return _mask(catalog, args)
    return _require(catalog, args) if args.require else _list(catalog, args)


def _list(catalog: Catalog, args: argparse.Namespace) -> int:
    marked = {urn: inventory(_schema(catalog, urn)) for urn in sorted(catalog.entries)}
    total = sum(map(len, marked.values()))
    if args.json:
        rows = [
            {"urn": urn, "path": path, "category": category}
            for urn, paths in marked.items()
            for path, category in paths.items()
        ]
        print(json.dumps({"urns": len(marked), "sensitive": total, "fields": rows}, indent=2))
    else:
        print_inventory(marked)
    marks = [Mark(urn, "passed", f"{len(paths)} sensitive") for urn, paths in marked.items()]
    tell_machines(args, "tally schema gdpr", marks)
    return 0


def _schema(catalog: Catalog, urn: str) -> Any:
    """Give the schema of a URN, known to be well formed."""
    return compile_entry(catalog, urn)[0].schema


def print_inventory(marked: dict[str, dict[str, str]]) -> None:
    """Print every marked path by URN and the summary, as the reference does."""
    for urn, paths in marked.items():
        print(
            f"  {urn}: " + (f"{len(paths)} sensitive field(s)" if paths else "no sensitive fields")
        )
        for path, category in paths.items():
            print(f"    - {path}" + (f" ({category})" if category else ""))
    total = sum(map(len, marked.values()))
    print(f"{len(marked)} URN(s), {total} sensitive field(s).")


def _require(catalog: Catalog, args: argparse.Namespace) -> int:
    suspects = audit(catalog, read_examples(catalog), compile_pattern(args.pattern))
    file, waivers = _waivers(catalog, args.waivers)
    places = [(one.urn, one.path) for one in suspects]
    settled = settle(waivers, places, args.today or dt.datetime.now(tz=dt.UTC).date())
    open_ones = [one for one in suspects if (one.urn, one.path) not in settled.cleared]
    failed = bool(open_ones or settled.expired)
    if args.json:
        print(json.dumps(_as_json(open_ones, settled, clean=not failed), indent=2))
    elif not args.github:
        _print_required(catalog, open_ones, settled, file)
    tell_machines(args, "tally schema gdpr --require", _marks(catalog, open_ones, settled, file))
    return 1 if failed else 0


def compile_pattern(pattern: str | None) -> Callable[[str], bool] | None:
    """Make the test of `--pattern`, or None when there is none."""
    if pattern is None:
        return None
    try:
        search = re.compile(pattern).search
    except re.error as error:
        raise UsageError(
            f"--pattern: {error}", code="option.pattern", hint="write a Python regular expression"
        ) from error
    return lambda name: search(name) is not None


def _waivers(catalog: Catalog, named: Path | None) -> tuple[str, tuple[Waiver, ...]]:
    path = named or catalog.root / _WAIVERS
    if named is None and not path.exists():
        return str(path), ()
    return str(path), parse_waivers(read_bytes(str(path)), str(path))


def _print_required(
    catalog: Catalog, suspects: Sequence[Suspect], settled: Settled, file: str
) -> None:
    if suspects:
        print(
            f'{len(suspects)} un-annotated PII field(s) — add "x-gdpr-sensitive": true '
            "(or mint the URN deliberately):"
        )
    for one in suspects:
        place = f"{_file(catalog, one.file)}:{one.line}"
        print(f"  {paint_verdict('x')} {one.urn}: {one.path} ({place}: {one.reason})")
    for waiver in settled.expired:
        ended = f"the waiver for {_named(waiver)} expired on {waiver.expires}"
        print(f"  {paint_verdict('x')} {file}:{waiver.line}: {ended}")
    for waiver in settled.unused:
        print(f"  - {file}:{waiver.line}: the waiver for {_named(waiver)} matches no finding")
    if not suspects and not settled.expired:
        count = len(catalog.entries)
        told = f"every PII-named field across {count} URN(s) is marked x-gdpr-sensitive."
        print(f"{paint_verdict('ok')}: {told}")


def _named(waiver: Waiver) -> str:
    return f"{waiver.urn}: {waiver.path}"


def _file(catalog: Catalog, path: str) -> str:
    return os.path.normpath(catalog.root / path)


def _as_json(suspects: Sequence[Suspect], settled: Settled, *, clean: bool) -> dict[str, Any]:
    def rows(waivers: Sequence[Waiver]) -> list[dict[str, Any]]:
        return [{**asdict(one), "expires": one.expires.isoformat()} for one in waivers]

    return {
        "clean": clean,
        "suspects": [asdict(one) for one in suspects],
        "expired_waivers": rows(settled.expired),
        "unused_waivers": rows(settled.unused),
    }


def _marks(
    catalog: Catalog, suspects: Sequence[Suspect], settled: Settled, file: str
) -> list[Mark]:
    marks = []
    for one in suspects:
        message = f"{one.path} looks like {one.category or 'personal data'}: {one.reason}"
        place = _file(catalog, one.file)
        marks.append(
            Mark(
                f"{one.urn} {one.path}", "failed", message, message, place, one.line,
                "gdpr/unmarked", one.pointer,
            )
        )  # fmt: skip
    for waiver in settled.expired:
        message = f"the waiver expired on {waiver.expires}: {waiver.reason}"
        name, rule = _named(waiver), "gdpr/waiver-expired"
        marks.append(Mark(name, "failed", message, message, file, waiver.line, rule))
    marks += [
        Mark(
            _named(waiver),
            "warning",
            "the waiver matches no finding",
            "",
            file,
            waiver.line,
            "gdpr/waiver-unused",
        )
        for waiver in settled.unused
    ]
    faulty = {one.urn for one in suspects}
    return [*marks, *(Mark(urn, "passed") for urn in catalog.entries if urn not in faulty)]


def _mask(catalog: Catalog, args: argparse.Namespace) -> int:
    if wants_marks(args) or args.json:
        raise UsageError(
            "--mask prints only the message",
            code="option.alone",
            hint="leave out --json, --github, --junit, --sarif and --code-quality",
        )
    raw = read_bytes(args.mask)
    message = parse_json(raw, args.mask)
    urn = _urn(message, args.urn)
    if urn not in catalog.entries:
        raise UsageError(
            f"no schema is registered for {urn!r}",
            code="urn.unknown",
            hint="`tally schema gdpr` lists the URNs",
        )
    masked = mask_message(raw, message, _schema(catalog, urn)).decode()
    print(masked, end="" if masked.endswith("\n") else "\n")
    return 0


def _urn(message: Any, named: str | None) -> str:
    """Give the URN of a message; an envelope that names another one than `--urn` is a mistake."""
    own = urn_of(message) if is_envelope(message) else ""
    if own and named and own != named:
        raise UsageError(
            f"the message says {own!r}, --urn says {named!r}",
            code="urn.conflict",
            hint="leave out --urn: the envelope names its URN",
        )
    urn = own or named or ""
    if not urn:
        raise UsageError(
            "the message has no URN",
            code="urn.missing",
            hint="pass --urn, or a message with job or urn",
        )
    return urn

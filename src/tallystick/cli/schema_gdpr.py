"""`tally schema gdpr`: which fields carry personal data, which should be marked, and masking.

    tally schema gdpr --registry registry.json                    the inventory
    tally schema gdpr --require [--pattern RE] [--waivers FILE]   fail on fields without a mark
    tally schema gdpr --mask message.json [--urn URN]             print the message masked

`--require` goes by names (English and Turkish), formats and the checksums of example values;
`--pattern` replaces all that by one expression on names. A waiver has a reason and an end; an
expired one is a finding. `waivers.json` beside the manifest is read without being named.

`--mask` keeps every byte that is proven harmless and masks the rest.
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

from tallystick.cli.annotations import add_outputs, gate, tell_machines
from tallystick.cli.files import read_bytes
from tallystick.core.errors import UsageError
from tallystick.schemas.catalog import MANIFEST, Catalog, load_catalog
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
        help="list, require and mask personal data",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--registry", type=Path, default=Path(MANIFEST), metavar="PATH")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--require", action="store_true", help="fail on personal data without a mark")
    mode.add_argument("--mask", metavar="FILE", help="print a message masked; - is stdin")
    parser.add_argument("--pattern", metavar="RE", help="with --require: names that are personal")
    parser.add_argument("--urn", help="with --mask: the URN of bare data")
    parser.add_argument("--waivers", type=Path, metavar="FILE", help=f"default: {_WAIVERS}, if any")
    parser.add_argument("--today", type=_day, metavar="DATE", help="judge waivers as of this day")
    add_outputs(parser)
    parser.set_defaults(run=run)


def _day(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no day, like 2026-01-31") from None


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
                f"--{name} needs {needed}", code="option.alone", hint=f"add {needed}, or leave it"
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
            f"--pattern: {error}", code="option.pattern", hint="a regular expression of Python"
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
        print(f"  x {one.urn}: {one.path} ({place}: {one.reason})")
    for waiver in settled.expired:
        print(f"  x {file}:{waiver.line}: the waiver of {_named(waiver)} ended {waiver.expires}")
    for waiver in settled.unused:
        print(f"  - {file}:{waiver.line}: the waiver of {_named(waiver)} clears nothing")
    if not suspects and not settled.expired:
        count = len(catalog.entries)
        print(f"ok: every PII-named field across {count} URN(s) is marked x-gdpr-sensitive.")


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
        marks.append(Mark(f"{one.urn} {one.path}", "failed", message, message, place, one.line))
    for waiver in settled.expired:
        message = f"the waiver ended {waiver.expires}: {waiver.reason}"
        marks.append(Mark(_named(waiver), "failed", message, message, file, waiver.line))
    marks += [
        Mark(_named(waiver), "warning", "the waiver clears nothing", "", file, waiver.line)
        for waiver in settled.unused
    ]
    faulty = {one.urn for one in suspects}
    return [*marks, *(Mark(urn, "passed") for urn in catalog.entries if urn not in faulty)]


def _mask(catalog: Catalog, args: argparse.Namespace) -> int:
    if args.json or args.github or args.junit:
        raise UsageError(
            "--mask prints the message alone",
            code="option.alone",
            hint="leave out --json, --github and --junit",
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
            hint="leave out --urn: an envelope names its own",
        )
    urn = own or named or ""
    if not urn:
        raise UsageError(
            "the message names no URN",
            code="urn.missing",
            hint="pass --urn, or an envelope with job or urn",
        )
    return urn

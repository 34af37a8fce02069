"""`tally schema compat`: check whether a schema change breaks producers or consumers, with proof.

    tally schema compat old.json new.json
    tally schema compat --against origin/main
    tally schema compat --against v1.0 --mode FULL_TRANSITIVE --github

Every breaking change comes with a witness: a document that was valid before and is invalid now. If
the tool can neither prove compatibility nor find a witness, or cannot read an old version, the
result is `unknown`. That fails the run, unless you pass `--allow-unknown`. A `_TRANSITIVE` mode
compares with every version up to the commit and up to HEAD, and names the version that a change
breaks. If the manifest was moved, it is found by its URNs; you can also name its old path:
`--against v1.0:old/registry.json`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tallystick.cli.annotations import add_outputs, gate, tell_machines
from tallystick.cli.config.arguments import add_setting
from tallystick.cli.outputs.colour import Tone, paint, paint_verdict
from tallystick.cli.schema import REGISTRY_HELP
from tallystick.core.errors import Unavailable, UsageError
from tallystick.schemas.catalog import (
    MANIFEST,
    Catalog,
    bundled,
    load_catalog,
    locate,
    parse_catalog,
    read_inside,
)
from tallystick.schemas.compat import Comparison, compare_bundled
from tallystick.schemas.modes import MODES, mode_named
from tallystick.schemas.outputs import Mark
from tallystick.schemas.registry_compat import Unread, UrnChange, compare_history
from tallystick.schemas.validate import compile_entry

__all__ = ["register", "run"]

_FILE = "schema"
_LONGEST = 500


def register(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "compat",
        help="check whether a schema change breaks producers or consumers, with proof",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("schemas", nargs="*", metavar="OLD NEW", help="two schema files")
    parser.add_argument(
        "--against", metavar="GIT-REF", help="compare the registry with this commit"
    )
    add_setting(parser, "registry", metavar="PATH", help=REGISTRY_HELP)
    add_setting(parser, "mode", metavar="MODE", help=f"one of {', '.join(MODES)}")
    parser.add_argument(
        "--formats",
        choices=("dialect", "assert", "annotate"),
        default="dialect",
        help="whether `format` restricts values (default: as the schema's dialect says)",
    )
    parser.add_argument(
        "--allow-unknown", action="store_true", help="do not fail when the result is unknown"
    )
    add_outputs(parser)
    parser.set_defaults(run=run)


@gate("tally schema compat")
def run(args: argparse.Namespace) -> int:
    """Compare two files, or the registry with a commit; give 1 on a break."""
    mode_named(args.mode)
    unread: list[Unread] = []
    if args.against is None and len(args.schemas) == 2:
        changes = [_compare_files(args)]
    elif args.against is not None and not args.schemas:
        changes, unread = _compare_registry(args)
    else:
        raise UsageError(
            "compat needs two schema files, or --against with a commit",
            code="compat.usage",
            hint="for example: compat old.json new.json, or compat --against origin/main",
        )
    failing = [change for change in changes if _fails(change.comparison, args)]
    if args.json:
        print(json.dumps(_as_json(changes, unread, args), indent=2, ensure_ascii=False))
    elif not args.github:
        if args.against is None:
            _print_comparison(changes[0].comparison, "")
        else:
            _print_registry(changes, unread, args)
    tell_machines(args, "tally schema compat", _marks(changes, unread, args))
    if failing and args.mode == "babelqueue" and not args.json:
        hint = paint("hint:", Tone.QUIET, sys.stderr)
        print(f"{hint} register the new schema under a new URN instead", file=sys.stderr)
    return 1 if failing or (unread and not args.allow_unknown) else 0


def _fails(comparison: Comparison, args: argparse.Namespace) -> bool:
    if comparison.verdict == "unknown":
        return not args.allow_unknown
    return comparison.verdict == "breaking"


def _compare_files(args: argparse.Namespace) -> UrnChange:
    old, new = (_load_file(Path(name), args.registry) for name in args.schemas)
    (before, _), (after, _) = (compile_entry(one, _FILE) for one in (old, new))
    comparison = compare_bundled(
        before.schema, after.schema, args.mode, formats=args.formats, clock=time.process_time
    )
    entry = new.entries[_FILE]
    return UrnChange(entry.path, "changed", comparison, entry, new, args.schemas[0])


def _load_file(path: Path, registry: Path) -> Catalog:
    """Read one schema; its references stay inside the registry's folder, else its own."""
    if not path.is_file():
        reason = "not a file" if path.exists() else "no such file"
        raise Unavailable(f"{path}: {reason}", code="schema.missing", hint="name two schema files")
    root = registry if registry.is_dir() else registry.parent
    if not registry.exists() or not path.resolve().is_relative_to(root.resolve()):
        root = path.parent
    inside = path.resolve().relative_to(root.resolve()).as_posix()
    manifest = json.dumps({"schemas": [{"urn": _FILE, "schema": inside}]})
    found = parse_catalog(manifest, lambda name: read_inside(root, name), str(path), root)
    return replace(found, origin=os.path.join(root, ""))  # noqa: PTH118 - a path that ends with /


def _compare_registry(args: argparse.Namespace) -> tuple[list[UrnChange], list[Unread]]:
    from tallystick.schemas.history import (  # noqa: PLC0415 - only when git is asked
        catalogs_at,
        open_repository,
        past_catalogs,
    )

    new = load_catalog(args.registry)
    transitive = mode_named(args.mode).transitive
    with open_repository(args.registry) as repository:
        past = (past_catalogs if transitive else catalogs_at)(repository, args.against)
        changes, unread = compare_history(
            past, new, args.mode, formats=args.formats, clock=time.process_time
        )
    added = sum(one.state == "added" for one in changes)
    if not transitive and not unread and changes and added == len(changes) == len(new.entries):
        print(f"tally: {args.against} has no URNs: all are new", file=sys.stderr)
    return changes, unread


def _culprit(change: UrnChange, args: argparse.Namespace) -> str:
    """Name the commit that a change was compared with, if there were several."""
    if args.against is None or not mode_named(args.mode).transitive or change.state == "added":
        return ""
    return f" against commit {change.against.partition(':')[0][:12]}"


def _print_registry(
    changes: list[UrnChange], unread: list[Unread], args: argparse.Namespace
) -> None:
    for change in changes:
        verdict = paint_verdict(change.comparison.verdict)
        print(f"{change.state} {change.urn}: {verdict}{_culprit(change, args)}")
        _print_rows(change.comparison, "  ")
    for one in unread:
        print(f"{paint_verdict('unread')} commit {one.commit[:12]}: {one.reason}")
    states = [change.comparison.verdict for change in changes]
    counts = ", ".join(
        f"{states.count(verdict)} {verdict}"
        for verdict in ("breaking", "unknown", "compatible")
        if verdict in states
    )
    print(f"{len(changes)} URN(s) differ{f': {counts}' if counts else ''}.")


def _print_comparison(comparison: Comparison, indent: str) -> None:
    print(f"{indent}{paint_verdict(comparison.verdict)}")
    _print_rows(comparison, f"{indent}  ")


_SIGNS = {"breaking": "x", "compatible": "+", "unknown": "?"}


def _print_rows(comparison: Comparison, indent: str) -> None:
    for row in comparison.changes:
        sign = paint_verdict(_SIGNS[row.effect])
        print(f"{indent}{sign} {row.pointer or '(root)'} {row.rule}: {row.message}")
    if comparison.has_witness:
        print(f"{indent}witness, {_DIRECTIONS[comparison.direction]}:")
        print(f"{indent}  {_shown(comparison.witness)}")
    if comparison.reason:
        print(f"{indent}unknown: {comparison.reason}")


_DIRECTIONS = {
    "backward": "valid before, rejected now",
    "forward": "valid now, rejected before",
}


def _as_json(
    changes: list[UrnChange], unread: list[Unread], args: argparse.Namespace
) -> dict[str, Any]:
    if args.against is None:
        return {"mode": args.mode, **changes[0].comparison.as_json()}
    order = ("compatible", "unknown", "breaking")
    verdicts = [change.comparison.verdict for change in changes]
    verdicts += ["unknown" for _ in unread]
    return {
        "mode": args.mode,
        "against": args.against,
        "verdict": max(verdicts, key=order.index, default="compatible"),
        "urns": [
            {
                "urn": change.urn,
                "state": change.state,
                "file": change.entry.path,
                "against": change.against,
                **change.comparison.as_json(),
            }
            for change in changes
        ],
        "unread": [{"commit": one.commit, "reason": one.reason} for one in unread],
    }


def _marks(changes: list[UrnChange], unread: list[Unread], args: argparse.Namespace) -> list[Mark]:
    """Give one mark per breaking row, or one per URN; the first of a URN shows the witness."""
    level: Any = "warning" if args.allow_unknown else "failed"
    marks = [
        Mark(
            f"commit {one.commit[:12]}",
            level,
            f"cannot be read: {one.reason}",
            one.reason,
            rule="compat/unread",
        )
        for one in unread
    ]
    for change in changes:
        comparison = change.comparison
        name = f"{change.state} {change.urn}{_culprit(change, args)}"
        bad = [row for row in comparison.changes if row.effect == "breaking"]
        file, line, pointer = _place(change, "", args)
        if not _fails(comparison, args):
            passed: Any = "warning" if comparison.verdict == "unknown" else "passed"
            marks.append(Mark(name, passed, comparison.reason, "", file, line, "compat/unknown"))
            continue
        detail = _detail(comparison)
        if not bad:
            message = comparison.reason or "breaking"
            rule = f"compat/{comparison.verdict}"
            text = f"{message}\n{detail}".strip()
            marks.append(Mark(name, "failed", text, detail, file, line, rule, pointer))
        for at, row in enumerate(bad):
            shown = detail if at == 0 else ""
            text = f"{row.rule} at {row.pointer or '(root)'}: {row.message}"
            file, line, pointer = _place(change, row.pointer, args)
            text, rule = f"{text}\n{shown}".strip(), f"compat/{row.rule}"
            marks.append(Mark(name, "failed", text, shown, file, line, rule, pointer))
    return marks


def _place(change: UrnChange, pointer: str, args: argparse.Namespace) -> tuple[str, int, str]:
    """Give file, line and pointer that a row is about, or the manifest that the URN left."""
    if change.state == "removed":
        folder = args.registry.is_dir()
        return str(args.registry / MANIFEST if folder else args.registry), 1, ""
    held = bundled(change.catalog, change.entry.urn)
    place = locate(change.catalog, held, pointer)
    file = place.file if change.catalog.origin else str(change.catalog.root / place.file)
    return os.path.normpath(file), place.line, place.pointer


def _detail(comparison: Comparison) -> str:
    if not comparison.has_witness:
        return ""
    return f"witness, {_DIRECTIONS[comparison.direction]}: {_shown(comparison.witness)}"


def _shown(witness: Any) -> str:
    """Write a witness; a long one is cut short, and says so."""
    text = json.dumps(witness, ensure_ascii=False)
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... ({len(text)} characters; --json gives all)"

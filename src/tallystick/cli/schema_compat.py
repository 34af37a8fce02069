"""`tally schema compat`: tell whether a schema change breaks anybody, with proof.

    tally schema compat old.json new.json
    tally schema compat --against origin/main
    tally schema compat --against v1.0 --mode FULL_TRANSITIVE --github

A break comes with a witness: a document that was valid and now is not. What could be neither
proven nor broken is `unknown` and fails, unless `--allow-unknown` is given; so is an old version
that cannot be read. A `_TRANSITIVE` mode looks at every version up to the commit and up to HEAD,
and names the one that a change breaks. A manifest that was moved is found by its URNs, or named
outright: `--against v1.0:old/registry.json`.
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
        help="tell whether a schema change breaks anybody, with proof",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("schemas", nargs="*", metavar="OLD NEW", help="two schema files")
    parser.add_argument("--against", metavar="GIT-REF", help="compare the registry with a commit")
    parser.add_argument("--registry", type=Path, default=Path("registry.json"), metavar="PATH")
    parser.add_argument(
        "--mode", default="babelqueue", metavar="MODE", help=f"one of {', '.join(MODES)}"
    )
    parser.add_argument("--formats", choices=("dialect", "assert", "annotate"), default="dialect")
    parser.add_argument("--allow-unknown", action="store_true", help="an unknown does not fail")
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
            "compat needs two schema files, or --against and a commit",
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
        print("hint: register the new shape under a new URN instead", file=sys.stderr)
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
        raise Unavailable(f"{path}: {reason}", code="schema.missing", hint="give two schema files")
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
        print(f"tally: there is no URN at {args.against}: all are new", file=sys.stderr)
    return changes, unread


def _culprit(change: UrnChange, args: argparse.Namespace) -> str:
    """Name the commit that a change stands against, where there were several."""
    if args.against is None or not mode_named(args.mode).transitive or change.state == "added":
        return ""
    return f" against commit {change.against.partition(':')[0][:12]}"


def _print_registry(
    changes: list[UrnChange], unread: list[Unread], args: argparse.Namespace
) -> None:
    for change in changes:
        print(f"{change.state} {change.urn}: {change.comparison.verdict}{_culprit(change, args)}")
        _print_rows(change.comparison, "  ")
    for one in unread:
        print(f"unread commit {one.commit[:12]}: {one.reason}")
    states = [change.comparison.verdict for change in changes]
    counts = ", ".join(
        f"{states.count(verdict)} {verdict}"
        for verdict in ("breaking", "unknown", "compatible")
        if verdict in states
    )
    print(f"{len(changes)} URN(s) differ{f': {counts}' if counts else ''}.")


def _print_comparison(comparison: Comparison, indent: str) -> None:
    print(f"{indent}{comparison.verdict}")
    _print_rows(comparison, f"{indent}  ")


_SIGNS = {"breaking": "x", "compatible": "+", "unknown": "?"}


def _print_rows(comparison: Comparison, indent: str) -> None:
    for row in comparison.changes:
        print(f"{indent}{_SIGNS[row.effect]} {row.pointer or '(root)'} {row.rule}: {row.message}")
    if comparison.has_witness:
        print(f"{indent}witness, {_DIRECTIONS[comparison.direction]}:")
        print(f"{indent}  {_shown(comparison.witness)}")
    if comparison.reason:
        print(f"{indent}unknown because {comparison.reason}")


_DIRECTIONS = {
    "backward": "valid before and refused now",
    "forward": "valid now and refused before",
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
        Mark(f"commit {one.commit[:12]}", level, f"cannot be read: {one.reason}", one.reason)
        for one in unread
    ]
    for change in changes:
        comparison = change.comparison
        name = f"{change.state} {change.urn}{_culprit(change, args)}"
        bad = [row for row in comparison.changes if row.effect == "breaking"]
        file, line = _place(change, "", args)
        if not _fails(comparison, args):
            passed: Any = "warning" if comparison.verdict == "unknown" else "passed"
            marks.append(Mark(name, passed, comparison.reason, "", file, line))
            continue
        detail = _detail(comparison)
        if not bad:
            message = comparison.reason or "breaking"
            marks.append(Mark(name, "failed", f"{message}\n{detail}".strip(), detail, file, line))
        for at, row in enumerate(bad):
            shown = detail if at == 0 else ""
            text = f"{row.rule} at {row.pointer or '(root)'}: {row.message}"
            where = _place(change, row.pointer, args)
            marks.append(Mark(name, "failed", f"{text}\n{shown}".strip(), shown, *where))
    return marks


def _place(change: UrnChange, pointer: str, args: argparse.Namespace) -> tuple[str, int]:
    """Say where to look: the file and the line that a row is about, or the manifest it left."""
    if change.state == "removed":
        folder = args.registry.is_dir()
        return str(args.registry / MANIFEST if folder else args.registry), 1
    held = bundled(change.catalog, change.entry.urn)
    place = locate(change.catalog, held, pointer)
    file = place.file if change.catalog.origin else str(change.catalog.root / place.file)
    return os.path.normpath(file), place.line


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

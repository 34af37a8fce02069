"""`tally schema check`: check that the registry itself is valid.

    tally schema check --registry registry.json
    tally schema check --strict --github

It reads every schema, validates it against its metaschema, compiles it and resolves its references.
It checks that URNs are well formed and that two URNs never get the same derived name, that the
examples in the manifest are valid, and that `ids.lock`, if it exists, names every URN. Warnings
fail the run only with `--strict`.
"""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallystick.cli.annotations import add_outputs, gate, tell_machines
from tallystick.cli.config.arguments import add_setting
from tallystick.cli.outputs.colour import paint_verdict
from tallystick.cli.schema import REGISTRY_HELP
from tallystick.schemas.catalog import read_inside, read_registry
from tallystick.schemas.check import Checked, check_registry
from tallystick.schemas.outputs import Mark

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["register", "run"]


def register(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "check",
        help="check that the registry itself is valid",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_setting(parser, "registry", metavar="PATH", help=REGISTRY_HELP)
    parser.add_argument("--strict", action="store_true", help="warnings fail the run too")
    add_outputs(parser)
    parser.set_defaults(run=run)


@gate("tally schema check")
def run(args: argparse.Namespace) -> int:
    """Check the registry and give 1 when a fault was found."""
    checked = _check(args.registry)
    warnings = len(checked.faults) - checked.errors
    failed = bool(checked.errors or (args.strict and warnings))
    counts = {
        "urns": len(checked.urns),
        "files": checked.files,
        "examples": checked.examples,
        "errors": checked.errors,
        "warnings": warnings,
    }
    if args.json:
        faults = [asdict(fault) for fault in checked.faults]
        print(json.dumps({"sound": not failed, **counts, "faults": faults}, indent=2))
    elif not args.github:
        for fault in checked.faults:
            level = paint_verdict(fault.level)
            place = f"{fault.file}:{fault.line}: {level}: {fault.pointer or '(root)'}"
            print(f"{place}: {fault.message} [{fault.rule}]")
        print(", ".join(f"{count} {name}" for name, count in counts.items()) + ".")
    tell_machines(args, "tally schema check", list(_marks(checked, strict=args.strict)))
    return 1 if failed else 0


def _check(path: Path) -> Checked:
    manifest, raw = read_registry(path)
    root = manifest.parent
    checked = check_registry(raw, lambda inside: read_inside(root, inside), manifest.name)
    faults = (replace(fault, file=os.path.normpath(root / fault.file)) for fault in checked.faults)
    return replace(checked, faults=tuple(faults))


def _marks(checked: Checked, *, strict: bool) -> Iterator[Mark]:
    faulty = {fault.urn for fault in checked.faults}
    for fault in checked.faults:
        failed = strict or fault.level == "error"
        detail = f"{fault.file}:{fault.line}: {fault.pointer or '(root)'}: {fault.message}"
        yield Mark(
            fault.urn or fault.rule,
            "failed" if failed else "warning",
            f"{fault.message} [{fault.rule}] at {fault.pointer or '(root)'}",
            detail,
            fault.file,
            fault.line,
            f"check/{fault.rule}",
            fault.pointer,
        )
    yield from (Mark(urn, "passed") for urn in checked.urns if urn not in faulty)

"""`tally doctor`: list installed and missing tools, the purpose of each, and how to install it.

    tally doctor                 check everything; exit 0 if `make prove` can run
    tally doctor lab pipeline    check these tasks; exit 1 if something that they need is missing
    tally doctor redis           check one broker, extra or tool

A task has required tools and optional tools. Only a missing required tool gives exit 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from tallystick.cli.doctor.areas import AREAS, PROVE
from tallystick.cli.doctor.things import THINGS, Thing
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.extras import EXTRAS, WHOLE

__all__ = ["Finding", "examine", "register"]

_TITLES: Final = {
    "tools": "tools",
    "machine": "this machine",
    "extras": "extras (pip install 'tallystick[NAME]')",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing: what was found, or why it counts as missing; `needed` by what was asked."""

    name: str
    group: str
    found: str
    missing: str
    needed: bool
    used_for: str
    get: str


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options; there is one verb, and it is the noun."""
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "areas", nargs="*", metavar="AREA",
        help="a task (prove, test, suite, lab, pipeline, schemas, brokers), an extra, a broker "
             "or a tool (default: everything)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def examine(thing: Thing, *, needed: bool) -> Finding:
    """Look for one thing."""
    try:
        found, missing = thing.look(), ""
    except Unavailable as error:
        found, missing = "", str(error)
    return Finding(
        thing.name, thing.group, found, missing, needed, thing.used_for, thing.get
    )  # fmt: skip


def _run(args: argparse.Namespace) -> int:
    for name in args.areas:
        if name not in AREAS:
            raise UsageError(f"there is no area {name!r}", code="area",
                             hint=f"use one of: {', '.join(AREAS)}")  # fmt: skip
    asked = args.areas or [PROVE]
    needs = {thing for name in asked for thing in AREAS[name].needs}
    uses = {thing for name in asked for thing in AREAS[name].uses}
    findings = [
        examine(thing, needed=name in needs)
        for name, thing in THINGS.items()
        if name in needs | uses
    ]
    lacking = [one.name for one in findings if one.missing and one.needed]
    if args.json:
        rows = [asdict(one) for one in findings]
        print(json.dumps({"areas": asked, "complete": not lacking, "missing": lacking,
                          "extras": _extras(findings), "checks": rows}))  # fmt: skip
    else:
        _show(findings)
        print(_verdict(args.areas, findings), file=sys.stderr)
    return 1 if lacking else 0


def _extras(findings: Sequence[Finding]) -> dict[str, bool]:
    """Give the extras that were looked at, and whether each is installed."""
    return {one.name.strip("[]"): not one.missing for one in findings if one.group == "extras"}


def _show(findings: Sequence[Finding]) -> None:
    for group, title in _TITLES.items():
        rows = [one for one in findings if one.group == group]
        if rows:
            print(f"{title}:")
        for one in rows:
            mark = "ok" if not one.missing else "MISSING" if one.needed else "absent"
            print(f"  {mark:8}{one.name:14}{one.found or one.missing:24} {one.used_for}")
            if one.missing:
                print(f"{'':24}get it: {one.get}")
    installed = _extras(findings)
    if len(installed) == len(EXTRAS):
        print(f"everything: pip install 'tallystick[{','.join(WHOLE)}]'")


def _verdict(areas: Sequence[str], findings: Sequence[Finding]) -> str:
    """Say in one line what is missing: of what was asked for, and of what is optional."""
    task = " and ".join(areas) if areas else "`make prove`"
    lacking = [one.name for one in findings if one.missing and one.needed]
    absent = sum(1 for one in findings if one.missing and not one.needed)
    optional = {0: "", 1: "1 optional thing is missing; "}.get(
        absent, f"{absent} optional things are missing; "
    )
    if lacking:
        return f"{optional}missing for {task}: {', '.join(lacking)}"
    return f"{optional}nothing that {task} needs is missing"

"""The CloudEvents suite: our own cases, and the official ones where their files are given.

Our own cases ship with the package and cover all that the official ones check. The official files
do not ship; they are one more witness. `--cases DIR` names their folder, else the variable
`TALLY_OFFICIAL` does: a folder that holds `cloudevents-conformance/` (and perhaps `junit-xsd/` and
`qpid-interop/`), or the CloudEvents folder itself. `official_line` is the line that every verdict
about CloudEvents has beside it: how many official cases were run, or that none were.

A case is called `cloudevents/<format>/<file>/<id>`, or `cloudevents/own/<format>/<group>/<name>`.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import UsageError
from tallystick.core.verdict import Case
from tallystick.events.official import load_official, load_own
from tallystick.suites.load import Suite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "CONFORMANCE",
    "NAME",
    "OFFICIAL",
    "OWN",
    "VARIABLE",
    "conformance_in",
    "count_official",
    "load_cloudevents",
    "official_folder",
    "official_line",
]

NAME: Final = "cloudevents"
OWN: Final = "own"
OFFICIAL: Final = ("json", "protobuf", "xml")
"""The formats for which there are official cases."""
VARIABLE: Final = "TALLY_OFFICIAL"
"""The environment variable that names the folder of official files."""
CONFORMANCE: Final = "cloudevents-conformance"
_PARTS: Final = (CONFORMANCE, "junit-xsd", "qpid-interop")
"""The folders that the folder of official files may hold."""


def load_cloudevents(folder: Path | None, say: Callable[[str], object]) -> Suite:
    """Load our own cases, and the official ones of a folder or of `TALLY_OFFICIAL`."""
    place = folder or official_folder(CONFORMANCE)
    official = [] if place is None else load_official(conformance_in(place) or place)
    cases = (*official, *load_own())
    sections = dict.fromkeys(case.name.split("/")[1] for case in cases)
    scopes = {section: OWN if section == OWN else "official" for section in sections}
    suite = Suite(NAME, _digest(cases), scopes, cases)
    if not official:
        say(official_line(suite))
    return suite


def official_folder(part: str) -> Path | None:
    """Give a folder of official files by its name; None when `TALLY_OFFICIAL` does not have it.

    A variable that is set and names no folder of official files is an error: whoever sets it wants
    these files to be used.
    """
    named = os.environ.get(VARIABLE)
    if not named:
        return None
    folder = Path(named)
    parts = {name: folder / name for name in _PARTS if (folder / name).is_dir()}
    if CONFORMANCE not in parts and conformance_in(folder) == folder:
        parts[CONFORMANCE] = folder
    if not parts:
        raise UsageError(
            f"{VARIABLE}={named} is not a folder of official files",
            code="no_official",
            hint=f"the folder must hold one of: {', '.join(_PARTS)}; or unset {VARIABLE}",
        )
    return parts.get(part)


def conformance_in(folder: Path) -> Path | None:
    """Give the folder with the layout of the official cases: this one, or the one inside it."""
    for place in (folder / CONFORMANCE, folder):
        roots = (place / "format", place)
        if any((root / form).is_dir() for root in roots for form in OFFICIAL):
            return place
    return None


def count_official(suite: Suite) -> int:
    """Count the official cases of a suite: 0 when their files were not given."""
    return sum(suite.scopes[case.name.split("/")[1]] != OWN for case in suite.cases)


def official_line(suite: Suite) -> str:
    """Say beside the verdict how many official cases were run, or that none were and why."""
    count = count_official(suite)
    said = f"{count} run" if count else "not run (see docs/guides/events.md)"
    return f"official CloudEvents cases: {said}"


def _digest(cases: Iterable[Case]) -> str:
    """Name a set of cases by its content: the official files have no version of their own."""
    text = json.dumps([[case.name, case.operation, case.given, case.expect] for case in cases])
    return hashlib.sha256(text.encode()).hexdigest()[:12]

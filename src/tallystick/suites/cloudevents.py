"""The CloudEvents suite: the official format cases, read in place, and our own beside them.

The official files come from a folder: the one that is asked for (`--cases DIR`), else
`shared/data/cloudevents-conformance` beside the repository. They are not shipped, so without a
folder our own cases run alone and a line says so. A case is called
`cloudevents/<format>/<file>/<id>`, or `cloudevents/own/<group>/<name>`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tallystick.core.verdict import Case
from tallystick.events.official import load_official, load_own
from tallystick.suites.load import Suite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["NAME", "OFFICIAL", "OWN", "holds_official", "load_cloudevents"]

NAME: Final = "cloudevents"
OWN: Final = "own"
OFFICIAL: Final = ("json", "protobuf", "xml")
"""The formats for which there are official cases."""

_BESIDE: Final = Path(__file__).parents[4] / "shared" / "data" / "cloudevents-conformance"


def load_cloudevents(
    folder: Path | None, say: Callable[[str], None], beside: Path = _BESIDE
) -> Suite:
    """Load the official cases of a folder, and our own."""
    found = folder or (beside if holds_official(beside) else None)
    if found is None:
        say("the official CloudEvents cases are not here; --cases DIR names their folder")
    official = [] if found is None else load_official(found)
    cases = (*official, *load_own())
    sections = dict.fromkeys(case.name.split("/")[1] for case in cases)
    scopes = {section: "own" if section == OWN else "official" for section in sections}
    return Suite(NAME, _digest(cases), scopes, cases)


def holds_official(folder: Path) -> bool:
    """Say whether a folder has the layout of the official cases."""
    roots = (folder / "format", folder)
    return any((root / form).is_dir() for root in roots for form in OFFICIAL)


def _digest(cases: Iterable[Case]) -> str:
    """Name a set of cases by its content: the official files have no version of their own."""
    text = json.dumps([[case.name, case.operation, case.given, case.expect] for case in cases])
    return hashlib.sha256(text.encode()).hexdigest()[:12]

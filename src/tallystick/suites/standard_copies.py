"""Keep vendored copies of the standard up to date: compare a copy, or replace it.

A copy has exactly the files of the standard. A new copy is built beside
its place and then moved, so that a reader never sees half of it. A folder that holds other files
and no copy of ours is changed only with `force`.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from tallystick import standard
from tallystick.core.errors import Unavailable, UsageError
from tallystick.suites.standard import MANIFEST, SUITE

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["PLACES", "Copy", "compare_copy", "replace_copy", "vendored_folder"]

PLACES: Final = (
    ("go.mod", "testdata/conformance"),
    ("pom.xml", "src/test/resources/conformance"),
    ("build.gradle", "src/test/resources/conformance"),
    ("build.gradle.kts", "src/test/resources/conformance"),
)
"""A file that tells the kind of a project -> where its copy stands; the first that is there."""

_ELSEWHERE: Final = "tests/conformance"


@dataclass(frozen=True, slots=True)
class Copy:
    """A vendored copy, and its differences from the standard (paths inside the copy)."""

    folder: Path
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    changed: tuple[str, ...]

    @property
    def drifted(self) -> bool:
        """Tell whether the copy differs from the standard."""
        return bool(self.missing or self.extra or self.changed)


def vendored_folder(project: Path) -> Path:
    """Give the folder of a project's copy, by the kind of the project."""
    if not project.is_dir():
        raise Unavailable(
            f"{project} is not a folder",
            code="no_project",
            hint="name the root folder of a project",
        )
    place = next((place for mark, place in PLACES if (project / mark).is_file()), _ELSEWHERE)
    return project / place


def compare_copy(folder: Path) -> Copy:
    """Find the differences between a copy and the standard."""
    there = {
        path.relative_to(folder).as_posix()
        for path in (folder.rglob("*") if folder.is_dir() else ())
        if path.is_symlink() or not path.is_dir()
    }
    wanted = frozenset(standard.paths())
    changed = (
        path for path in wanted & there if (folder / path).read_bytes() != standard.read(path)
    )
    return Copy(
        folder, tuple(sorted(wanted - there)), tuple(sorted(there - wanted)), tuple(sorted(changed))
    )


def replace_copy(folder: Path, *, force: bool = False) -> Copy:
    """Replace a copy by the standard and give the differences it had; stale files are removed."""
    found = compare_copy(folder)
    if not found.drifted:
        return found
    if found.extra and not force and not _is_ours(found):
        raise UsageError(
            f"{folder} holds files that are not part of the standard, for example {found.extra[0]}",
            code="not_a_copy",
            hint="move them away, or use --force to replace the whole folder",
        )
    place = folder.resolve()
    if place.exists() and not place.is_dir():
        raise Unavailable(f"{folder} is not a folder", code="no_project", hint="move the file away")
    place.parent.mkdir(parents=True, exist_ok=True)
    mark = uuid4().hex
    fresh, stale = (place.with_name(f".{place.name}.{kind}-{mark}") for kind in ("new", "old"))
    try:
        _write(fresh)
        if place.exists():
            place.rename(stale)
        try:
            fresh.rename(place)
        except OSError:
            if stale.exists():
                stale.rename(place)
            raise
    finally:
        for left in (fresh, stale):
            shutil.rmtree(left, ignore_errors=True)
    return found


def _write(folder: Path) -> None:
    for path in standard.paths():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(standard.read(path))


def _is_ours(found: Copy) -> bool:
    """Tell a copy that drifted from somebody else's folder: most files are there, or it says so."""
    if 2 * len(found.missing) < len(standard.paths()):
        return True
    try:
        manifest = json.loads((found.folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(manifest, dict) and manifest.get("suite") == SUITE

"""The lake: a folder of plain Parquet files that is updated in one step.

    parts/RULES/SOURCE/     the rows of one input file under one registry: written once
    runs/KEY/TABLE/*.parquet, runs/KEY/manifest.json
    manifest.json           the last successful run: readers use only this
    current                 a link to its folder, for `read_parquet('LAKE/current/messages/*')`

A run is built in a hidden folder and renamed; then `manifest.json` is replaced in one step. If the
run stops in between, the earlier tables stay valid. Only one run at a time holds the lock.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import Unavailable, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Lake", "open_lake", "read_manifest", "table_files"]

MANIFEST: Final = "manifest.json"
_MEMBERS: Final = frozenset({"key", "folder", "registry", "inputs"})
"""What every manifest of a run has."""


@dataclass(frozen=True, slots=True)
class Lake:
    """A lake that is locked for one run."""

    root: Path

    def part(self, rules: str, source: str) -> Path:
        """Give the folder of one input file under one registry."""
        return self.root / "parts" / rules / source

    def begin(self, key: str) -> Path:
        """Make the hidden folder in which a run is built."""
        folder = self.root / "runs" / f".{key}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def publish(self, folder: Path, manifest: dict[str, Any]) -> Path:
        """Make a finished run the current one, all at once."""
        place = folder.with_name(folder.name.removeprefix("."))
        number = 1
        while place.exists():  # a run of the same key stays readable until this one is current
            number += 1
            place = place.with_name(f"{folder.name.removeprefix('.')}-{number}")
        manifest = {**manifest, "folder": f"runs/{place.name}"}
        write_json(folder / MANIFEST, manifest)
        folder.rename(place)
        write_json(self.root / MANIFEST, manifest)
        link = self.root / f".current-{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(f"runs/{place.name}")
        link.replace(self.root / "current")
        return place


def write_json(path: Path, value: Any) -> None:
    """Write a file so that it is there as a whole or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


@contextmanager
def open_lake(root: Path) -> Iterator[Lake]:
    """Lock a lake for a run, and delete what an earlier run left unfinished."""
    try:
        (root / "runs").mkdir(parents=True, exist_ok=True)
        lock = os.open(root / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise Unavailable(
            f"{root}: {error.strerror}", code="lake", hint="name a folder that you can write to"
        ) from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(
                f"{root}: another run is using this lake",
                code="lake.busy",
                hint="wait for it to finish, or use another --out",
            ) from None
        for left in (root / "runs").glob(".*"):
            shutil.rmtree(left)
        yield Lake(root)
    finally:
        os.close(lock)


def read_manifest(root: Path) -> dict[str, Any]:
    """Give the manifest of the last good run, or say that there is none."""
    try:
        manifest = json.loads((root / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"{root}: there are no tables here",
            code="lake.empty",
            hint="create them with `tally pipeline run --input ... --registry ... --out LAKE`",
        ) from None
    except (ValueError, RecursionError):  # no UTF-8, no JSON, or too deep
        manifest = None
    if not isinstance(manifest, dict) or not manifest.keys() >= _MEMBERS:
        raise Unavailable(
            f"{root / MANIFEST}: this file is not the manifest of a run",
            code="lake.manifest",
            hint="delete it, and build the tables again with `tally pipeline run`",
        )
    return manifest


def table_files(root: Path, name: str) -> list[Path]:
    """Give the files of a table in the last good run."""
    manifest = read_manifest(root)
    return [root / manifest["folder"] / one for one in manifest["tables"][name]["files"]]

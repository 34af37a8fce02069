"""`tally examples [FOLDER]`: write the example files that the guides use.

They ship with Tallystick: an app, captures, messages, events and a schema registry.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
from pathlib import Path
from typing import Final

from tallystick.core.errors import UsageError
from tallystick.suites.shipped import find_shipped

__all__ = ["register"]

_IGNORED: Final = shutil.ignore_patterns("__pycache__", ".*")


def register(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "folder", nargs="?", type=Path, default=Path("examples"), metavar="FOLDER",
        help="folder to create (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    folder: Path = args.folder
    shipped = find_shipped("examples")
    unchanged = folder.is_dir() and _has_all(shipped, folder)
    if folder.exists() and not unchanged:
        raise UsageError(
            f"{folder} exists already, with other content",
            code="folder",
            hint="name another folder: tally examples FOLDER",
        )
    if not unchanged:
        shutil.copytree(
            shipped,
            folder,
            copy_function=shutil.copyfile,  # a package may be installed read-only; a copy is not
            ignore=_IGNORED,
        )
    files = sorted(str(path) for path in folder.rglob("*") if path.is_file())
    if args.json:
        print(json.dumps({"folder": str(folder), "files": files}))
    elif unchanged:
        print(f"{folder} has all files already")
    else:
        print(f"wrote {len(files)} files to {folder}")
    return 0


def _has_all(shipped: Path, folder: Path) -> bool:
    """Tell whether every shipped file is in the folder, byte for byte."""
    for place, folders, files in os.walk(shipped):
        ignored = _IGNORED(place, [*folders, *files])
        folders[:] = [name for name in folders if name not in ignored]
        for name in files:
            copy = folder / Path(place).relative_to(shipped) / name
            same = copy.is_file() and copy.read_bytes() == (Path(place) / name).read_bytes()
            if name not in ignored and not same:
                return False
    return True

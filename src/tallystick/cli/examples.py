"""`tally examples [FOLDER]`: write the example files that the guides use.

They ship with Tallystick: an app, captures, messages, events and a schema registry.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from tallystick.core.errors import UsageError
from tallystick.suites.shipped import find_shipped

__all__ = ["register"]


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
    if folder.exists():
        raise UsageError(
            f"{folder} exists already",
            code="folder",
            hint="name another folder: tally examples FOLDER",
        )
    shutil.copytree(
        find_shipped("examples"),
        folder,
        copy_function=shutil.copyfile,  # a package may be installed read-only; a copy is not
        ignore=shutil.ignore_patterns("__pycache__", ".*"),
    )
    files = sorted(str(path) for path in folder.rglob("*") if path.is_file())
    if args.json:
        print(json.dumps({"folder": str(folder), "files": files}))
    else:
        print(f"wrote {len(files)} files to {folder}")
    return 0

"""The folders that ship with Tallystick, `interop`, `subjects` and `examples`; how to run scripts.

In a checkout they stand at its top. The wheel has them as package data, in `tallystick/_shipped`.
An installer may drop the executable bit and the folder may be read-only: scripts are run through
`sh` then, and they build into the user's cache.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from tallystick.core.variables import PYTHON

__all__ = ["find_shipped", "script_command", "script_environment"]

_PACKAGE: Final = Path(__file__).parents[1]


def find_shipped(name: str, package: Path = _PACKAGE) -> Path:
    """Give the folder of that name: the one of the checkout, else the one of the package."""
    checkout = package.parents[1]
    if package.parent.name == "src" and (checkout / "pyproject.toml").is_file():
        return checkout / name
    return package / "_shipped" / name


def script_command(script: Path) -> list[str]:
    """Give the words that run a script, executable or not."""
    return [str(script)] if os.access(script, os.X_OK) else ["/bin/sh", str(script)]


def script_environment() -> dict[str, str]:
    """Give the environment of a script: ours, and which Python runs Tallystick."""
    return {**os.environ, PYTHON: sys.executable}

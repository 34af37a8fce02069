"""The standard is data: the envelope schema, fixtures, the manifest of cases, byte vectors.

It imports nothing of Tallystick, and nothing here knows what the data means. `tally standard sync`
copies it into other repositories; tools/vectors wrote it.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

__all__ = ["paths", "read"]


def read(path: str) -> bytes:
    """Read one file of the standard; the path is relative, with slashes."""
    return files(__name__).joinpath(path).read_bytes()


def paths() -> list[str]:
    """List every data file of the standard, sorted."""
    return sorted(_walk(files(__name__), ""))


def _walk(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.is_file() and not entry.name.endswith((".py", ".pyc")):
            yield prefix + entry.name

"""The pinned files of a broker: `pins/<name>.txt`, one line per file: SHA-256, size, name.

A file that is not listed, is missing, or differs in one byte is never used.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Pin", "pins_digest", "read_pins", "verify"]

_FOLDER: Final = Path(__file__).parent / "pins"


@dataclass(frozen=True, slots=True)
class Pin:
    """One file and its checksum."""

    sha256: str
    size: int
    file: str


def read_pins(name: str, folder: Path = _FOLDER) -> tuple[Pin, ...]:
    """Read the pins of one broker; a broker without downloads has none."""
    path = folder / f"{name}.txt"
    if not path.exists():
        return ()
    rows = (line.split(" ", 2) for line in path.read_text(encoding="utf-8").splitlines())
    return tuple(Pin(sha256, int(size), file) for sha256, size, file in rows)


def pins_digest(pins: Sequence[Pin]) -> str:
    """Return a short name for a set of pins, used in the name of its folder."""
    return hashlib.sha256("".join(pin.sha256 for pin in pins).encode()).hexdigest()[:12]


def verify(pins: Sequence[Pin], folder: Path) -> None:
    """Raise unless the folder holds exactly the pinned files, byte for byte."""
    present = {path.name for path in folder.iterdir()}
    wanted = {pin.file for pin in pins}
    for names, what in ((wanted - present, "is missing"), (present - wanted, "is not pinned")):
        if names:
            raise _unlike(f"{min(names)} {what}")
    for pin in pins:
        with (folder / pin.file).open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != pin.sha256:
            size = (folder / pin.file).stat().st_size
            raise _unlike(
                f"{pin.file} has SHA-256 {found[:16]}... in {size} bytes, "
                f"not {pin.sha256[:16]}... in {pin.size}"
            )


def _unlike(what: str) -> Unavailable:
    return Unavailable(
        f"the download does not match its checksum: {what}",
        code="checksum",
        hint="the download was deleted; try again. If it happens again, the source has changed",
    )

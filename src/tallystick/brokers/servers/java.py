"""The Java runtime, and the class archive (AppCDS) that halves the start of a JVM.

The first run of a broker writes the archive when it stops; it is then kept beside the fetched
program, one for each runtime, since a JVM silently ignores the archive of another one.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tallystick.core.errors import Unavailable

__all__ = [
    "JVM", "OLDEST", "archive_exists", "archive_flags", "find_java", "keep_archive", "version_of",
]  # fmt: skip

OLDEST: Final = 17
JVM: Final = (
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-Djava.awt.headless=true",
    "-Djava.io.tmpdir=$tmp",
)
"""What every broker's JVM is told: start soon, stay small, leave no file behind."""

_HINT: Final = f"install Java {OLDEST} or newer (Debian: openjdk-17-jre-headless); `tally doctor`"


def find_java() -> Path:
    """Find a Java runtime that is new enough: in JAVA_HOME, or on the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin" if home else None) or shutil.which("java")
    if found is None:
        raise Unavailable("`java` is not installed", code="no_java", hint=_HINT)
    java = Path(found).resolve()
    version = version_of(java)
    if version < OLDEST:
        raise Unavailable(
            f"{found} is Java {version}, which is too old", code="old_java", hint=_HINT
        )
    return java


def version_of(java: Path) -> int:
    """Give the major version: from the file beside it, or by asking."""
    release = java.parent.parent / "release"
    if release.exists():
        text = release.read_text(encoding="utf-8", errors="replace")
    else:
        text = subprocess.run(  # noqa: S603 (a program found on the PATH)
            [java, "-version"], capture_output=True, text=True, check=False, timeout=30
        ).stderr
    match = re.search(r'version "(?:1\.)?(\d+)|JAVA_VERSION="(?:1\.)?(\d+)', text)
    return int(match[1] or match[2]) if match else 0


def archive_exists(java: Path, install: Path) -> bool:
    """Say whether an earlier run has left one for this runtime."""
    return _archive(java, install).exists()


def archive_flags(java: Path, install: Path, fresh: Path) -> list[str]:
    """Use the archive if there is one, else write a fresh one at the end of this run."""
    kept = _archive(java, install)
    if kept.exists():
        return [f"-XX:SharedArchiveFile={kept}", "-Xshare:auto", "-Xlog:cds=off"]
    return [f"-XX:ArchiveClassesAtExit={fresh}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def keep_archive(java: Path, install: Path, fresh: Path) -> None:
    """Keep what a clean stop has left; a JVM that was killed has left nothing."""
    if fresh.exists():
        shutil.move(fresh, partial := _archive(java, install).with_suffix(".part"))
        partial.rename(_archive(java, install))


def _archive(java: Path, install: Path) -> Path:
    stamp = f"{java} {java.stat().st_mtime_ns}"
    return install.with_name(
        f"{install.name}.{hashlib.sha256(stamp.encode()).hexdigest()[:12]}.jsa"
    )

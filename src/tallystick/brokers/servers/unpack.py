"""Unpack what was fetched and verified into one folder, ready to run."""

from __future__ import annotations

import subprocess
import tarfile
from pathlib import Path

from tallystick.brokers.servers.recipe import Archive, Debian, Fetch
from tallystick.core.errors import Unavailable

__all__ = ["unpack"]


def unpack(fetch: Fetch, files: Path, tree: Path) -> None:
    """Make `tree` of `files`: packages side by side, an archive's inner folder, or jars as is."""
    if isinstance(fetch, Debian):
        tree.mkdir()
        for package in sorted(files.iterdir()):
            _extract_package(package, tree)
        for pattern, old, new in fetch.patches:
            _patch(tree, pattern, old, new)
    elif isinstance(fetch, Archive):
        with tarfile.open(next(files.iterdir())) as archive:
            archive.extractall(files, filter="data")
        (files / fetch.inside).rename(tree)
    else:
        files.rename(tree)


def _extract_package(package: Path, tree: Path) -> None:
    result = subprocess.run(  # noqa: S603
        ["dpkg-deb", "-x", package, tree],  # noqa: S607 (found on the PATH by the client's check)
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if result.returncode:
        raise Unavailable(
            f"{package.name} cannot be unpacked: {result.stderr.strip()}", code="unpack"
        )


def _patch(tree: Path, pattern: str, old: str, new: str) -> None:
    paths = sorted(tree.glob(pattern))
    if not paths:
        raise Unavailable(f"the packages hold no {pattern}", code="unpack")
    for path in paths:
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

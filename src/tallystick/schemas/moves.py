"""Where a manifest came from: the manifests that lost URNs when it appeared.

Git's own renames go by how alike two files are, and a manifest is often edited as it moves. URNs do
not change in a move, so they are followed instead: a manifest of the earlier tree counts when it
holds URNs there that its path does not hold in the later tree. What still stands there stays its.
"""

from __future__ import annotations

import posixpath
from typing import Protocol

from tallystick.core.errors import Rejected
from tallystick.schemas.catalog import read_manifest

__all__ = ["find_moves"]


class Trees(Protocol):
    """Trees of files by commit; an empty commit is the working tree."""

    def manifests(self, commit: str) -> list[str]:
        """Give the files that may be manifests."""

    def find(self, commit: str, path: str) -> bytes | None:
        """Read a file, if it is there."""


def find_moves(trees: Trees, before: str, after: str, home: str) -> dict[str, frozenset[str]]:
    """Give the earlier paths of a manifest, each with the URNs that stayed there.

    None when the earlier tree has the manifest where it is now. A file of its name that cannot be
    read counts too: what it held is not known.
    """
    if _urns(trees.find(before, home), home) != frozenset():
        return {}
    moves: dict[str, frozenset[str]] = {}
    for path in trees.manifests(before):
        held = _urns(trees.find(before, path), path)
        stayed = _urns(trees.find(after, path), path) or frozenset()
        known_name = posixpath.basename(path) == posixpath.basename(home)
        if path != home and (held - stayed if held is not None else known_name):
            moves[path] = stayed
    return moves


def _urns(raw: bytes | None, path: str) -> frozenset[str] | None:
    """Give the URNs of a manifest, none of what is no manifest; None when it cannot be read."""
    if raw is None:
        return frozenset()
    try:
        rows, _ = read_manifest(raw, path)
    except Rejected:
        return None
    return frozenset(row.urn for row in rows)

"""Find the earlier paths of a manifest: the manifests that lost URNs to it.

Git's own renames go by how alike two files are, and a manifest is often edited as it moves. URNs do
not change in a move, so they are followed instead. A manifest of the earlier tree counts when it
holds URNs there that its path does not hold in the later tree; if the present path had URNs of its
own already, one of them must be new there. What still stands at the old path stays its own.
"""

from __future__ import annotations

import posixpath
from typing import NamedTuple, Protocol

from tallystick.core.errors import Rejected
from tallystick.schemas.catalog import read_manifest

__all__ = ["Move", "find_moves", "is_moved"]


class Trees(Protocol):
    """Trees of files by commit; an empty commit is the working tree."""

    def manifests(self, commit: str) -> list[str]:
        """Give the files that may be manifests."""

    def find(self, commit: str, path: str) -> bytes | None:
        """Read a file, if it is there."""


class Move(NamedTuple):
    """What a manifest gave to another one, and what stayed behind.

    A manifest that is gone has given all it had: nobody else answers for what was dropped.
    """

    stayed: frozenset[str] = frozenset()
    given: frozenset[str] = frozenset()

    def joined(self, other: Move) -> Move:
        """Add what was given at another time."""
        return Move(self.stayed, self.given | other.given)


def find_moves(trees: Trees, before: str, after: str, home: str) -> dict[str, Move]:
    """Give the earlier paths of a manifest, each with what became of its URNs.

    A file of its name that cannot be read counts too, if there was none at the present path: what
    it held is not known.
    """
    had, has = (_urns(trees.find(tree, home), home) for tree in (before, after))
    if had is None or (had and not (has or frozenset()) - had):
        return {}
    gained = (has or frozenset()) - had
    moves: dict[str, Move] = {}
    for path in trees.manifests(before):
        held = _urns(trees.find(before, path), path)
        later = trees.find(after, path)
        stayed = _urns(later, path) or frozenset()
        known_name = posixpath.basename(path) == posixpath.basename(home)
        lost = frozenset() if held is None else held - stayed
        counts = lost & gained if had else (lost if held is not None else known_name)
        if path != home and counts:
            moves[path] = Move(stayed, lost if later is None else lost & gained)
    return moves


def is_moved(move: Move, urn: str, beside: frozenset[str]) -> bool:
    """Tell whether a URN of the old path counts where the present one has those `beside`."""
    return urn in move.given - beside if beside else urn not in move.stayed


def _urns(raw: bytes | None, path: str) -> frozenset[str] | None:
    """Give the URNs of a manifest, none of what is no manifest; None when it cannot be read."""
    if raw is None:
        return frozenset()
    try:
        rows, _ = read_manifest(raw, path)
    except Rejected:
        return None
    return frozenset(row.urn for row in rows)

"""Read past versions of the registry from git, without a checkout.

One `git cat-file --batch` answers every read, so any commit, tag or branch costs about the same
as a folder. A name that git does not know, a folder outside a repository and a shallow clone are
`Unavailable`, each with what to do about it.

A manifest may have been moved, split or joined. Every manifest of a commit that has lost URNs to
the present one since stands beside it (`tallystick.schemas.moves`), so that a move never hides a
break. `REF:PATH` names the old manifest outright.
"""

from __future__ import annotations

import posixpath
import subprocess
from contextlib import contextmanager
from dataclasses import replace
from os import fsdecode, fsencode
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import Rejected, Unavailable, UsageError
from tallystick.schemas.catalog import MANIFEST, Catalog, parse_catalog
from tallystick.schemas.moves import Move, find_moves, is_moved
from tallystick.schemas.registry_compat import Unread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from subprocess import Popen

__all__ = ["Repository", "catalogs_at", "open_repository", "past_catalogs"]

_TIMEOUT: Final = 60


class Repository:
    """A git repository, the path of the manifest in it, and the process that reads its objects."""

    def __init__(self, top: Path, home: str, batch: Popen[bytes]) -> None:
        self.top = top
        self.home = home
        self._batch = batch

    def commit(self, reference: str) -> str:
        """Give the commit that a branch, a tag or an abbreviation names."""
        if reference.startswith("-") or not reference:
            raise UsageError(
                f"{reference!r} is not a commit",
                code="git.reference",
                hint="for example origin/main",
            )
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
        found = _git(self.top, *words)
        if found is None:
            raise Unavailable(
                f"git has no commit {reference!r}",
                code="git.reference",
                hint="fetch it first; a CI checkout needs fetch-depth: 0",
            )
        return found.decode().strip()

    def lines(self, *words: str) -> list[str]:
        """Give the lines that git prints, none when it fails."""
        return (_git(self.top, *words) or b"").decode().splitlines()

    def is_shallow(self) -> bool:
        """Tell whether the repository is a shallow clone."""
        return self.lines("rev-parse", "--is-shallow-repository") == ["true"]

    def manifests(self, commit: str) -> list[str]:
        """Give the JSON files of a commit that may be manifests."""
        words = ("grep", "--full-name", "-lz", "-e", '"schemas"', commit, "--", "*.json")
        found = fsdecode(_git(self.top, *words) or b"").split("\0")
        return [one.removeprefix(f"{commit}:") for one in found if one]

    def read(self, commit: str, path: str) -> bytes:
        """Read a file of a commit by its path from the top of the repository."""
        stdin, stdout = self._batch.stdin, self._batch.stdout
        if stdin is None or stdout is None or "\n" in path:
            raise FileNotFoundError(2, "No such file in that commit", path)
        stdin.write(fsencode(f"{commit}:{path}\n"))
        stdin.flush()
        head = stdout.readline().split()
        if len(head) != 3 or not head[2].isdigit():  # `PATH missing`, and a path may have spaces
            raise FileNotFoundError(2, f"no such file in commit {commit[:12]}", path)
        content = stdout.read(int(head[2]))
        stdout.read(1)
        if head[1] != b"blob":
            raise FileNotFoundError(2, f"not a file in commit {commit[:12]}", path)
        return content

    def find(self, commit: str, path: str) -> bytes | None:
        """Read a file of a commit, or of the working tree when the commit is empty."""
        try:
            return self.read(commit, path) if commit else (self.top / path).read_bytes()
        except OSError:
            return None


def _git(folder: Path, *words: str) -> bytes | None:
    """Run git; None when it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program; arguments are never a shell's
            ["git", "-C", str(folder), *words],  # noqa: S607 - git is found on PATH
            capture_output=True,
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(
            f"git did not answer: {error}", code="git.missing", hint="is git installed?"
        ) from error
    return done.stdout if done.returncode == 0 else None


@contextmanager
def open_repository(manifest: Path) -> Iterator[Repository]:
    """Open the repository that a registry's manifest lies in."""
    manifest = manifest / MANIFEST if manifest.is_dir() else manifest
    folder = manifest.parent
    words = ("rev-parse", "--show-toplevel", "--show-prefix")
    found = _git(folder, *words) if folder.is_dir() else None
    if found is None:
        raise Unavailable(
            f"{folder} is not inside a git repository",
            code="git.repository",
            hint="name a registry that git tracks, or compare two files",
        )
    top, prefix = found.decode().split("\n")[:2]
    batch = subprocess.Popen(  # noqa: S603 - as above
        ["git", "-C", str(folder), "cat-file", "--batch"],  # noqa: S607 - git is found on PATH
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield Repository(Path(top), f"{prefix}{manifest.name}", batch)
    finally:
        batch.communicate(timeout=_TIMEOUT)


def catalogs_at(repository: Repository, reference: str) -> Iterator[Catalog | Unread]:
    """Give the registry at a commit; nothing if it did not exist."""
    name, _, path = reference.partition(":")
    commit = repository.commit(name)
    if path and repository.find(commit, path) is None:
        raise Unavailable(
            f"the commit {name} has no file {path}",
            code="git.manifest",
            hint="write COMMIT:PATH, with the path from the top folder of the repository",
        )
    if path:
        yield _read(repository, commit, path, name)
        return
    moves = find_moves(repository, commit, "", repository.home)
    yield from _stood_for(repository, commit, moves, name)


def past_catalogs(repository: Repository, reference: str) -> Iterator[Catalog | Unread]:
    """Give the registry of every commit that touched it, latest first, or why it cannot be read.

    What was merged after the reference counts as well: somebody may run on it.
    """
    if repository.is_shallow():
        raise Unavailable(
            "this is a shallow clone: its history is incomplete",
            code="git.shallow",
            hint="fetch all of it (git fetch --unshallow); a CI checkout needs fetch-depth: 0",
        )
    name, _, path = reference.partition(":")
    tips = (repository.commit(name), repository.commit("HEAD"))
    homes = _past_homes(repository, tips, path)
    folders = [posixpath.dirname(home) or "." for home in homes]
    for commit in repository.lines("rev-list", "--full-history", *tips, "--", *folders):
        yield from _stood_for(repository, commit, homes, commit)


def _stood_for(
    repository: Repository, commit: str, moves: Mapping[str, Move], name: str
) -> Iterator[Catalog | Unread]:
    """Give the manifest of a commit, and what moved into it since and was not in it yet."""
    own = _read(repository, commit, repository.home, name)
    yield own
    if isinstance(own, Unread):
        return
    beside = frozenset(own.entries)
    for path, move in moves.items():
        if path == repository.home or repository.find(commit, path) is None:
            continue
        found = _read(repository, commit, path, name)
        if isinstance(found, Catalog):
            kept = {urn: one for urn, one in found.entries.items() if is_moved(move, urn, beside)}
            found = replace(found, entries=kept)
        yield found


def _past_homes(repository: Repository, tips: tuple[str, ...], path: str) -> dict[str, Move]:
    """Give every path that the manifest or a part of it ever had, with what it gave."""
    homes = {repository.home: Move()}
    homes |= {path: Move()} if path else {}
    for tip in tips:
        homes |= find_moves(repository, tip, "", repository.home)
    waiting = list(homes)
    while waiting:
        home = waiting.pop()
        words = ("log", "--full-history", "--diff-filter=AM", "--format=%H %P", *tips, "--", home)
        for change, *parents in map(str.split, repository.lines(*words)):
            for parent in parents:
                for earlier, move in find_moves(repository, parent, change, home).items():
                    known = homes.get(earlier)
                    if known is None:
                        waiting.append(earlier)
                    homes[earlier] = move if known is None else known.joined(move)
    return homes


def _read(repository: Repository, commit: str, home: str, name: str) -> Catalog | Unread:
    """Read one manifest of a commit; one that is not there is empty."""
    folder = posixpath.join(posixpath.dirname(home), "")
    origin, label = f"{name}:{folder}", f"{name}:{home}"
    raw = repository.find(commit, home)
    try:
        found = parse_catalog(
            b"{}" if raw is None else raw,
            lambda path: repository.read(commit, f"{folder}{path}"),
            label,
            repository.top / folder,
        )
    except (Rejected, Unavailable) as error:
        place = "" if error.message.startswith(f"{label}:") else origin
        return Unread(commit, f"{place}{error}".removeprefix(f"{commit}:"))
    return replace(found, origin=origin)

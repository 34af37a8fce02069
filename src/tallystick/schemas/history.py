"""The registry as git remembers it, read without ever checking anything out.

One `git cat-file --batch` answers every read, so any commit, tag or branch costs about the same
as a folder. A name that git does not know, a folder outside a repository and a shallow clone are
`Unavailable`, each with what to do about it.
"""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import Rejected, Unavailable, UsageError
from tallystick.schemas.catalog import MANIFEST, Catalog, parse_catalog
from tallystick.schemas.registry_compat import Unread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from subprocess import Popen

__all__ = ["Repository", "catalog_at", "open_repository", "past_catalogs"]

_TIMEOUT: Final = 60


class Repository:
    """A registry's folder inside a git repository, and the process that reads its objects."""

    def __init__(self, manifest: Path, prefix: str, batch: Popen[bytes]) -> None:
        self.manifest = manifest
        self.prefix = prefix
        self._batch = batch

    def commit(self, reference: str) -> str:
        """Give the commit that a branch, a tag or an abbreviation names."""
        if reference.startswith("-") or not reference:
            raise UsageError(f"{reference!r} names no commit", code="git.reference")
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{reference}^{{commit}}")
        found = _git(self.manifest.parent, *words)
        if found is None:
            raise Unavailable(
                f"git knows no commit {reference!r}",
                code="git.reference",
                hint="fetch it first; a CI checkout needs fetch-depth: 0",
            )
        return found.decode().strip()

    def commits(self, reference: str) -> list[str]:
        """Give the commits up to a reference and up to HEAD that touched the folder, latest first.

        What was merged after the reference counts as well: somebody may run on it.
        """
        folder = self.manifest.parent
        if (_git(folder, "rev-parse", "--is-shallow-repository") or b"").strip() == b"true":
            raise Unavailable(
                "the history is cut short: this is a shallow clone",
                code="git.shallow",
                hint="fetch all of it (git fetch --unshallow); a CI checkout needs fetch-depth: 0",
            )
        tips = (self.commit(reference), self.commit("HEAD"))
        return (
            (_git(folder, "rev-list", "--full-history", *tips, "--", ".") or b"").decode().split()
        )

    def read(self, commit: str, path: str) -> bytes:
        """Read a file of a commit by its path inside the registry's folder."""
        stdin, stdout = self._batch.stdin, self._batch.stdout
        if stdin is None or stdout is None or "\n" in path:
            raise FileNotFoundError(2, "No such file in that commit", path)
        stdin.write(f"{commit}:{self.prefix}{path}\n".encode())
        stdin.flush()
        head = stdout.readline().split()
        if len(head) != 3:
            raise FileNotFoundError(2, f"no such file in commit {commit[:12]}", path)
        content = stdout.read(int(head[2]))
        stdout.read(1)
        if head[1] != b"blob":
            raise FileNotFoundError(2, f"not a file in commit {commit[:12]}", path)
        return content


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
        raise Unavailable(f"git did not answer: {error}", code="git.missing") from error
    return done.stdout if done.returncode == 0 else None


@contextmanager
def open_repository(manifest: Path) -> Iterator[Repository]:
    """Open the repository that a registry's manifest lies in."""
    manifest = manifest / MANIFEST if manifest.is_dir() else manifest
    folder = manifest.parent
    prefix = _git(folder, "rev-parse", "--show-prefix") if folder.is_dir() else None
    if prefix is None:
        raise Unavailable(f"{folder} is not inside a git repository", code="git.repository")
    batch = subprocess.Popen(  # noqa: S603 - as above
        ["git", "-C", str(folder), "cat-file", "--batch"],  # noqa: S607 - git is found on PATH
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        yield Repository(manifest, prefix.decode().rstrip("\n"), batch)
    finally:
        batch.communicate(timeout=_TIMEOUT)


def catalog_at(repository: Repository, reference: str) -> Catalog:
    """Read the registry as it was; a commit before its manifest has an empty one."""
    commit = repository.commit(reference)
    try:
        raw = repository.read(commit, repository.manifest.name)
    except FileNotFoundError:
        raw = b"{}"
    name = f"{reference}:{repository.prefix}{repository.manifest.name}"
    return parse_catalog(
        raw, lambda path: repository.read(commit, path), name, repository.manifest.parent
    )


def past_catalogs(repository: Repository, reference: str) -> Iterator[Catalog | Unread]:
    """Give the registry of every commit that touched it, latest first, or why it cannot be read."""
    for commit in repository.commits(reference):
        try:
            yield catalog_at(repository, commit)
        except (Rejected, Unavailable) as error:
            yield Unread(commit, str(error).removeprefix(f"{commit}:"))

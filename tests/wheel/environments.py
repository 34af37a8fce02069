"""Builds the wheel once and installs it into new environments, outside the repository.

The libraries come from uv.lock through uv's cache, as hard links: an environment takes seconds. The
package itself is the wheel that was built. Its scripts lose their executable bits, as some
installers do, so what runs here needs none.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
_UV: Final = Path(sys.executable).parent / "uv"


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment with the wheel; `extras` names those that were asked for."""

    folder: Path
    extras: tuple[str, ...]

    def program(self, name: str) -> str:
        return str(self.folder / "bin" / name)


def uv_environment(scratch: Path) -> dict[str, str]:
    """Give the variables for uv, which leaves the lock files of environments in TMPDIR."""
    kept = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    return {**kept, "TMPDIR": str(scratch)}


def _call(*words: str | Path, scratch: Path, **more: str) -> None:
    environment = uv_environment(scratch)
    done = subprocess.run(
        list(map(str, words)), cwd=ROOT, env={**environment, **more},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let one of the test processes work at a time."""
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_wheel(shared: Path) -> Path:
    """Build the wheel, or give the one that another test process has built."""
    shared.mkdir(exist_ok=True)
    with _alone(shared):
        if not (shared / "dist").is_dir():
            _call(
                _UV, "build", "--wheel", "--quiet", "-o", shared / "building", ".", scratch=shared
            )
            (shared / "building").rename(shared / "dist")
    (wheel,) = (shared / "dist").glob("*.whl")
    return wheel


def install(wheel: Path, folder: Path, extras: tuple[str, ...]) -> Environment:
    """Make an environment with the wheel and these extras."""
    wanted = [word for name in extras for word in ("--extra", name)]
    _call(
        _UV, "sync", "--quiet", "--locked", "--no-dev", "--no-install-project", "--python",
        sys.executable, *wanted, UV_PROJECT_ENVIRONMENT=str(folder),
        scratch=folder.parent,
    )  # fmt: skip
    python = folder / "bin" / "python"
    _call(_UV, "pip", "install", "--quiet", "--no-deps", "--link-mode", "copy", "--python", python,
          wheel, scratch=folder.parent)  # fmt: skip
    (shipped,) = folder.glob("lib/python*/site-packages/tallystick/_shipped")
    for path in shipped.rglob("*"):
        if path.is_file():
            path.chmod(0o444)
    return Environment(folder, extras)


def remove(environment: Environment) -> None:
    """Take an environment away."""
    shutil.rmtree(environment.folder, ignore_errors=True)

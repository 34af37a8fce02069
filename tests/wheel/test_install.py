"""What the wheel and the source archive hold, and what `[all]` asks of a machine."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.wheel.environments import ROOT, uv_environment


def _tracked(*folders: str) -> set[str]:
    done = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, capture_output=True, text=True,
                          check=True)  # fmt: skip
    return {name for name in done.stdout.splitlines() if not name.endswith("ruff.toml")}


def test_the_wheel_ships_every_file_of_the_three_folders_and_no_other(wheel: Path) -> None:
    prefix = "tallystick/_shipped/"
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith(prefix)}
    assert {name.removeprefix(prefix) for name in names} == _tracked(
        "examples", "interop", "subjects"
    )


def _sync(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Try what an installation would do, where nothing may be compiled."""
    return subprocess.run(
        [Path(sys.executable).parent / "uv", "sync", "--dry-run", "--locked", "--no-dev",
         "--no-install-project", "--no-build", "--python", sys.executable, *words],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={**uv_environment(folder), "UV_PROJECT_ENVIRONMENT": str(folder / "venv")},
    )  # fmt: skip


def test_all_installs_from_wheels_alone(tmp_path: Path) -> None:
    done = _sync("--extra", "all", folder=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("extra", ["artemis", "pipeline"])
def test_the_extras_apart_are_those_that_must_be_built(extra: str, tmp_path: Path) -> None:
    """When this fails, the extra can be part of `all`."""
    done = _sync("--extra", extra, folder=tmp_path)
    assert done.returncode != 0
    assert "no-build" in done.stderr

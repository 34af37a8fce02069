"""The programs that ship with Tallystick are found and run wherever it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import tallystick
from tallystick.lab.clients import find_interop
from tallystick.suites.shipped import find_shipped, script_command, script_environment

ROOT: Final = Path(__file__).parents[2]
BUILDS: Final = """#!/bin/sh
set -eu
here=$(cd "$(dirname "$0")" && pwd)
name=example
. "$here/../build.sh"
build() { cp "$here/source" "$1/copy"; }
build_once "$here/start" "$here/source"
echo "$built"
"""


def _install(folder: Path, names: tuple[str, ...]) -> Path:
    """Lay out a package with its shipped files, as an installer does; no file is executable."""
    package = folder / "lib" / "python3" / "site-packages" / "tallystick"
    for name in names:
        shutil.copytree(ROOT / name, package / "_shipped" / name)
    for path in package.rglob("*"):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return package


@pytest.mark.parametrize("name", ["interop", "subjects"])
def test_a_checkout_has_its_own_files(name: str) -> None:
    assert find_shipped(name) == ROOT / name


def test_an_installed_package_has_them_inside(tmp_path: Path) -> None:
    package = tmp_path / "site-packages" / "tallystick"
    assert find_shipped("subjects", package) == package / "_shipped" / "subjects"


def test_a_folder_named_src_without_a_project_is_no_checkout(tmp_path: Path) -> None:
    package = tmp_path / "src" / "tallystick"
    assert find_shipped("interop", package) == package / "_shipped" / "interop"


def test_clients_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_interop() == ROOT / "interop"


def test_a_script_that_lost_its_executable_bit_runs_nevertheless(tmp_path: Path) -> None:
    script = tmp_path / "start"
    script.write_text("#!/bin/sh\necho it runs\n")
    for mode in (0o755, 0o644):
        script.chmod(mode)
        done = subprocess.run(script_command(script), capture_output=True, text=True, check=True)
        assert done.stdout == "it runs\n"


def test_a_script_learns_which_python_runs_tallystick() -> None:
    assert script_environment() == {**os.environ, "TALLY_PYTHON": sys.executable}


def test_a_script_of_an_installed_package_finds_the_tally_it_belongs_to(tmp_path: Path) -> None:
    """By hand, with nothing but a PATH: the environment around the package is the one."""
    package = _install(tmp_path, ("interop", "subjects"))
    script = package / "_shipped" / "interop" / "testall"
    plain = {"PATH": "/usr/bin:/bin"}
    done = subprocess.run(["sh", script, "--help"], env=plain, capture_output=True, text=True,
                          check=False)  # fmt: skip
    assert done.returncode == 1
    assert "there is no tally here" in done.stderr
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    for environment in (plain, {**plain, "TALLY_PYTHON": sys.executable}):
        done = subprocess.run(["sh", script, "--help"], env=environment, capture_output=True,
                              text=True, check=True)  # fmt: skip
        assert "usage: tally lab attach" in done.stdout


def test_the_same_sources_are_built_once_wherever_they_stand(tmp_path: Path) -> None:
    places = []
    for number in ("one", "two"):
        folder = tmp_path / number / "example"
        folder.mkdir(parents=True)
        shutil.copy(ROOT / "subjects" / "build.sh", folder.parent)
        (folder / "start").write_text(BUILDS)
        (folder / "source").write_text("the same\n")
        done = subprocess.run(
            ["sh", folder / "start"],
            env={"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        places.append(done.stdout)
    assert places[0] == places[1]
    (folder / "source").write_text("changed\n")
    done = subprocess.run(
        ["sh", folder / "start"],
        env={"PATH": "/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path / "cache")},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout != places[0]


def test_this_checkout_is_what_is_tested() -> None:
    assert Path(tallystick.__file__).is_relative_to(ROOT)

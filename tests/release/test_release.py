"""The release files: built, checked, installable without a network; and the documentation site."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tallystick

ROOT = Path(__file__).parents[2]
SITE = ROOT / "mkdocs.yml"
OUTSIDE = re.compile(r"""(?:src|href)=["']?https?://(?!www\.mkdocs\.org/)[^"'>]*""")


def run(*command: str | Path, folder: Path = ROOT) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run `make dist` into a folder of its own."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    run(ROOT / "tools" / "dist", folder)
    return folder


def test_the_release_is_a_wheel_and_an_sdist_of_this_version(dist: Path) -> None:
    version = tallystick.__version__
    names = sorted(path.name for path in dist.iterdir() if path.is_file())
    assert names == [f"tallystick-{version}-py3-none-any.whl", f"tallystick-{version}.tar.gz"]


def test_the_wheel_installs_without_a_network_and_gates_a_change(
    dist: Path, tmp_path: Path
) -> None:
    place = tmp_path / "environment"
    run(sys.executable, "-m", "venv", place)
    (wheel,) = dist.glob("*.whl")
    pip = (place / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "--isolated")
    links = ("--no-index", "--find-links", dist / "offline")
    run(*pip, "install", "--quiet", *links, f"tallystick[schemas] @ {wheel.as_uri()}")
    tally = place / "bin" / "tally"
    assert run(tally, "--version", folder=tmp_path) == f"tally {tallystick.__version__}\n"
    for name, kind in (("old", "number"), ("new", "string")):
        schema = {"type": "object", "properties": {"a": {"type": kind}}}
        (tmp_path / f"{name}.json").write_text(json.dumps(schema))
    gate = subprocess.run(
        [tally, "schema", "compat", "old.json", "new.json", "--json"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert gate.returncode == 1, gate.stdout + gate.stderr


def test_the_changelog_names_this_version_and_its_date() -> None:
    heads = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert re.fullmatch(rf"{re.escape(tallystick.__version__)} \(\d{{4}}-\d\d-\d\d\)", heads[0])
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", head) for head in heads)


def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(
    tmp_path: Path,
) -> None:
    site = tmp_path / "site"
    mkdocs = Path(sys.executable).with_name("mkdocs")
    said = run(mkdocs, "build", "--strict", "--config-file", SITE, "--site-dir", site)
    assert "WARNING" not in said
    pages = list(site.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))
    assert {page.name: OUTSIDE.findall(page.read_text("utf-8")) for page in pages} == {
        page.name: [] for page in pages
    }


def test_a_broken_link_in_the_docs_stops_the_site(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(SITE, tmp_path)
    with (tmp_path / "docs" / "index.md").open("a") as page:
        page.write("\n[gone](guides/no-such-page.md) [gone](guides/runtime.md#no-such-part)\n")
    mkdocs = Path(sys.executable).with_name("mkdocs")
    done = subprocess.run(
        [mkdocs, "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert done.stderr.count("index.md") == 2

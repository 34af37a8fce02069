"""The hooks are run by pre-commit itself, which installs them from this repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
CONFIG = """\
repos:
  - repo: {repository}
    rev: {commit}
    hooks:
      - id: tally-schema-check
      - id: tally-schema-compat
      - id: tally-schema-gdpr
"""


def run(folder: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "PRE"))}
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, check=False,
        env={**plain, "PRE_COMMIT_HOME": str(folder.parent / "store")},
    )  # fmt: skip


def git(folder: Path, *words: str) -> str:
    done = run(folder, "git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give a project that uses the hooks of a copy of this checkout, in a commit of its own."""
    folder = tmp_path_factory.mktemp("pre-commit")
    hooks = folder / "tallystick"
    hooks.mkdir()
    for name in ("src", "examples", "subjects", "interop"):
        shutil.copytree(ROOT / name, hooks / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml"):
        shutil.copy(ROOT / name, hooks / name)
    home = folder / "project"
    shutil.copytree(ROOT / "examples" / "registry", home / "contracts")
    (home / "tally.toml").write_text('registry = "contracts"\n')
    for place in (hooks, home):
        git(place, "init", "-q")
        git(place, "add", "--force", ".")
        git(place, "commit", "-qm", "first")
    config = CONFIG.format(repository=hooks, commit=git(hooks, "rev-parse", "HEAD"))
    (home / ".pre-commit-config.yaml").write_text(config)
    git(home, "add", ".")
    yield home
    shutil.rmtree(folder)


def check(project: Path) -> tuple[int, str]:
    done = run(project, sys.executable, "-m", "pre_commit", "run", "--all-files", "--verbose")
    return done.returncode, done.stdout + done.stderr


def test_the_manifest_is_valid() -> None:
    manifest = ROOT / ".pre-commit-hooks.yaml"
    done = run(ROOT, sys.executable, "-m", "pre_commit", "validate-manifest", manifest)
    assert done.returncode == 0, done.stdout
    assert [*HOOKS] == ["tally-schema-check", "tally-schema-compat", "tally-schema-gdpr"]


def test_a_sound_registry_passes_and_each_hook_finds_its_fault(project: Path) -> None:
    code, shown = check(project)
    assert code == 0, shown
    assert shown.count("Passed") == len(HOOKS)

    schema = project / "contracts" / "schemas" / "users-registered.json"
    sound = schema.read_text()
    for text, hook in (
        (sound.replace('"type": "string"', '"type": "sting"', 1), "tally-schema-check"),
        (sound.replace('"type": "string"', '"type": "integer"', 1), "tally-schema-compat"),
        (sound.replace(', "x-gdpr-sensitive": "email"', ""), "tally-schema-gdpr"),
    ):
        assert text != sound
        schema.write_text(text)
        git(project, "add", ".")
        code, shown = check(project)
        assert code == 1, shown
        assert any(
            line.startswith(HOOKS[hook]["name"]) and line.endswith("Failed")
            for line in shown.splitlines()
        ), shown

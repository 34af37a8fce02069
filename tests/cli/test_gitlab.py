"""The GitLab template is run as a runner would run it: every line of a job, with one bash.

Only the installation is replaced: `python3 -m venv` makes a folder whose `python` writes down what
pip was asked for, and whose `tally` is ours.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tallystick.cli.outputs.code_quality import write_code_quality
from tallystick.schemas.outputs import Mark

ROOT = Path(__file__).parents[2]
FILE = ROOT / "ci" / "gitlab" / "tally-schema.yml"
TEMPLATE: dict[str, Any] = yaml.safe_load(FILE.read_text())
SOURCE = "tallystick[schemas] @ git+https://gitlab.example.com/your-group/tallystick@main"
VENV = """#!/bin/sh
test "$1 $2" = "-m venv" || exit 9
mkdir -p "$3/bin"
printf '#!/bin/sh\\nprintf "%%s\\\\n" "$@" > "{asked}"\\n' > "$3/bin/python"
printf '#!/bin/sh\\nexec "{python}" -m tallystick "$@"\\n' > "$3/bin/tally"
chmod +x "$3/bin/python" "$3/bin/tally"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Give a git repository with a registry and the settings for it."""
    home = tmp_path / "project"
    shutil.copytree(ROOT / "examples" / "registry", home / "contracts")
    (home / "tally.toml").write_text('registry = "contracts"\n')
    git(home, "init", "-q")
    git(home, "add", ".")
    git(home, "commit", "-qm", "first")
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    script = VENV.format(asked=tmp_path / "asked", python=sys.executable)
    (stubs / "python3").write_text(script)
    (stubs / "python3").chmod(0o755)
    return home


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    return subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def run_job(project: Path, name: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run one job with its template: `before_script`, then `script`, in one shell."""
    job = {**TEMPLATE[TEMPLATE[name]["extends"]], **TEMPLATE[name]}
    lines = "\n".join([*job["before_script"], *job["script"]])
    plain = {key: value for key, value in os.environ.items() if not key.startswith("TALLY_")}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", lines],
        cwd=project, capture_output=True, text=True, check=False,
        env={
            **plain,
            "PATH": f"{project.parent / 'stubs'}:{os.environ['PATH']}",
            "CI_BUILDS_DIR": str(project.parent),
            "CI_PROJECT_DIR": str(project),
            "CI_MERGE_REQUEST_DIFF_BASE_SHA": git(project, "rev-parse", "HEAD"),
            "TALLY_SOURCE": SOURCE,
            **variables,
        },
    )  # fmt: skip


JOBS = [name for name in TEMPLATE if not name.startswith(".")]


def test_the_template_is_valid_gitlab_ci() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.gitlab-ci", FILE],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", JOBS)
def test_a_sound_project_passes_and_leaves_the_reports(project: Path, name: str) -> None:
    done = run_job(project, name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (project.parent / "asked").read_text().splitlines()[-1] == SOURCE
    part = name.removeprefix("tally-schema-")
    artifacts = TEMPLATE[".tally-schema"]["artifacts"]
    patterns = [*artifacts["paths"], artifacts["reports"]["junit"]]
    for pattern in (*patterns, artifacts["reports"]["codequality"]):
        assert [path.name.split(".")[0] for path in project.glob(pattern)] == [f"tally-{part}"]
    assert json.loads((project / f"tally-{part}.codequality.json").read_text()) == []


def test_a_breaking_change_fails_the_merge_request_at_its_line(project: Path) -> None:
    schemas = project / "contracts" / "schemas"
    shutil.copy(schemas / "orders-created.v2-breaking.json", schemas / "orders-created.json")
    done = run_job(project, "tally-schema-compat")
    assert done.returncode == 1, done.stderr
    rows = json.loads((project / "tally-compat.codequality.json").read_text())
    assert {row["location"]["path"] for row in rows} == {"contracts/schemas/orders-created.json"}
    assert {row["severity"] for row in rows} == {"major"}
    assert all(row["location"]["lines"]["begin"] > 1 for row in rows[:1])
    assert len({row["fingerprint"] for row in rows}) == len(rows) > 1


def test_without_a_source_the_job_says_what_to_set(project: Path) -> None:
    done = run_job(project, JOBS[0], TALLY_SOURCE="")
    assert done.returncode == 2
    assert "set the variable TALLY_SOURCE" in done.stderr


def test_a_finding_without_a_file_is_placed_at_the_registry() -> None:
    marks = [
        Mark("commit 1", "warning", "cannot be read", rule="compat/unread"),
        Mark("urn", "passed"),
        Mark("urn", "notice", "m", "", "-", 3, "validate/unknown"),
    ]
    rows = json.loads(write_code_quality(marks, "registry.json"))
    places = [(row["location"]["path"], row["location"]["lines"]["begin"]) for row in rows]
    assert places == [("registry.json", 1), ("registry.json", 3)]
    assert [row["severity"] for row in rows] == ["minor", "info"]
    assert [row["check_name"] for row in rows] == ["compat/unread", "validate/unknown"]

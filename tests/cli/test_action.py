"""The action is run as a runner would run it: its steps, with bash, in a folder of its own.

`TALLY_PYTHON` stands for the installation, but for one test that installs from the checkout.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    summary: str
    outputs: dict[str, str]


READY = {"TALLY_PYTHON": sys.executable}
"""Nothing is installed: this Python has the package."""


def run_action(
    workspace: Path, variables: Mapping[str, str] = MappingProxyType(READY), **chosen: str
) -> Ran:
    """Run every step with its inputs filled in."""
    inputs = {name: row["default"] for name, row in ACTION["inputs"].items()} | chosen
    files = {name: workspace.parent / name.lower() for name in
             ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}  # fmt: skip
    files["GITHUB_STEP_SUMMARY"].touch()
    steps: dict[str, dict[str, str]] = {}
    out = ""
    for step in ACTION["runs"]["steps"]:
        files["GITHUB_OUTPUT"].write_text("")
        environment = {
            **os.environ,
            **{name: str(path) for name, path in files.items()},
            "GITHUB_WORKSPACE": str(workspace),
            "GITHUB_ACTION_PATH": str(ROOT),
            "RUNNER_TEMP": str(workspace.parent),
            **variables,
            **{name: fill(text, inputs, steps) for name, text in step.get("env", {}).items()},
        }
        folder = workspace / fill(step.get("working-directory", "."), inputs, steps)
        assert step["shell"] == "bash"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]],
            cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
        out += done.stdout + done.stderr
        rows = files["GITHUB_OUTPUT"].read_text().splitlines()
        steps[step["id"]] = dict(row.split("=", 1) for row in rows)
        if done.returncode:
            break
    summary = files["GITHUB_STEP_SUMMARY"].read_text()
    return Ran(done.returncode, out, summary, steps[step["id"]])


def fill(text: str, inputs: dict[str, str], steps: dict[str, dict[str, str]]) -> str:
    """Replace the expressions of a workflow."""

    def value(found: re.Match[str]) -> str:
        parts = found[1].split(".")
        return inputs[parts[1]] if parts[0] == "inputs" else steps[parts[1]][parts[3]]

    return re.sub(r"\$\{\{ ([a-z.-]+) \}\}", value, text)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Give a repository whose registry stands in `contracts`."""
    home = tmp_path / "repository"
    shutil.copytree(ROOT / "examples" / "registry", home / "contracts")
    return home


def test_the_inputs_are_those_of_the_guide() -> None:
    defaults = {name: row["default"] for name, row in ACTION["inputs"].items()}
    assert defaults == {
        "command": "check", "registry": "", "dir": ".", "args": "", "sarif": "",
    }  # fmt: skip
    guide = (ROOT / "docs" / "guides" / "ci.md").read_text()
    assert re.findall(r"^\| `([a-z]+)` \|", guide, re.MULTILINE)[: len(defaults)] == [*defaults]


def test_nothing_given_by_a_user_is_pasted_into_a_script() -> None:
    assert not any("${{" in step["run"] for step in ACTION["runs"]["steps"])


def test_a_sound_registry_passes_with_a_summary(workspace: Path) -> None:
    ran = run_action(workspace, dir="contracts")
    assert (ran.code, ran.outputs["exit-code"]) == (0, "0")
    assert ran.summary.startswith("### Schema check: passed\n")


def test_a_fault_is_annotated_at_its_line_from_the_root_of_the_repository(workspace: Path) -> None:
    schema = workspace / "contracts" / "schemas" / "orders-created.json"
    schema.write_text(schema.read_text().replace('"type": "number"', '"type": "nubmer"'))
    ran = run_action(workspace, dir="contracts")
    assert ran.code == 1
    assert "::error file=contracts/schemas/orders-created.json,line=8," in ran.out
    assert "### Schema check: failed" in ran.summary
    assert "| error | contracts/schemas/orders-created.json:8 |" in ran.summary


def test_compat_gets_its_arguments_and_annotates_the_changed_line(workspace: Path) -> None:
    files = "schemas/orders-created.json schemas/orders-created.v2-breaking.json"
    ran = run_action(workspace, dir="contracts", command="compat", args=files)
    assert ran.code == 1
    place = "contracts/schemas/orders-created.v2-breaking.json"
    assert f"::error file={place},line=7," in ran.out
    assert place in ran.summary


def test_validate_names_the_message_that_is_wrong(workspace: Path) -> None:
    ran = run_action(workspace, dir="contracts", command="validate",
                     args="messages/order-created.json messages/order-invalid.json")  # fmt: skip
    assert ran.code == 1
    assert "::error file=contracts/messages/order-invalid.json," in ran.out


def test_gdpr_requires_marks_when_told_to(workspace: Path) -> None:
    assert run_action(workspace, dir="contracts", command="gdpr", args="--require").code == 0
    schema = workspace / "contracts" / "schemas" / "users-registered.json"
    schema.write_text(schema.read_text().replace(', "x-gdpr-sensitive": "email"', ""))
    ran = run_action(workspace, dir="contracts", command="gdpr", args="--require")
    assert ran.code == 1
    assert "::error file=contracts/schemas/users-registered.json,line=8," in ran.out
    plain = run_action(workspace, dir="contracts", command="gdpr")
    assert plain.code == 0
    assert "2 URN(s), 4 sensitive field(s)." in plain.summary


def test_quoted_arguments_stay_whole_and_nothing_is_evaluated(workspace: Path) -> None:
    out = "a catalog.json"
    ran = run_action(workspace, dir="contracts", command="export-asyncapi",
                     args=f"-o '{out}' --title \"$(touch pwned)\"")  # fmt: skip
    assert ran.code == 0
    document = json.loads((workspace / "contracts" / out).read_text())
    assert document["info"]["title"] == "$(touch pwned)"
    assert not (workspace / "contracts" / "pwned").exists()


def test_what_cannot_run_fails_with_2_and_says_so(workspace: Path) -> None:
    ran = run_action(workspace, registry="none.json")
    assert (ran.code, ran.outputs["exit-code"]) == (2, "2")
    assert "::error" in ran.out
    assert "could not run" in ran.summary
    assert run_action(workspace, dir="contracts", args="--no-such-flag").code == 2


@pytest.mark.parametrize("args", ["--strict 'open", 'schemas/"a.json', "--strict \\"])
def test_arguments_that_cannot_be_read_fail_the_step(workspace: Path, args: str) -> None:
    ran = run_action(workspace, dir="contracts", args=args)
    assert (ran.code, ran.outputs["exit-code"]) == (2, "2")
    assert "::error" in ran.out
    assert "the input `args` cannot be read" in ran.out
    assert "### Schema check: could not run" in ran.summary


def test_a_command_that_does_not_exist_fails_the_step(workspace: Path) -> None:
    for command in ("chek", "", "--help=1"):
        assert run_action(workspace, dir="contracts", command=command).code == 2


def test_a_drift_of_the_vendored_suite_is_found(workspace: Path) -> None:
    project = workspace / "sdk"
    project.mkdir()
    tally = [sys.executable, "-m", "tallystick", "standard", "sync", str(project)]
    subprocess.run(tally, check=True, capture_output=True)
    assert run_action(workspace, command="drift", args="sdk").code == 0
    copied = project / "tests" / "conformance" / "manifest.json"
    copied.write_text(copied.read_text() + " ")
    ran = run_action(workspace, command="drift", dir="sdk")
    assert ran.code == 1
    assert "::error file=sdk/tests/conformance/manifest.json,line=1," in ran.out
    assert "### Schema drift: failed" in ran.summary
    assert "| error | sdk/tests/conformance/manifest.json:1 |" in ran.summary


def test_the_sarif_file_is_an_output_and_names_files_from_the_root(workspace: Path) -> None:
    schema = workspace / "contracts" / "schemas" / "orders-created.json"
    schema.write_text(schema.read_text().replace('"type": "number"', '"type": "nubmer"'))
    ran = run_action(workspace, dir="contracts", sarif="check.sarif")
    assert ran.code == 1
    assert ran.outputs["sarif"] == str(workspace / "contracts" / "check.sarif")
    results = json.loads(Path(ran.outputs["sarif"]).read_text())["runs"][0]["results"]
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"] for one in results]
    assert {place["uri"] for place in places} == {"contracts/schemas/orders-created.json"}
    assert "sarif" not in run_action(workspace, dir="contracts").outputs


def test_the_registry_can_come_from_the_settings(workspace: Path) -> None:
    (workspace / "tally.toml").write_text('registry = "contracts"\n')
    assert run_action(workspace).code == 0
    assert run_action(workspace, registry="none.json").code == 2


def test_the_action_installs_itself_from_its_own_checkout(workspace: Path) -> None:
    """The package comes from GITHUB_ACTION_PATH; only what it depends on comes from an index."""
    ran = run_action(workspace, {}, dir="contracts")
    assert ran.code == 0, ran.out
    python = workspace.parent / "tallystick-gate" / "bin" / "python"
    asked = subprocess.run(
        [python, "-c", "import tallystick, sys; print(tallystick.__file__, sys.prefix)"],
        cwd=workspace, capture_output=True, text=True, check=True,
    )  # fmt: skip
    package, prefix = asked.stdout.split()
    assert Path(package).is_relative_to(prefix)
    shutil.rmtree(workspace.parent / "tallystick-gate")

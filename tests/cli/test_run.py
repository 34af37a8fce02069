"""`tally run`: the worker of an app, from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tallystick.cli import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "app"


def test_the_example_places_orders_and_a_worker_handles_them(
    broker_url: Callable[[str], str],
) -> None:
    environment = {**os.environ, "SHOP_URL": broker_url("redis")}
    subprocess.run([sys.executable, "shop.py"], cwd=EXAMPLE, env=environment, check=True)
    program = str(Path(sys.executable).with_name("tally"))
    tally = [program, "run", "shop:app", "--limit", "3", "--json"]
    done = subprocess.run(
        tally, cwd=EXAMPLE, env=environment, check=True, capture_output=True, text=True, timeout=60
    )
    *lines, counts = done.stdout.splitlines()
    assert sorted(lines) == [f"order {n}: {9.5 * n:.2f} (attempt 1)" for n in (1, 2, 3)]
    assert json.loads(counts) == {"handled": 3}


@pytest.mark.parametrize("given", ["nothing", "no_such_module:app", "json:dumps", "json:nothing"])
def test_an_app_that_is_not_there_is_a_usage_error(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", given]) == 2
    assert capsys.readouterr().err.startswith("tally: ")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import os\nraise RuntimeError('boom')", "broken.py:2: RuntimeError: boom"),
        ("app = App(", "broken.py:1: SyntaxError: "),
        ("app = 7", "broken:app is a int, not an App"),
        ("", "broken:app is nothing, not an App"),
    ],
)
def test_a_fault_in_the_module_of_the_user_is_one_line_with_its_place(
    text: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    (tmp_path / "broken.py").write_text(text)
    assert main(["run", "broken:app"]) == 2
    first, hint = capsys.readouterr().err.splitlines()
    assert reason in first
    assert hint.startswith("  hint: ")


def test_an_app_with_a_broken_registry_is_no_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "registry.json").write_text("{bad")
    (tmp_path / "broken_shop.py").write_text(
        'from tallystick import App\napp = App("memory://", catalog="registry.json")\n'
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["run", "broken_shop:app", "--idle", "0"]) == 2
    assert capsys.readouterr().err.startswith("tally: registry.json:1: expecting property name")

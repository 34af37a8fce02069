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

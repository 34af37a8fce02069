"""Without the optional libraries: help works everywhere, and what is missing is one clear line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Final

import pytest

from tallystick.cli import NOUNS, main
from tallystick.cli.dispatch import name_internal
from tallystick.core.errors import MissingExtra
from tallystick.core.extras import EXTRAS

_BARE: Final = """
import sys
from tallystick.core.extras import EXTRAS
for extra in EXTRAS.values():
    for module in extra.modules:
        sys.modules[module] = sys.modules[module.partition(".")[0]] = None
from tallystick.cli import main
import json
for words in json.loads(sys.argv[1]):
    print(json.dumps([words, main(words)]), file=sys.stderr)
"""


def _run_bare(calls: list[list[str]]) -> tuple[dict[str, int], str]:
    """Run calls in one process in which no optional library can be imported."""
    done = subprocess.run(
        [sys.executable, "-c", _BARE, json.dumps(calls)],
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("[[")]
    return {" ".join(words): code for words, code in lines}, done.stderr


def test_the_help_of_every_noun_needs_no_extra() -> None:
    codes, stderr = _run_bare([[noun, "--help"] for noun in NOUNS])
    assert codes == {f"{noun} --help": 0 for noun in NOUNS}, stderr


def test_a_verb_that_needs_an_extra_says_so_in_one_line_with_the_pip_command() -> None:
    codes, stderr = _run_bare(
        [["lab", "run"], ["pipeline", "tables"], ["suite", "run", "cloudevents/**"]]
    )
    assert set(codes.values()) == {2}
    for extra in ("lab", "capture", "events"):
        assert f"tally: this needs the extra `{extra}` (" in stderr
        assert f"  hint: pip install 'tallystick[{extra}]'\n" in stderr
    assert "internal fault" not in stderr


def test_an_import_that_failed_is_a_missing_extra_only_if_the_table_has_the_module() -> None:
    module = EXTRAS["redis"].modules[0]
    assert isinstance(name_internal(ModuleNotFoundError(name=module)), MissingExtra)
    for error in (ModuleNotFoundError(name="elsewhere"), ImportError(name=module), KeyError("x")):
        assert name_internal(error).code == "internal"


def test_a_missing_extra_is_an_object_for_a_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pamqp", None)
    assert main(["lab", "clients", "--json"]) == 2
    fault = json.loads(capsys.readouterr().out)["error"]
    assert fault["code"] == "missing_extra"
    assert fault["hint"] == "pip install 'tallystick[lab]'"

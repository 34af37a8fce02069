from __future__ import annotations

from pathlib import Path

import pytest

from tallystick.cli import main

REGISTRY = Path(__file__).parents[2] / "examples" / "registry" / "registry.json"


def test_a_file_that_is_no_schema_is_not_a_break(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = tmp_path / "bad.json", tmp_path / "good.json"
    bad.write_text("{bad")
    good.write_text('{"type":"object"}')
    assert main(["schema", "compat", str(bad), str(good)]) == 2
    assert "bad.json:1" in capsys.readouterr().err


def test_a_message_that_cannot_be_read_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = tmp_path / "message.json"
    message.write_text('{"job":"urn:babel:orders:created","data":{"a":NaN}}')
    assert main(["schema", "validate", "--registry", str(REGISTRY), str(message)]) == 1
    assert "NaN is not a JSON value" in capsys.readouterr().out

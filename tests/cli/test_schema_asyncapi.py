from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from tallystick.cli import schema
from tallystick.core.errors import Unavailable

EXAMPLE = Path(__file__).parents[2] / "examples" / "registry"


def export(*words: str) -> int:
    parser = argparse.ArgumentParser()
    schema.register(parser)
    args = parser.parse_args(["export-asyncapi", "--registry", str(EXAMPLE), *words])
    return int(args.run(args))


def test_the_document_goes_to_stdout_or_to_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("--spec", "3.1", "--title", "T", "--doc-version", "9") == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["asyncapi"], document["info"]) == ("3.1.0", {"title": "T", "version": "9"})
    assert export("-o", str(tmp_path / "a.json"), "--bindings", "kafka,sqs") == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", f"wrote {tmp_path}/a.json (2 URN(s))\n")
    written = json.loads((tmp_path / "a.json").read_text())
    assert set(written["channels"]["urn:babel:orders:created"]["bindings"]) == {"kafka", "sqs"}


def test_what_cannot_be_written_or_chosen_is_said(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        export("-o", str(tmp_path / "none" / "a.json"))
    with pytest.raises(SystemExit):
        export("--bindings", "carrier-pigeon")

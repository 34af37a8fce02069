"""What the tests of `bqschema` share: how it is called, and a registry of one URN."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tallystick.cli.bqschema import main

COMPATIBLE = "backward-compatible: no breaking changes.\n"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(words)
    said = capsys.readouterr()
    return code, said.out, said.err


def registry(schema: Any = None, urn: str = "u:a", **files: Any) -> None:
    """Write a registry of one URN, and other files beside it."""
    manifest = {"schemas": [{"urn": urn, "schema": "a.json", "colour": "ignored"}]}
    for name, content in {"registry": manifest, "a": schema, **files}.items():
        if content is not None:
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            Path(f"{name}.json").write_text(text, encoding="utf-8")


def properties(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


TEXT = {"type": "string"}
WHOLE = {"type": "integer"}

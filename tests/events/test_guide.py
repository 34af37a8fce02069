"""The guide's examples run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tallystick.events.formats.json_format import write_batch
from tallystick.events.golden import BATCHES

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "events.md"


def test_the_examples_of_the_guide_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "batch.json").write_bytes(write_batch(BATCHES["minimal2"]))
    names: dict[str, Any] = {}
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(block, names)
    assert names["frame"].sections["headers"]["ce_id"] == b"1042"

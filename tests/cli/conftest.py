"""What the tests of the commands share: the example registry, a suite of one's own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lay the example registry out as the README of the reference names it."""
    shutil.copytree(ROOT / "examples" / "registry", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def own(tmp_path: Path) -> str:
    def case(name: str, body: str, expect: str) -> dict[str, str]:
        return {"name": name, "body": body, "expect": expect}

    cases = [
        case("good", '{"job":"urn:a"}', "ok"),
        case("job number", '{"job":5}', "poison"),
        case("wrong on purpose", '{"job":"urn:a"}', "poison"),
    ]
    manifest = {
        "conformance_version": "1.0.0",
        "sections": {"identity_verdict": {"scope": "core"}},
        "identity_verdict": {"cases": cases},
    }
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return str(folder)

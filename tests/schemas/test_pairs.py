"""Every labelled pair, and the proof stored with its label."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import jsonschema_rs
import pytest

from tallystick.schemas.compat import compare
from tallystick.schemas.containment.keywords import _EVERY, _TYPED
from tallystick.schemas.refs import dialect_of
from tallystick.schemas.validate import compile_schema

FOLDER = Path(__file__).parent / "pairs"
PAIRS = [
    pytest.param(pair, id=f"{path.stem}/{pair['name']}")
    for path in sorted(FOLDER.glob("*.json"))
    for pair in json.loads(path.read_bytes())
]
LIBRARY = {
    "draft-07": jsonschema.Draft7Validator,
    "2019-09": jsonschema.Draft201909Validator,
    "2020-12": jsonschema.Draft202012Validator,
}
DRAFTS = {
    "draft-07": jsonschema_rs.Draft7,
    "2019-09": jsonschema_rs.Draft201909,
    "2020-12": jsonschema_rs.Draft202012,
}


def accepts(schema: Any, value: Any) -> bool:
    """Ask a second validator that shares no code with the first, where it asserts as much."""
    if any(f'"{word}' in json.dumps(schema) for word in ("format", "content")):
        return compile_schema(schema).is_valid(value)
    return bool(LIBRARY[dialect_of(schema)](schema).is_valid(value))


@pytest.mark.parametrize("pair", PAIRS)
def test_the_verdict_is_the_label_and_the_proof_holds(pair: dict[str, Any]) -> None:
    old, new = pair["old"], pair["new"]
    found = compare(old, new, "strict")
    assert found.verdict == pair["label"], found
    if pair["label"] == "breaking":
        for witness in (pair["witness"], found.witness):
            assert accepts(old, witness)
            assert not accepts(new, witness)
    else:
        assert pair["argument"]
        assert not found.has_witness


@pytest.mark.parametrize("pair", PAIRS)
def test_the_other_engine_never_contradicts(pair: dict[str, Any]) -> None:
    if dialect_of(pair["old"]) != dialect_of(pair["new"]):
        return
    draft = DRAFTS[dialect_of(pair["old"])]
    try:
        old, new = (
            jsonschema_rs.canonicalize(pair[side], draft=draft, offline=True)
            for side in ("old", "new")
        )
        answer = str(new.covers(old))
    except (ValueError, TypeError, jsonschema_rs.canonical.CanonicalizationError):
        return
    assert answer != {"compatible": "no", "breaking": "yes"}[pair["label"]]


def test_there_are_many_pairs_of_both_labels_and_names_are_unique() -> None:
    labels = [pair.values[0]["label"] for pair in PAIRS]  # type: ignore[index]
    assert len(labels) >= 300
    assert min(labels.count("compatible"), labels.count("breaking")) >= 150
    assert len({pair.id for pair in PAIRS}) == len(PAIRS)


def test_every_keyword_occurs_in_pairs_of_both_labels() -> None:
    texts: dict[str, str] = {"compatible": "", "breaking": ""}
    for pair in PAIRS:
        value: Any = pair.values[0]
        texts[value["label"]] += json.dumps([value["old"], value["new"]])
    known = {*_EVERY, *(keyword for table in _TYPED.values() for keyword in table)}
    for keyword in known:
        for label, text in texts.items():
            assert f'"{keyword}"' in text, (keyword, label)

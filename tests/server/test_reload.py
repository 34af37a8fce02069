from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tallystick.core.errors import Rejected, Unavailable
from tallystick.schemas.ids import LOCK, render_lock
from tallystick.server.reload import Store, keep_fresh, open_store, refresh
from tests.server.serving import ANY, MONEY, ORDERS, write_registry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_registry(tmp_path / "registry")
    return tmp_path / "registry"


def add(folder: Path, urn: str, name: str) -> None:
    manifest = json.loads((folder / "registry.json").read_bytes())
    manifest["schemas"].append({"urn": urn, "schema": name})
    (folder / "registry.json").write_text(json.dumps(manifest, ensure_ascii=False))


def test_what_did_not_change_is_not_read_again(folder: Path) -> None:
    store = open_store(folder)
    before = store.snapshot
    assert not refresh(store)
    assert store.snapshot is before


def test_a_changed_schema_is_served(folder: Path) -> None:
    store = open_store(folder)
    (folder / "any.json").write_text('{"type": "object"}')
    assert refresh(store)
    assert store.snapshot.subjects[ANY].text == '{"type": "object"}'


def test_a_change_behind_a_reference_is_served(folder: Path) -> None:
    store = open_store(folder)
    (folder / "common" / "amount.json").write_text('{"definitions": {"amount": {"const": 77}}}')
    assert refresh(store)
    assert '"const": 77' in store.snapshot.subjects[MONEY].text


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("registry.json", "{"),
        ("any.json", '{"type": "strnig"}'),
        ("any.json", '{"$ref": "https://example.com/remote.json"}'),
        (LOCK, '{"ids": {"a": 0}}'),
    ],
)
def test_a_broken_registry_leaves_the_last_good_one_and_says_so(
    folder: Path, file: str, text: str
) -> None:
    store = open_store(folder)
    before = store.snapshot
    (folder / file).write_text(text)
    assert refresh(store)
    assert store.snapshot is before
    assert file in store.error
    assert store.failures == 1
    assert not refresh(store), "a broken registry is not read again until a file changes"


def test_a_repaired_registry_is_served_again(folder: Path) -> None:
    store = open_store(folder)
    add(folder, "urn:babel:new:one", "new.json")
    refresh(store)
    assert "new.json" in store.error
    (folder / "new.json").write_text("{}")
    refresh(store)
    assert store.error == ""
    assert "urn:babel:new:one" in store.snapshot.subjects


def test_a_deleted_manifest_leaves_the_last_good_registry(folder: Path) -> None:
    store = open_store(folder)
    (folder / "registry.json").unlink()
    refresh(store)
    assert "registry.json" in store.error
    assert ORDERS in store.snapshot.subjects


def test_a_lock_holds_the_ids_when_a_urn_is_added(folder: Path) -> None:
    store = open_store(folder)
    ids = {urn: subject.id for urn, subject in store.snapshot.subjects.items()}
    (folder / LOCK).write_text(render_lock(ids))
    (folder / "first.json").write_text("{}")
    add(folder, "urn:aaa", "first.json")
    refresh(store)
    assert {urn: store.snapshot.subjects[urn].id for urn in ids} == ids
    assert store.snapshot.subjects["urn:aaa"].id == max(ids.values()) + 1
    assert store.snapshot.unlocked == ("urn:aaa",)


def test_a_registry_that_never_was_good_is_not_served(folder: Path) -> None:
    (folder / "any.json").write_text('{"type": "strnig"}')
    with pytest.raises(Rejected, match=r"any\.json"):
        open_store(folder)
    with pytest.raises(Unavailable):
        open_store(folder / "nowhere.json")


def test_what_nobody_foresaw_does_not_end_the_watch(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(folder)
    looks: list[int] = []

    def look(_: Store) -> bool:
        looks.append(1)
        if len(looks) == 1:
            raise ValueError("no")
        raise KeyboardInterrupt  # ends the test: a second look was taken

    monkeypatch.setattr("tallystick.server.reload.refresh", look)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(keep_fresh(store, 0.0))
    assert (store.error, store.failures) == ("internal fault: ValueError: no", 1)
    assert store.snapshot.subjects

"""A catalog holds both ends: what breaks it is not sent, and reaches no handler."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tallystick import App
from tallystick.core.envelope import decode
from tallystick.core.errors import Refused, Unavailable, UsageError
from tallystick.runtime.outbox import Outbox
from tallystick.runtime.retry import Backoff
from tallystick.schemas.catalog import load_catalog

URN = "urn:babel:orders:created"
OTHER = "urn:babel:orders:paid"
SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {"id": {"type": "integer"}, "amount": {"type": "number", "minimum": 0}},
}


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    (tmp_path / "order.json").write_text(json.dumps(SCHEMA))
    manifest = tmp_path / "registry.json"
    manifest.write_text(json.dumps({"schemas": [{"urn": URN, "schema": "order.json"}]}))
    return manifest


def make_app(space: str = "", **settings: Any) -> App:
    url = f"memory://{space or uuid4().hex}"
    return App(url, queue="orders", backoff=Backoff(), **settings)


def received(app: App, queue: str) -> list[Any]:
    transport = app.link.open()
    return [decode(one.frame.body) for one in transport.receive(queue, 100, 0)]


@pytest.mark.parametrize(
    ("data", "pointer", "keyword"),
    [
        ({"id": "seven"}, "/data/id", "type"),
        ({"id": 7, "amount": -1}, "/data/amount", "minimum"),
        ({}, "/data", "required"),
    ],
)
def test_what_breaks_its_schema_is_refused_and_nothing_is_sent(
    registry: Path, data: dict[str, Any], pointer: str, keyword: str
) -> None:
    app = make_app(catalog=registry)
    for publish in (
        lambda: app.publish(URN, data),
        lambda: app.publish_all([(URN, {"id": 1}), (URN, data)]),
    ):
        with pytest.raises(Refused) as caught:
            publish()
        assert (caught.value.pointer, caught.value.code) == (pointer, f"schema.{keyword}")
        assert "seven" not in str(caught.value)
    assert received(app, "orders") == []
    app.publish(URN, {"id": 7})
    assert len(received(app, "orders")) == 1


def test_what_breaks_its_schema_reaches_no_handler_and_is_a_dead_letter_with_the_reason(
    registry: Path,
) -> None:
    space = uuid4().hex
    make_app(space).publish(URN, {"id": "seven"})
    app = make_app(space, catalog=str(registry))
    app.handler(URN)(lambda _: pytest.fail("it is not valid"))
    assert app.run(idle=0.05) == {"dead_lettered": 1}
    (letter,) = received(app, "orders.dlq")
    assert letter.dead_letter.reason == "failed"
    assert letter.dead_letter.error == "the payload does not match its schema: type at /data/id"
    assert letter.data == {"id": "seven"}


@pytest.mark.parametrize(
    ("validate", "published", "handled"),
    [(None, False, False), ("publish", False, True), ("handle", True, False), ("", True, True),
     ("publish, handle", False, False)],
)  # fmt: skip
def test_each_end_is_checked_when_it_is_asked_for(
    registry: Path, validate: str | None, published: bool, handled: bool
) -> None:
    app = make_app(catalog=load_catalog(registry), validate=validate)
    runs: list[Any] = []
    app.handler(URN)(runs.append)
    if published:
        app.publish(URN, {"id": "seven"})
    else:
        with pytest.raises(Refused):
            app.publish(URN, {"id": "seven"})
        transport = app.link.open()
        plain = make_app(app.link.address.host)
        plain.publish(URN, {"id": "seven"})
        transport.close()
    app.run(idle=0.05)
    assert runs == ([{"id": "seven"}] if handled else [])


def test_a_urn_without_a_schema_is_allowed_or_refused_as_asked(registry: Path) -> None:
    app, runs = make_app(catalog=registry), list[Any]()
    app.handler(OTHER)(runs.append)
    app.publish(OTHER, {"x": 1})
    assert app.run(idle=0.05) == {"handled": 1}
    strict = make_app(catalog=registry, on_unknown_schema="refuse")
    with pytest.raises(Refused) as caught:
        strict.publish(OTHER, {})
    assert (caught.value.code, caught.value.pointer) == ("schema.unknown", "/job")
    strict.handler(OTHER)(lambda _: pytest.fail("it has no schema"))
    make_app(strict.link.address.host).publish(OTHER, {})
    assert strict.run(idle=0.05) == {"dead_lettered": 1}


def test_the_outbox_holds_to_the_catalog_too(registry: Path, tmp_path: Path) -> None:
    with closing(Outbox(f"sqlite:///{tmp_path}/o.db", catalog=registry)) as outbox:
        outbox.create()
        with closing(sqlite3.connect(tmp_path / "o.db")) as connection:
            with pytest.raises(Refused):
                outbox.add(connection, URN, {"id": "seven"})
            outbox.add(connection, URN, {"id": 7})
            connection.commit()
        assert outbox.status().pending == 1


def test_a_setting_that_makes_no_sense_is_said_at_once(registry: Path, tmp_path: Path) -> None:
    for wrong in (
        {"catalog": registry, "validate": "handel"},
        {"catalog": registry, "on_unknown_schema": "perhaps"},
        {"validate": "publish"},
    ):
        with pytest.raises(UsageError) as caught:
            make_app(**wrong)
        assert caught.value.code == "setting"
    with pytest.raises(Unavailable):
        make_app(catalog=tmp_path / "nowhere.json")

"""Nothing that the runtime says shows a marked value; secrets are planted on every path."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick import App
from tallystick.core.binding import project
from tallystick.core.envelope import decode
from tallystick.core.errors import Refused, Unavailable
from tallystick.core.frame import Frame
from tallystick.runtime.claims import Terms
from tallystick.runtime.claims.memory import MemoryClaims
from tallystick.runtime.contracts import Contracts, open_contracts
from tallystick.runtime.handlers import Message
from tallystick.runtime.masking import mask_text, show_body
from tallystick.runtime.reading import reader
from tallystick.runtime.retry import Backoff
from tallystick.runtime.store_url import StoreUnavailable

URN = "urn:babel:users:registered"
MAIL = "zq.planted@secret.example"
NUMBER = 48151623421
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "email": {"type": "string", "x-gdpr-sensitive": "email"},
        "number": {"type": "integer", "x-gdpr-sensitive": True},
        "by_name": {
            "type": "object",
            "propertyNames": {"x-gdpr-sensitive": True},
            "additionalProperties": {"type": "integer"},
        },
    },
}
DATA = {"id": 7, "email": MAIL, "number": NUMBER, "by_name": {MAIL: 1}}


@pytest.fixture
def registry(tmp_path: Path) -> Path:
    (tmp_path / "user.json").write_text(json.dumps(SCHEMA))
    manifest = tmp_path / "registry.json"
    manifest.write_text(json.dumps({"schemas": [{"urn": URN, "schema": "user.json"}]}))
    return manifest


@pytest.fixture
def contracts(registry: Path) -> Contracts:
    found = open_contracts(registry, None, "allow")
    assert found
    return found


def make_app(**settings: Any) -> App:
    given = {"queue": "users", "backoff": Backoff(), "release_delay": 0.0, **settings}
    return App(f"memory://{uuid4().hex}", **given)


def clean(text: str) -> bool:
    return not any(part in text.lower() for part in ("planted", "secret", str(NUMBER)))


def inject(app: App, body: bytes) -> None:
    transport = app.link.open()
    transport.send("users", [Frame(body)])
    transport.close()


def fails(text: str) -> Callable[[Any], None]:
    def handler(data: Any) -> None:
        raise ValueError(text.format(**data))

    return handler


def test_the_secrets_are_planted_where_they_would_be_seen() -> None:
    assert not clean(json.dumps(DATA))


@pytest.mark.parametrize("with_catalog", [True, False])
@pytest.mark.parametrize(
    "path",
    ["handled", "raised", "async", "unfit", "unknown", "invalid", "poison", "pointer", "outdated",
     "skipped", "held", "store", "crash", "unsettled"],
)  # fmt: skip
def test_no_log_line_shows_a_marked_value(
    path: str, with_catalog: bool, registry: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings: dict[str, Any] = {"catalog": registry} if with_catalog else {}
    app = make_app(**settings, idempotency=claims_for(path), new_id=lambda: "same")
    caplog.set_level(logging.DEBUG)
    publish = {"invalid", "poison", "pointer", "outdated"}.isdisjoint({path})
    if publish:
        app.publish(URN, DATA)
    plain = make_app()
    body = project(plain.link.binding, plain._make(URN, DATA, "users", "")).body
    if path == "invalid":
        inject(app, body.replace(b'"id":7', b'"id":"%s"' % MAIL.encode()))
    if path == "poison":
        inject(app, body[:-1])
    if path == "pointer":
        inject(app, body.replace(b'":1}', b'":1e999}'))
    if path == "outdated":
        inject(app, body.replace(b'"schema_version":1', b'"schema_version":9'))
    if path == "skipped":
        app.publish(URN, DATA)
    register(app, path)
    app.run(limit=2 if path == "skipped" else 1)
    assert caplog.records or path == "handled"
    assert clean(caplog.text)
    assert all(clean(str(record.__dict__)) for record in caplog.records)
    if with_catalog and path == "handled":
        assert '"email":"z***"' in caplog.text
        assert '"id":7' in caplog.text
    if not with_catalog:
        assert URN not in caplog.text or path == "unknown", "without a catalog no body is logged"


class Broken(MemoryClaims):
    """A store that says too much when it fails."""

    def claim(self, message_id: str) -> Any:
        raise StoreUnavailable(f"away: {message_id}", code="store")


def claims_for(path: str) -> MemoryClaims:
    claims = (Broken if path == "store" else MemoryClaims)(Terms())
    if path == "held":
        claims.claim("same")
    return claims


def register(app: App, path: str) -> None:
    if path == "unknown":
        return
    if path == "async":

        @app.handler(URN)
        async def later(data: Any) -> None:
            raise KeyError(data["email"], data["number"])

        return
    if path == "unfit":
        kind = make_dataclass("User", [("id", int), ("email", int)])

        def typed(user: Any) -> None: ...

        typed.__annotations__ = {"user": kind, "return": None}
        app.handler(URN)(typed)
        return
    if path == "raised":
        app.handler(URN)(fails("no user {email} with {number}"))
        return
    if path == "crash":
        app._handlers.clear()
        app.handler(URN)(lambda _: None)
        handlers = dict(app._handlers)

        class Trap(dict[str, Any]):
            def get(self, *_: Any) -> Any:
                raise RuntimeError(f"we broke on {MAIL}")

        app._handlers = Trap(handlers)  # type: ignore[misc]
        return
    if path == "unsettled":
        opened = app.link.open

        def open_broken() -> Any:
            transport = opened()

            def ack(_deliveries: Any) -> None:
                raise Unavailable("away", code="broker")

            transport.ack = ack  # type: ignore[assignment]
            return transport

        object.__setattr__(app.link, "open", open_broken)
    app.handler(URN)(lambda _: None)


def test_a_dead_letter_says_what_went_wrong_without_marked_values(registry: Path) -> None:
    app = make_app(catalog=registry, max_attempts=1)
    app.handler(URN)(fails("order {id}: no mail to {email!r} or {number}"))
    app.publish(URN, DATA)
    assert app.run(limit=1) == {"dead_lettered": 1}
    (letter,) = [one.frame for one in app.link.open().receive("users.dlq", 1, 0)]
    block = decode(letter.body).dead_letter
    assert block
    assert block.error == "order 7: no mail to '***' or ***"
    assert block.exception == "builtins.ValueError"


def test_a_refusal_names_the_place_and_not_the_value(registry: Path) -> None:
    app = make_app(catalog=registry)
    with pytest.raises(Refused) as caught:
        app.publish(URN, {"id": MAIL})
    assert clean(str(caught.value) + repr(caught.value) + caught.value.hint)


def test_a_repr_shows_no_body(registry: Path) -> None:
    app = make_app(catalog=registry)
    app.publish(URN, DATA)
    (delivery,) = app.link.open().receive("users", 1, 0)
    reading = reader(app.link.binding)(delivery, 0)
    assert reading.envelope
    message = Message(URN, "users", 0, reading.envelope)
    worker, transport = app._worker("users")
    plan = worker._execution.run(delivery)
    transport.close()
    for one in (app, delivery, delivery.frame, reading, reading.envelope, message, plan, worker):
        assert clean(repr(one))
        assert clean(str(one))


def test_without_a_catalog_a_body_is_a_number_of_bytes(contracts: Contracts) -> None:
    assert show_body(None, URN, b"abc") == "3 bytes"
    assert show_body(contracts, URN, b'{"a":') == "5 bytes that are not JSON"


def test_what_no_schema_declares_is_masked_too(contracts: Contracts) -> None:
    body = json.dumps({"job": "urn:unknown", "data": {"note": "hello there"}}).encode()
    assert "hello" not in show_body(contracts, "urn:unknown", body)
    assert mask_text(contracts, "urn:unknown", {"note": "hello there"}, "it said HELLO") == (
        "it said ***"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (MAIL, f"<{MAIL}>"),
        (MAIL, MAIL.upper()),
        ('O\'Neil\n"é"', repr('O\'Neil\n"é"')),
        ('O\'Neil\n"é"', json.dumps('O\'Neil\n"é"')),
        ("ada lovelace", "mail=ada%20lovelace"),
        ("Ada Lovelace", "who is lovelace?"),
    ],
)
def test_a_text_loses_a_value_in_the_forms_in_which_it_is_written(
    contracts: Contracts, value: str, text: str
) -> None:
    masked = mask_text(contracts, URN, {"email": value}, text).lower()
    assert "***" in masked
    for word in ("planted", "neil", "lovelace", "ada"):
        assert word not in masked


@given(st.text(min_size=1).filter(str.strip), st.text(), st.text())
def test_no_marked_text_survives_in_a_text_that_quotes_it(
    value: str, before: str, after: str
) -> None:
    contracts = Contracts(None, (), False, {URN: SCHEMA})  # type: ignore[arg-type]
    data = {"email": value}
    assert mask_text(contracts, URN, data, value) == "***"
    masked = mask_text(contracts, URN, data, f"{before} {value} {after}")
    assert "***" in masked

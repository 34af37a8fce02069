"""A worker with claims: a copy is skipped, and a store that fails costs no message."""

from __future__ import annotations

from typing import Any

import pytest
from tests.runtime.claiming import URN

from tallystick import App
from tallystick.core.errors import UsageError
from tallystick.runtime.claims import SeenClaims, Terms
from tallystick.runtime.claims.memory import MemoryClaims
from tallystick.runtime.idempotency import MemorySeen
from tallystick.runtime.retry import Backoff
from tallystick.runtime.store_url import StoreUnavailable


def make_app(**settings: Any) -> App:
    return App("memory://", queue="orders", backoff=Backoff(), release_delay=0.0, **settings)


def test_a_copy_of_a_message_is_skipped() -> None:
    app, runs = make_app(idempotency="memory", new_id=lambda: "same"), list[Any]()
    app.handler(URN)(runs.append)
    app.publish(URN, {"n": 1})
    app.publish(URN, {"n": 2})
    assert app.run(idle=0.05) == {"handled": 1, "skipped": 1}
    assert runs == [{"n": 1}]


def test_a_message_that_another_worker_holds_is_handed_back_uncounted() -> None:
    claims = MemoryClaims(Terms(600))
    app, runs = make_app(idempotency=claims, new_id=lambda: "same"), list[Any]()
    held = claims.claim("same")

    @app.handler(URN)
    def created(data: Any, message: Any) -> None:
        runs.append(message.attempts)

    app.publish(URN, {})
    assert app.run(limit=2) == {"released": 2}
    assert runs == []
    claims.release("same", held.token)
    assert app.run(limit=1) == {"handled": 1}
    assert runs == [0]


def test_a_handler_that_fails_gives_its_claim_back() -> None:
    app, runs = make_app(idempotency="memory", max_attempts=2), list[Any]()

    @app.handler(URN)
    def created(data: Any) -> None:
        runs.append(data)
        if len(runs) == 1:
            raise ValueError("not yet")

    app.publish(URN, {})
    assert app.run(idle=0.05) == {"retried": 1, "handled": 1}


class Away(SeenClaims):
    """A store that fails at one step."""

    def __init__(self, step: str) -> None:
        super().__init__(MemorySeen())
        self.step = step

    def _fail(self, step: str) -> None:
        if step == self.step:
            raise StoreUnavailable("away", code="store")

    def claim(self, message_id: str) -> Any:
        self._fail("claim")
        return super().claim(message_id)

    def complete(self, message_id: str, token: str) -> bool:
        self._fail("complete")
        return self.step != "lost" and super().complete(message_id, token)

    def release(self, message_id: str, token: str) -> None:
        self._fail("release")
        super().release(message_id, token)


@pytest.mark.parametrize(
    ("step", "counts"),
    [
        ("claim", {"released": 1}),
        ("complete", {"handled": 1}),
        ("lost", {"handled": 1}),
        ("release", {"dead_lettered": 1}),
    ],
)
def test_a_store_that_fails_loses_no_message_and_costs_no_attempt(
    step: str, counts: dict[str, int], caplog: pytest.LogCaptureFixture
) -> None:
    app = make_app(idempotency=Away(step), max_attempts=1)

    @app.handler(URN)
    def created(data: Any) -> None:
        if step == "release":
            raise ValueError("no")

    app.publish(URN, {})
    with caplog.at_level("INFO"):
        assert app.run(limit=1) == counts
    assert "away" in caplog.text or step == "lost"


class Broken(MemorySeen):
    """A seen-set of somebody's own, which raises what its client library raises."""

    def __init__(self, step: str) -> None:
        super().__init__()
        self.step = step

    def seen(self, message_id: str) -> bool:
        if self.step == "seen":
            raise ConnectionError("hush")
        return super().seen(message_id)

    def remember(self, message_id: str) -> None:
        if self.step == "remember":
            raise ConnectionError("hush")
        super().remember(message_id)


@pytest.mark.parametrize(
    ("step", "counts", "ran"), [("seen", {"released": 1}, 0), ("remember", {"handled": 1}, 1)]
)
def test_whatever_a_seen_set_raises_is_no_failure_of_the_handler(
    step: str, counts: dict[str, int], ran: int, caplog: pytest.LogCaptureFixture
) -> None:
    app, runs = make_app(seen=Broken(step), max_attempts=1), list[Any]()
    app.handler(URN)(runs.append)
    app.publish(URN, {})
    with caplog.at_level("INFO"):
        assert app.run(limit=1) == counts
    assert len(runs) == ran
    assert "ConnectionError" in caplog.text
    assert "hush" not in caplog.text


def test_a_claim_that_cannot_be_given_back_hides_no_failure_of_the_handler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Lost(MemoryClaims):
        def release(self, message_id: str, token: str) -> None:  # noqa: ARG002
            raise OSError("hush")

    app = make_app(idempotency=Lost(Terms(600)), max_attempts=1)

    @app.handler(URN)
    def created(data: Any) -> None:
        raise ValueError("no")

    app.publish(URN, {})
    assert app.run(limit=1) == {"dead_lettered": 1}
    assert "stays reserved until its lease ends: the store raised builtins.OSError" in caplog.text


def test_a_transaction_is_asked_of_a_store_that_has_one() -> None:
    def plain(data: Any, transaction: Any) -> None: ...
    async def slow(data: Any, transaction: Any) -> None: ...

    for store in ("memory", None):
        with pytest.raises(UsageError) as caught:
            make_app(idempotency=store).handler(URN)(plain)
        assert caught.value.code == "no_transaction"
    with pytest.raises(UsageError) as caught:
        make_app(idempotency="memory").handler(URN)(slow)
    assert caught.value.code == "handler"
    with pytest.raises(UsageError):
        make_app(idempotency="memory", seen=MemorySeen())

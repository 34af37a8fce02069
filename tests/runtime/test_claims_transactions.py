"""An effect and its mark are one transaction: both are there, or neither is."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.runtime.claiming import DATABASES, PATIENCE, PROGRAM, URN, StoreUrl, opened

from tallystick import App
from tallystick.core.errors import UsageError
from tallystick.runtime.claims import Claims, Transactional
from tallystick.runtime.claims.sql import SqlClaims
from tallystick.runtime.once import run_claimed, run_in_transaction
from tallystick.runtime.store_url import StoreUnavailable


def table(claims: Claims) -> str:
    """Make a table for effects in the claims' own database."""
    assert isinstance(claims, SqlClaims)
    name = f"effects_{uuid4().hex}"
    with claims._database.borrow() as connection:
        claims._database.run(connection, f"CREATE TABLE {name} (id integer)")
    return name


def rows(claims: Claims, name: str) -> list[Any]:
    assert isinstance(claims, SqlClaims)
    with claims._database.borrow() as connection:
        return [one for (one,) in claims._database.run(connection, f"SELECT id FROM {name}")]


@pytest.mark.parametrize("kind", DATABASES)
def test_an_effect_in_the_transaction_and_its_mark_are_one(kind: str, store_url: StoreUrl) -> None:
    with opened(store_url(kind)) as claims:
        effects = table(claims)

        def insert(connection: Any) -> None:
            connection.execute(f"INSERT INTO {effects} (id) VALUES (7)")

        def insert_and_fail(connection: Any) -> None:
            insert(connection)
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            run_in_transaction(claims, "a", insert_and_fail)
        assert rows(claims, effects) == []
        assert run_in_transaction(claims, "a", insert) == "run"
        assert run_in_transaction(claims, "a", insert) == "done"
        assert run_claimed(claims, "a", lambda: pytest.fail("it is done")) == "done"
        assert rows(claims, effects) == [7]
        assert run_in_transaction(claims, None, insert) == "run", "an id is needed to be known"
        assert rows(claims, effects) == [7, 7]


@pytest.mark.parametrize("kind", DATABASES)
def test_a_second_transaction_for_an_id_is_held_while_the_first_is_open(
    kind: str, store_url: StoreUrl
) -> None:
    with opened(store_url(kind)) as claims:
        assert isinstance(claims, Transactional)
        with claims.transaction("a") as first:
            assert first.verdict == "run"
            with claims.transaction("a") as second:
                assert second.verdict == "held"
                assert second.connection is None
        with claims.transaction("a") as third:
            assert third.verdict == "done"
        held = claims.claim("b")
        with claims.transaction("b") as fourth:
            assert fourth.verdict == "held", "a claim with a lease counts as well"
        claims.release("b", held.token)


@pytest.mark.parametrize("kind", DATABASES)
def test_a_handler_may_not_end_the_transaction(kind: str, store_url: StoreUrl) -> None:
    with opened(store_url(kind)) as claims:
        with pytest.raises(UsageError) as caught:
            run_in_transaction(claims, "a", lambda connection: connection.rollback())
        assert caught.value.code == "transaction"
        assert claims.claim("a").verdict == "run"


@pytest.mark.parametrize("kind", DATABASES)
def test_a_rule_of_the_data_that_is_broken_at_the_commit_is_the_handler_s_failure(
    kind: str, store_url: StoreUrl
) -> None:
    with opened(store_url(kind)) as claims:
        assert isinstance(claims, SqlClaims)
        effects = table(claims)
        rule = f"CREATE TABLE {effects}_child (id integer REFERENCES {effects} (id) {{}})"
        with claims._database.borrow() as connection:
            claims._database.run(connection, f"CREATE UNIQUE INDEX {effects}_id ON {effects} (id)")
            claims._database.run(connection, rule.format("DEFERRABLE INITIALLY DEFERRED"))

        def orphan(connection: Any) -> None:
            connection.execute(f"INSERT INTO {effects}_child VALUES (1)")

        if kind == "sqlite":
            with claims._database.borrow() as connection:
                connection.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(Exception, match=r"(?i)foreign key") as caught:
            run_in_transaction(claims, "a", orphan)
        assert not isinstance(caught.value, StoreUnavailable)
        assert claims.claim("a").verdict == "run"


def test_a_database_that_was_restarted_costs_one_call(
    store_url: StoreUrl, broker_url: Callable[[str], str]
) -> None:
    with opened(store_url("postgresql")) as claims:
        assert isinstance(claims, SqlClaims)
        borrow = claims._database.borrow
        with borrow() as one, borrow() as two, borrow() as three:
            stale = [lent.info.backend_pid for lent in (one, two, three)]
        with psycopg.connect(broker_url("postgresql"), autocommit=True) as killer:
            for process in stale:
                killer.execute("SELECT pg_terminate_backend(%s)", [process])
        with pytest.raises(StoreUnavailable):
            claims.claim("a")
        assert claims.claim("a").verdict == "run"


def test_a_transaction_with_a_swallowed_error_is_not_taken_for_committed(
    store_url: StoreUrl,
) -> None:
    with opened(store_url("postgresql")) as claims:

        def swallow(connection: Any) -> None:
            with pytest.raises(Exception, match="nowhere"):
                connection.execute("SELECT * FROM nowhere")

        with pytest.raises(UsageError):
            run_in_transaction(claims, "a", swallow)
        assert claims.claim("a").verdict == "run"


@pytest.mark.parametrize("kind", DATABASES)
def test_a_worker_that_is_killed_in_a_transaction_leaves_no_trace_and_its_message_takes_effect_once(
    kind: str, store_url: StoreUrl, broker_url: Callable[[str], str]
) -> None:
    url, broker = store_url(kind), f"{broker_url('redis')}?retry_after=1"
    with opened(url) as claims, App(broker, queue=f"orders-{uuid4().hex}") as app:
        effects = table(claims)
        queue = app.settings.queue
        app.publish(URN, {"id": 7})
        program = PROGRAM.read_text().replace('queue="orders"', f'queue="{queue}"')
        died = subprocess.run(
            [sys.executable, "-c", program, "die", url, effects, broker],
            check=False,
            timeout=PATIENCE,
        )
        assert died.returncode == -signal.SIGKILL
        assert rows(claims, effects) == []
        again = App(broker, queue=queue, idempotency=url)

        @again.handler(URN)
        def created(data: dict[str, Any], transaction: Any) -> None:
            transaction.execute(f"INSERT INTO {effects} (id) VALUES ({data['id']})")

        assert again.run(limit=1)["handled"] == 1
        again.close()
        assert rows(claims, effects) == [7]

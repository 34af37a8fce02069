"""Claims keep one law on every store: one at a time, never again once done, free after a crash."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from tallystick import App
from tallystick.core.errors import UsageError
from tallystick.runtime.claims import Claims, SeenClaims, Terms, Transactional, open_claims
from tallystick.runtime.claims.memory import MemoryClaims
from tallystick.runtime.claims.sql import SqlClaims
from tallystick.runtime.idempotency import MemorySeen
from tallystick.runtime.once import run_claimed, run_in_transaction
from tallystick.runtime.retry import Backoff
from tallystick.runtime.store_url import StoreUnavailable, read_store_url

KINDS = ["memory", "sqlite", "redis", "postgresql"]
DATABASES = ["sqlite", "postgresql"]
PROGRAM = Path(__file__).with_name("claims_program.py")
URN = "urn:babel:orders:created"
PATIENCE = 60.0
StoreUrl = Callable[[str], str]


@contextmanager
def opened(url: str) -> Iterator[Claims]:
    with closing(open_claims(url)) as claims:
        yield claims


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"


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


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_runs_once_and_is_done_when_it_is_completed(kind: str, store_url: StoreUrl) -> None:
    with opened(store_url(kind)) as claims:
        first = claims.claim("a")
        assert first.verdict == "run"
        assert claims.claim("a").verdict == "held"
        assert claims.claim("b").verdict == "run", "ids do not touch each other"
        assert claims.complete("a", first.token)
        assert claims.claim("a").verdict == "done"
        claims.forget("a")
        assert claims.claim("a").verdict == "run"


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_that_is_given_back_is_free_and_only_its_holder_can_do_so(
    kind: str, store_url: StoreUrl
) -> None:
    with opened(store_url(kind)) as claims:
        first = claims.claim("a")
        claims.release("a", "another")
        assert claims.claim("a").verdict == "held"
        claims.release("a", first.token)
        second = claims.claim("a")
        assert second.verdict == "run"
        assert second.token != first.token
        assert claims.complete("a", second.token)
        claims.release("a", second.token)
        assert claims.claim("a").verdict == "done", "what is done stays done"


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_of_one_that_died_is_free_when_its_lease_is_over(
    kind: str, store_url: StoreUrl
) -> None:
    with opened(store_url(kind) + "lease=0.05") as claims:
        dead = claims.claim("a")
        until(lambda: claims.claim("a").verdict == "run")
        assert dead.verdict == "run"


@pytest.mark.parametrize("kind", KINDS)
def test_one_that_outlived_its_lease_cannot_complete_what_another_holds(
    kind: str, store_url: StoreUrl
) -> None:
    url = store_url(kind)
    if kind == "memory":
        clock = iter(range(0, 10**6, 10))
        short = long = MemoryClaims(Terms(15), lambda: float(next(clock)))
    else:
        short, long = open_claims(url + "lease=0.05"), open_claims(url + "lease=600")  # type: ignore[assignment]
    late = short.claim("a")
    until(lambda: long.claim("a").verdict == "run")
    assert not short.complete("a", late.token)
    if kind != "memory":
        assert long.claim("a").verdict == "held", "the second one's claim is untouched"
        short.release("a", late.token)
        assert long.claim("a").verdict == "held"
    short.close()
    long.close()


@pytest.mark.parametrize("kind", KINDS)
def test_a_late_completion_counts_when_nobody_else_came(kind: str, store_url: StoreUrl) -> None:
    url = store_url(kind)
    if kind == "memory":
        clock = iter((0.0, 100.0, 101.0))
        claims: Claims = MemoryClaims(Terms(1), lambda: next(clock))
        late = claims.claim("a")
    else:
        with opened(url + "lease=0.001") as short:
            late = short.claim("a")
        claims = open_claims(url)
    assert claims.complete("a", late.token)
    assert claims.claim("a").verdict == "done"
    claims.close()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_done_is_remembered_for_as_long_as_asked(kind: str, store_url: StoreUrl) -> None:
    with opened(store_url(kind) + "keep=0.05") as claims:
        assert claims.complete("a", claims.claim("a").token)
        until(lambda: claims.claim("a").verdict == "run")


@pytest.mark.parametrize("kind", ["redis", "postgresql"])
def test_scopes_do_not_see_each_other(kind: str, store_url: StoreUrl) -> None:
    with opened(store_url(kind)) as one, opened(store_url(kind)) as other:
        assert one.claim("a").verdict == "run"
        assert other.claim("a").verdict == "run"


@pytest.mark.parametrize("kind", KINDS)
def test_threads_that_race_for_ids_win_each_once(kind: str, store_url: StoreUrl) -> None:
    with opened(store_url(kind)) as claims, ThreadPoolExecutor(4) as pool:
        ids = [str(n) for n in range(25)] * 4
        verdicts = list(pool.map(lambda one: claims.claim(one).verdict, ids))
    assert sorted(verdicts) == ["held"] * 75 + ["run"] * 25


@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgresql"])
def test_processes_that_race_for_ids_win_each_once(kind: str, store_url: StoreUrl) -> None:
    command = [sys.executable, str(PROGRAM), "race", store_url(kind), "0", "100"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers: list[subprocess.Popen[str]] = [subprocess.Popen(command, **pipes) for _ in "ab"]  # type: ignore[call-overload]
    for racer in racers:
        assert racer.stdout
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [racer.communicate(timeout=PATIENCE)[0].split() for racer in racers]
    assert sorted(map(int, won[0] + won[1])) == list(range(100))


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


@pytest.mark.parametrize("kind", DATABASES)
def test_what_is_over_is_taken_away_a_bounded_number_of_rows_at_a_time(
    kind: str, store_url: StoreUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallystick.runtime.claims.sql._BOUND", {"most": 3})
    monkeypatch.setattr("tallystick.runtime.claims.sql._PURGE_EVERY", 5)
    now = [0.0]
    with closing(open_claims(store_url(kind) + "lease=0.001", lambda: now[0])) as claims:
        assert isinstance(claims, SqlClaims)
        for n in range(4):
            claims.claim(str(n))

        def left() -> int:
            with claims._database.borrow() as connection:
                query = "SELECT count(*) FROM tallystick_claims WHERE scope = :scope"
                scope = {"scope": claims._terms.scope}
                return int(claims._database.run(connection, query, scope)[0][0])

        assert left() == 4
        now[0] = 1.0
        if kind == "sqlite":
            assert [claims.purge(), left(), claims.purge(), left()] == [3, 1, 1, 0]
        else:
            until(lambda: claims.purge() == 0 and left() == 0)  # other scopes' rows go as well


def test_memory_forgets_the_oldest_beyond_its_limit() -> None:
    claims = open_claims("memory:?limit=2")
    for one in "abc":
        claims.complete(one, claims.claim(one).token)
    assert [claims.claim(one).verdict for one in "cba"] == ["done", "done", "run"]


@pytest.mark.parametrize(
    ("kind", "url"),
    [
        ("redis", "redis://user:hush@127.0.0.1:1/0"),
        ("postgresql", "postgresql://user:hush@127.0.0.1:1/x"),
        ("sqlite", "sqlite:////nowhere/at/all.db"),
    ],
)
def test_a_store_that_is_away_is_one_clear_line_without_its_secret(kind: str, url: str) -> None:
    with opened(url) as claims, pytest.raises(StoreUnavailable) as caught:
        claims.claim("a")
    text = str(caught.value) + caught.value.hint + repr(caught.value)
    assert kind in text
    assert "hush" not in text
    assert "\n" not in text


@pytest.mark.parametrize(
    "url",
    ["", "nonsense", "mysql://x", "redis:", "sqlite:///", "sqlite:///:memory:", "sqlite://host/x",
     "memory:?keep=x", "memory:?lease=0", "memory:?lease=nan", "memory:?colour=red"],
)  # fmt: skip
def test_a_wrong_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_claims(url)
    assert caught.value.code == "store_url"


def test_a_store_url_shows_no_secret_and_keeps_what_is_not_ours() -> None:
    url = read_store_url(
        "postgresql://me:hush@host:5/x?lease=3&sslmode=require", ("postgresql",), ("lease",)
    )
    assert "hush" not in str(url) + repr(url)
    assert url.target == "postgresql://me:hush@host:5/x?sslmode=require"
    assert url.number("lease", 1) == 3


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

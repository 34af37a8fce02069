"""Claims keep one law on every store: one at a time, never again once done, free after a crash."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from tests.runtime.claiming import DATABASES, PATIENCE, PROGRAM, StoreUrl, opened, until

from tallystick.core.errors import UsageError
from tallystick.runtime.claims import Claims, Terms, open_claims
from tallystick.runtime.claims.memory import MemoryClaims
from tallystick.runtime.claims.sql import SqlClaims
from tallystick.runtime.store_url import StoreUnavailable, read_store_url

KINDS = ["memory", "sqlite", "redis", "postgresql"]


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


def test_a_completion_that_the_client_repeats_is_no_loss_to_another(store_url: StoreUrl) -> None:
    with opened(store_url("redis")) as claims:
        first = claims.claim("a")
        assert [claims.complete("a", first.token) for _ in range(2)] == [True, True]
        assert not claims.complete("a", "another")
        assert claims.claim("a").verdict == "done"


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
     "memory:?keep=x", "memory:?lease=0", "memory:?lease=nan", "memory:?keep=1e300",
     "memory:?colour=red"],
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

"""Hostile input: a clear answer, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Coroutine
from typing import Any

import pytest

from tallystick.core.errors import Unavailable
from tallystick.server.examine import Job, Report
from tallystick.server.pool import BUDGET_SECONDS, Busy, Pool
from tests.server.serving import ORDERS, Served, encode

JUDGE = f"/compatibility/subjects/{encode(ORDERS)}/versions/latest?verbose=true"
MIB = 1024 * 1024


def wrap(schema: Any) -> bytes:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    return json.dumps({"schema": text}).encode()


def nested(opening: str, closing: str, depth: int) -> bytes:
    return wrap(opening * depth + "{}" + closing * depth)


def tower(levels: int) -> dict[str, Any]:
    """Give a schema whose expansion doubles with every level."""
    steps: dict[str, Any] = {
        f"l{at}": {"allOf": [{"$ref": f"#/definitions/l{at + 1}"}] * 2} for at in range(levels)
    }
    return {
        "definitions": {**steps, f"l{levels}": {"type": "object"}},
        "$ref": "#/definitions/l0",
    }


REFUSED = {
    "longer than a mebibyte": (b" " * (MIB + 1), "larger than"),
    "a mebibyte of noise": (b"x" * MIB, "expecting value"),
    "a mebibyte of brackets": (b"[" * MIB, "nested deeper"),
    "a mebibyte of empty lists": (b"[" + b"[]," * 340_000 + b"[]]", "schema"),
    "a schema nested past the bound": (nested('{"not":', "}", 5000), "nested deeper"),
    "a schema nested up to the bound": (nested('{"allOf":[', "]}", 199), "ecursion"),
    "a remote reference": (wrap({"$ref": "http://127.0.0.1:1/a.json"}), "never fetched"),
    "a reference to a file": (wrap({"$ref": "file:///etc/passwd"}), "never read"),
    "a reference upwards": (wrap({"$ref": "../../../../etc/passwd"}), "points to nothing"),
    "a reference in an $id": (
        wrap({"$id": "http://127.0.0.1:1/", "allOf": [{"$ref": "a.json"}]}),
        "points to nothing",
    ),
    "a pattern too large to compile": (
        wrap({"pattern": "((a{1,1000}){1,1000}){1,1000}"}),
        "regex",
    ),
    "a number of many digits": (wrap('{"maximum": ' + "9" * 400_000 + "}"), "too many digits"),
    "a lone surrogate": (wrap('{"const": "\\ud800"}'), "surrogate"),
    "a compressed body": (b"\x1f\x8b\x08\x00", "not UTF-8"),
}
ANSWERED = {
    "catastrophic patterns": {
        "type": "object",
        "properties": {
            "note": {"type": "string", "pattern": "^(a+)+$"},
            "a": {"pattern": "(x+x+)+y"},
            "b": {"pattern": r"^(?=(a+)\1+$)((a|aa)+)$"},
        },
    },
    "a list that can never be built": {
        "type": "object",
        "properties": {"lines": {"type": "array", "minItems": 10**9, "uniqueItems": True}},
    },
    "two thousand alternatives": {"anyOf": [{"required": [f"k{at}"]} for at in range(2000)]},
    "references in a circle": {
        "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
        "$ref": "#/definitions/a",
    },
    "a tower of doubled references": tower(60),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_in_clear_words(server: Served, name: str) -> None:
    body, words = REFUSED[name]
    reply = server.ask("POST", JUDGE, body)
    assert reply.status == 422
    assert reply.code in (42201, 42209)
    message = reply.value["message"]
    assert words in message or "took more than" in message
    assert len(reply.body) < 1000


@pytest.mark.parametrize("name", ANSWERED)
def test_what_is_hard_to_judge_is_answered(server: Served, name: str) -> None:
    reply = server.ask("POST", JUDGE, wrap(ANSWERED[name]))
    assert reply.status in (200, 422)
    assert reply.value.get("is_compatible") is False or "took more than" in str(reply.value)


@pytest.mark.parametrize(
    "path",
    [
        "/subjects/../config",
        "/../../etc/passwd",
        "/subjects/..%2f..%2fetc%2fpasswd/versions",
        "/subjects/%2e%2e/versions",
        "/subjects/%00/versions",
        "/subjects/%ff%fe/versions",
        "/subjects/%/versions",
        "/subjects/" + "a" * 20_000 + "/versions",
        "/catalog/..%2f/compare",
        "//subjects",
        "/subjects//versions",
        "/schemas/ids/1%2Fschema",
        "/page.html",
        "/static/../registry.json",
        "/registry.json",
        "/ids.lock",
    ],
)
def test_no_path_leads_to_a_file(server: Served, path: str) -> None:
    reply = server.get(path)
    assert reply.status in (404, 405)
    assert set(reply.value) == {"error_code", "message"}


def test_a_remote_reference_is_never_called(server: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as trap:
        address = f"http://127.0.0.1:{trap.getsockname()[1]}/schema.json"
        for schema in (
            {"$ref": address},
            {"$schema": address},
            {"$id": address, "allOf": [{"$ref": "other.json"}]},
            {"properties": {"a": {"$ref": f"{address}#/definitions/a"}}},
        ):
            assert server.ask("POST", JUDGE, wrap(schema)).code == 42201
        trap.setblocking(False)
        with pytest.raises(BlockingIOError):
            trap.accept()


def test_a_bare_control_character_in_the_request_is_refused(server: Served) -> None:
    assert server.get("/subjects?subjectPrefix=%0d%0aX-Injected:1").value == []


def test_a_candidate_that_takes_its_whole_time_holds_up_no_one(server: Served) -> None:
    replies: list[int] = []
    slow = [
        threading.Thread(
            target=lambda: replies.append(server.ask("POST", JUDGE, wrap(tower(60))).status)
        )
        for _ in range(3)
    ]
    for thread in slow:
        thread.start()
    meanwhile = 0
    while not replies:
        assert server.get(f"/subjects/{encode(ORDERS)}/versions/latest").status == 200
        meanwhile += 1
    for thread in slow:
        thread.join()
    assert meanwhile > 20, "reads went on while the candidates were being judged"
    assert set(replies) <= {200, 422}


def test_the_budget_leaves_room_for_an_answer_within_a_second() -> None:
    assert BUDGET_SECONDS < 1


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def job(schema: Any = True) -> Job:
    return Job(wrap(schema), ("strict",), "a.json", ('{"type": "string"}',))


def test_a_worker_over_its_budget_is_replaced_and_the_next_job_is_done() -> None:
    async def work() -> tuple[Report, int, Report]:
        pool = Pool(budget=0.0)  # no answer is that quick
        await pool.open()
        try:
            late = await pool.examine(job(tower(60)))
            count = pool.timeouts
            pool.budget = 30.0
            return late, count, await pool.examine(job())
        finally:
            await pool.close()

    late, timeouts, then = run(work())
    assert "took more than 0.0 seconds" in late.fault
    assert timeouts == 1
    assert then.verdict == "compatible"


def test_a_worker_that_dies_is_the_candidates_fault_and_is_replaced() -> None:
    async def work() -> tuple[Report, Report]:
        pool = Pool(budget=30.0)
        await pool.open()
        try:
            for process in list(pool._alive):
                process.kill()
            return await pool.examine(job()), await pool.examine(job())
        finally:
            await pool.close()

    first, _ = run(work())
    assert "needs too much memory" in first.fault


def test_too_many_candidates_at_once_are_turned_away() -> None:
    async def work() -> None:
        pool = Pool(budget=30.0)
        pool.waiting = 10_000
        await pool.examine(job())

    with pytest.raises(Busy):
        run(work())


def test_a_candidate_for_which_no_worker_comes_free_is_turned_away() -> None:
    async def work() -> int:
        pool = Pool(patience=0.0)  # never opened: there is no worker
        with pytest.raises(Busy):
            await pool.examine(job())
        return pool.waiting

    assert run(work()) == 0


def test_a_worker_that_does_not_come_up_is_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallystick.server.pool._AGAIN_SECONDS", 0.0)

    async def work() -> Report:
        pool = Pool(budget=30.0, patience=60.0)
        start = pool._start
        tries: list[int] = []

        async def fail_twice() -> None:
            tries.append(1)
            if len(tries) < 3:
                raise Unavailable("a worker process did not start", code="server.worker")
            await start()

        monkeypatch.setattr(pool, "_start", fail_twice)
        pool._start_soon()
        try:
            return await pool.examine(job())
        finally:
            await pool.close()

    assert run(work()).verdict == "compatible"


def test_no_worker_outlives_the_pool() -> None:
    async def work() -> list[int | None]:
        pool = Pool()
        await pool.open()
        processes = list(pool._alive)
        await pool.close()
        return [process.returncode for process in processes]

    assert all(code is not None for code in run(work()))

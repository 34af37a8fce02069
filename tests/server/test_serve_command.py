"""`tally schema serve` as a person uses it."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.serving import ORDERS, TALLY, Served, start, stop, write_registry


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_registry(tmp_path / "registry")
    return tmp_path / "registry"


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    served = start(folder, "--reload-seconds", "0.02")
    yield served
    stop(served)


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TALLY, "schema", "serve", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_it_listens_on_loopback_only(served: Served) -> None:
    assert served.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--compatibility", "banana"), "unknown compatibility level 'banana'"),
        (("--addr", "localhost:http"), "'http' is not a port number"),
        (("--port", "70000"), "is not a port number"),
        (("--reload-seconds", "-1"), "is not a time from 0"),
        (("--registry", "/nowhere/registry.json"), "No such file"),
    ],
)
def test_a_bad_request_is_one_clear_line_and_exit_2(
    folder: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = command("--registry", str(folder), *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_taken_port_is_one_clear_line_and_exit_2(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = command("--registry", str(folder), "--addr", f":{port}")
    assert done.returncode == 2
    assert f"127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_registry_is_not_served(folder: Path) -> None:
    (folder / "any.json").write_text('{"type": "strnig"}')
    done = command("--registry", str(folder), "--port", "0")
    assert done.returncode == 2
    assert "any.json" in done.stderr


def test_the_lock_is_written_once_and_then_grows_at_its_end(folder: Path) -> None:
    first = command("--registry", str(folder), "--write-ids-lock")
    assert first.returncode == 0
    lock = folder / "ids.lock"
    before = json.loads(lock.read_bytes())["ids"]
    assert list(before.values()) == list(range(1, 7))
    manifest = json.loads((folder / "registry.json").read_bytes())
    manifest["schemas"] = [row for row in manifest["schemas"] if row["urn"] != ORDERS]
    manifest["schemas"].append({"urn": "urn:aaa", "schema": "any.json"})
    (folder / "registry.json").write_text(json.dumps(manifest, ensure_ascii=False))
    assert command("--registry", str(folder), "--write-ids-lock").returncode == 0
    assert json.loads(lock.read_bytes())["ids"] == {**before, "urn:aaa": 7}


def wait_for(served: Served, status: str) -> dict[str, object]:
    """Ask until the health is as wanted; the server looks at its files fifty times a second."""
    health: dict[str, object] = {}
    for _ in range(5000):
        health = served.get("/healthz").value
        if health["status"] == status:
            return health
    pytest.fail(f"the server never became {status}: {health}", pytrace=False)


def test_a_broken_change_is_told_and_the_last_good_registry_is_served(served: Served) -> None:
    good = (served.folder / "any.json").read_text()
    (served.folder / "any.json").write_text("{")
    health = wait_for(served, "stale")
    assert "any.json" in str(health["error"])
    assert served.get("/catalog.json").value["stale"] == health["error"]
    assert "tallystick_registry_stale 1" in served.get("/metrics").body.decode()
    assert len(served.get("/subjects").value) == 6
    (served.folder / "any.json").write_text(good)
    assert wait_for(served, "ok")["error"] == ""
    log = (served.folder / "stderr.txt").read_text()
    assert "the registry files are invalid; the server keeps the last valid registry" in log


def test_every_process_ends_with_the_server(folder: Path) -> None:
    served = start(folder)
    children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children")
    workers = children.read_text().split()
    assert workers
    assert stop(served) == 0
    assert not any(Path(f"/proc/{worker}/cmdline").exists() for worker in workers)


def test_workers_end_when_the_server_is_killed(folder: Path) -> None:
    served = start(folder)
    children = Path(f"/proc/{served.process.pid}/task/{served.process.pid}/children")
    workers = [os.pidfd_open(int(worker)) for worker in children.read_text().split()]
    assert workers
    served.process.kill()
    served.process.wait()
    assert served.process.stdout is not None
    served.process.stdout.close()
    try:
        for worker in workers:
            assert select.select([worker], [], [], 30)[0], "the worker still runs"
    finally:
        for worker in workers:
            os.close(worker)

"""OpenLineage events: every run tells its inputs and tables, and a deaf server fails no run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tallystick.cli import main
from tallystick.core.errors import Unavailable
from tallystick.pipeline.lineage import open_lineage
from tallystick.pipeline.tables import TABLES

MANIFEST = {
    "key": "k", "folder": "runs/k", "skipped": False, "figures": {"messages": 3},
    "versions": {"pyspark": "4.3.0"},
    "tables": {"messages": {"rows": 3, "files": []}, "deliveries": {"rows": 2, "files": []}},
}  # fmt: skip
REGISTRY = Path(__file__).parents[2] / "examples" / "registry" / "registry.json"


def read_events(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the words of a run of one file; Spark is left out, its manifest is `MANIFEST`."""
    source = tmp_path / "orders.jsonl"
    source.write_text("{}\n")
    monkeypatch.setattr("tallystick.pipeline.run.run", lambda *_, **__: MANIFEST)
    monkeypatch.setattr("tallystick.cli.pipeline._page", lambda *_: 0)
    lake = str(tmp_path / "lake")
    return [
        "pipeline", "run", "--input", str(source), "--registry", str(REGISTRY), "--out", lake,
    ]  # fmt: skip


def test_a_run_tells_its_inputs_and_its_tables(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "lineage.jsonl"
    assert main([*words, "--lineage", str(file), "--lineage-namespace", "shop"]) == 0
    start, complete = read_events(file)
    assert [start["eventType"], complete["eventType"]] == ["START", "COMPLETE"]
    assert start["run"]["runId"] == complete["run"]["runId"]
    for event in (start, complete):
        assert (event["job"]["namespace"], event["job"]["name"]) == ("shop", "tally pipeline run")
        assert [(one["namespace"], one["name"]) for one in event["inputs"]] == [
            ("file", str(tmp_path / "orders.jsonl"))
        ]
    assert start.get("outputs", []) == []
    messages, deliveries = complete["outputs"]
    assert messages["name"] == str(tmp_path / "lake" / "messages")
    assert messages["outputFacets"]["outputStatistics"]["rowCount"] == 3
    columns = [one["name"] for one in deliveries["facets"]["schema"]["fields"]]
    assert columns == TABLES["deliveries"].schema.names
    assert complete["run"]["facets"]["processing_engine"]["version"] == "4.3.0"


def test_the_events_of_another_run_are_appended(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "lineage.jsonl"
    for _ in range(2):
        assert main([*words, "--lineage", str(file)]) == 0
    events = read_events(file)
    assert len(events) == 4
    assert len({event["run"]["runId"] for event in events}) == 2


def test_a_failed_run_tells_why(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise Unavailable("the disk is full", code="disk")

    monkeypatch.setattr("tallystick.pipeline.run.run", fail)
    file = tmp_path / "lineage.jsonl"
    assert main([*words, "--lineage", str(file)]) == 2
    start, failed = read_events(file)
    assert (start["eventType"], failed["eventType"]) == ("START", "FAIL")
    assert failed["run"]["facets"]["errorMessage"]["message"] == "the disk is full"


def test_the_partitions_of_a_topic_are_one_dataset(tmp_path: Path) -> None:
    sources = ["kafka://b:9092/orders/0", "kafka://b:9092/orders/1", "kafka://b:9092/a.b/0"]
    lineage = open_lineage(
        str(tmp_path / "f"), sources, run="r", namespace="n", now=lambda: "2026-11-17T00:00:00Z"
    )
    assert [(one.namespace, one.name) for one in lineage.inputs] == [
        ("kafka://b:9092", "orders"),
        ("kafka://b:9092", "a.b"),
    ]


class Server(HTTPServer):
    """A server that keeps what it was sent."""

    posts: list[tuple[str, str | None, dict[str, Any]]]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server: Any = self.server
        server.posts.append((self.path, self.headers.get("Authorization"), body))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        return


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as server:
        server.posts = []
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_server_gets_the_events_with_the_key(
    words: list[str], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "secret")
    assert main([*words, "--lineage", f"http://127.0.0.1:{server.server_port}"]) == 0
    paths, keys, events = zip(*server.posts, strict=True)
    assert set(paths) == {"/api/v1/lineage"}
    assert set(keys) == {"Bearer secret"}
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]


@pytest.mark.parametrize("target", ["http://127.0.0.1:9", "/proc/nothing/lineage.jsonl"])
def test_an_event_that_is_not_delivered_is_a_warning(
    words: list[str], target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--lineage", target]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "OpenLineage" in line]
    assert [line.split(": ")[2:4] for line in lines] == [
        ["OpenLineage event not delivered", "START"],
        ["OpenLineage event not delivered", "COMPLETE"],
    ]


@pytest.mark.parametrize("target", ["ftp://host/x", "http://"])
def test_a_target_that_is_neither_a_server_nor_a_file_is_refused_before_the_run(
    words: list[str], target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--lineage", target]) == 2
    assert "is neither a URL nor a file" in capsys.readouterr().err


def test_a_run_with_nothing_to_do_sends_no_events(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace  # noqa: PLC0415

    from tallystick.pipeline import run  # noqa: PLC0415

    make = run.make_plan
    monkeypatch.setattr(run, "make_plan", lambda *args: replace(make(*args), is_current=True))
    file = tmp_path / "lineage.jsonl"
    assert main([*words, "--lineage", str(file)]) == 0
    assert not file.exists()
    assert main([*words, "--lineage", str(file), "--force"]) == 0
    assert len(read_events(file)) == 2

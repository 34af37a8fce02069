"""How subjects start, build and speak: the part of each that is not the contract."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tallystick.suites.subject import ProcessSubject

FOLDER = Path(__file__).parents[2] / "subjects"
MESSAGE_OPERATIONS = {
    "canonical", "decode", "reencode", "make", "retry", "poison_record", "dead_letter", "redrive",
}  # fmt: skip
OWN = ("tallystick-go", "tallystick-node", "tallystick-java")
TOOLS = {
    "tallystick-go": "go",
    "tallystick-node": "node",
    "tallystick-java": "java",
    "babelqueue": "python3",
    "cloudevents-python": "python3",
    "cloudevents-pydantic": "python3",
    "cloudevents-node": "node",
    "cloudevents-go": "go",
    "cloudevents-java": "java",
}
FAKE = """#!/bin/sh
set -eu
name=fake
. {folder}/build.sh
build() {{ echo built >>"{count}"; {act}; echo "made" >"$1/result"; }}
build_once "$0"
cat "$built/result"
"""


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _speak(name: str, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Send raw UTF-8 lines to a subject and read its answers to the end."""
    lines = "".join(json.dumps(request, ensure_ascii=False) + "\n" for request in requests)
    done = subprocess.run(
        [FOLDER / name / "start"],
        input=lines.encode(),
        capture_output=True,
        timeout=600,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("name", [*OWN, "babelqueue", "tallystick"])
def test_a_subject_says_who_it_is_and_ends_at_the_end_of_its_input(name: str) -> None:
    (identity,) = _speak(name, {"op": "start", "protocol": 1})
    assert identity["protocol"] == 1
    assert identity["name"] == name
    assert identity["library"]
    assert set(identity["operations"]) >= MESSAGE_OPERATIONS


@pytest.mark.parametrize("name", [*OWN, "babelqueue"])
def test_a_line_ends_at_a_line_feed_only(name: str) -> None:
    given = {"urn": "urn:\u2028\u2029\x85", "queue": "q", "data_base64": _base64("{}")}
    request = {"op": "run", "id": 2**53, "case": "x", "operation": "make", "given": given}
    (answer,) = _speak(name, request, {"op": "stop"})
    assert answer["id"] == 2**53
    made = json.loads(base64.b64decode(answer["result"]["bytes_base64"]))
    assert made["job"] == "urn:\u2028\u2029\x85"


@pytest.mark.parametrize("name", [*OWN, "babelqueue"])
def test_what_is_not_offered_is_declared_with_a_reason(name: str) -> None:
    request = {"op": "run", "id": 1, "case": "x", "operation": "gate", "given": {}}
    (answer,) = _speak(name, request, {"op": "stop"})
    assert answer["unsupported"]


@pytest.mark.parametrize(("name", "tool"), TOOLS.items())
def test_a_missing_toolchain_is_said_in_one_line(name: str, tool: str, tmp_path: Path) -> None:
    dirname = shutil.which("dirname")
    assert dirname
    (tmp_path / "dirname").symlink_to(dirname)
    done = subprocess.run(
        [FOLDER / name / "start"],
        env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
        input=b"",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    assert f"`{tool}` is not on the PATH" in line


def _fake(tmp_path: Path, act: str) -> tuple[list[str], dict[str, str]]:
    script = tmp_path / "start"
    script.write_text(FAKE.format(folder=FOLDER, count=tmp_path / "count", act=act))
    script.chmod(0o755)
    path = Path(shutil.which("sh") or "/bin/sh").parent
    return [str(script)], {"PATH": f"{path}:/usr/bin:/bin", "XDG_CACHE_HOME": str(tmp_path)}


def test_starts_at_the_same_time_share_one_build(tmp_path: Path) -> None:
    command, env = _fake(tmp_path, "sleep 0.2")

    def start(_: int) -> str:
        done = subprocess.run(command, env=env, capture_output=True, timeout=60, check=True)
        return done.stdout.decode()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(start, range(4))) == {"made\n"}
    assert (tmp_path / "count").read_text() == "built\n"


def test_a_failed_build_leaves_nothing_to_run(tmp_path: Path) -> None:
    command, env = _fake(tmp_path, "return 1")
    done = subprocess.run(command, env=env, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"the build failed" in done.stderr
    assert [path for path in (tmp_path / "tallystick/subjects").iterdir() if path.is_dir()] == []


def test_babelqueue_reports_its_own_bytes_as_they_are(babelqueue: ProcessSubject) -> None:
    meta = '{"id":"i","queue":"q","lang":"go","schema_version":1,"created_at":1}'
    body = f'{{"data":{{"b":1.0,"a":2}},"job":"urn:x","trace_id":"t","meta":{meta},"attempts":0}}'
    body = body.replace('"attempts":0', '"attempts":0,"extra":1e400')
    answer = babelqueue.call("x", "canonical", {"body_base64": _base64(body)})
    assert answer.result is not None
    written = base64.b64decode(answer.result["bytes_base64"]).decode()
    assert written == body.replace("1e400", "Infinity")


def test_babelqueue_rejects_what_its_consumer_does_not_accept(babelqueue: ProcessSubject) -> None:
    answer = babelqueue.call(
        "x", "canonical", {"body_base64": _base64('{"job":"urn:x","data":{}}')}
    )
    assert answer.result == {"rejected": "accepts() says no"}


def test_babelqueue_names_what_it_tolerated(babelqueue: ProcessSubject) -> None:
    body = '{"job":"urn:x","urn":"urn:y","timestamp":1,"meta":{"ts":1}}'
    answer = babelqueue.call("x", "decode", {"body_base64": _base64(body)})
    assert answer.result is not None
    assert set(answer.result["warnings"]) == {"/urn", "/timestamp", "/meta/ts"}

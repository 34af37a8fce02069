"""`tally broker` and the interop scripts, on Redis: the quickest of them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tallystick.brokers import servers
from tallystick.brokers.servers import NAMES, STORES
from tallystick.brokers.servers.places import Place, cache_folder
from tallystick.brokers.servers.ports import choose_ports
from tallystick.brokers.servers.process import find_marked, identify
from tallystick.brokers.servers.state import read_state, write_state
from tallystick.cli import main
from tallystick.cli.broker import _Bar
from tallystick.core.errors import Unavailable

INTEROP: Final = Path(__file__).parents[2] / "interop"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Keep the brokers of this test apart from all others, and end them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    yield tmp_path
    assert main(["broker", "down", "redis", "--wipe"]) == 0


def tally(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    capsys.readouterr()
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_list_names_every_broker(capsys: pytest.CaptureFixture[str]) -> None:
    code, found = tally(capsys, "broker", "list")
    assert code == 0
    assert tuple(row["name"] for row in found["brokers"]) == NAMES
    assert tuple(row["name"] for row in found["brokers"] if row["kind"] == "store") == STORES
    assert main(["broker", "list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(NAMES)


def test_up_status_down_tell_one_story(capsys: pytest.CaptureFixture[str]) -> None:
    assert tally(capsys, "broker", "status", "redis")[0] == 1
    code, found = tally(capsys, "broker", "up", "redis", "redis")
    assert (code, len(found["brokers"])) == (0, 1)
    one = found["brokers"][0]
    assert one["urls"] == {"redis": f"redis://127.0.0.1:{one['ports']['redis']}/0"}
    code, found = tally(capsys, "broker", "status")
    assert (code, found["brokers"]) == (0, [one])
    assert main(["broker", "status"]) == 0
    assert one["urls"]["redis"] in capsys.readouterr().out
    os.kill(one["pid"], signal.SIGKILL)
    while tally(capsys, "broker", "status", "redis")[1]["brokers"][0]["state"] == "running":
        pass
    assert tally(capsys, "broker", "status", "redis")[1]["brokers"][0]["state"] != "running"
    code, found = tally(capsys, "broker", "down", "redis")
    assert (code, found) == (0, {"brokers": [{"name": "redis", "killed": False}]})


def test_a_wrong_name_does_nothing_at_all(capsys: pytest.CaptureFixture[str], state: Path) -> None:
    assert main(["broker", "up", "redis", "mosquitto"]) == 2
    assert "mosquitto" in capsys.readouterr().err
    assert list(state.iterdir()) == []


def test_one_that_fails_does_not_stop_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_for_kafka(name: str, **options: Any) -> Any:
        if name == "kafka":
            raise Unavailable("no kafka today", code="test", hint="tomorrow")
        return servers.up(name, **options)

    monkeypatch.setattr("tallystick.cli.broker.up", fail_for_kafka)
    assert main(["broker", "up", "kafka", "redis"]) == 2
    shown, said = capsys.readouterr()
    assert "no kafka today" in said
    assert "tomorrow" in said
    assert shown.startswith("redis is up: redis://127.0.0.1:")


def test_a_port_in_use_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    port = choose_ports(("any",), {})["any"]
    with socket.create_server(("127.0.0.1", port)):
        code = main(["broker", "up", "redis", "--port", str(port)])
    assert code == 2
    assert f"port {port} is in use" in capsys.readouterr().err


def script(state: Path, verb: str, *words: str, shell: str = "sh") -> int:
    """Run one of Redis' scripts with nothing but a PATH (and our folders)."""
    environment = {
        "PATH": os.environ["PATH"],
        "XDG_STATE_HOME": str(state),
        "XDG_CACHE_HOME": str(cache_folder().parents[1]),
    }
    command = [shell, str(INTEROP / "redis/broker" / verb), *words]
    done = subprocess.run(command, env=environment, cwd=state, capture_output=True, check=False)
    return done.returncode


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_scripts_return_when_the_work_is_done(state: Path, shell: str) -> None:
    port = choose_ports(("any",), {})["any"]
    assert script(state, "start", "--port", str(port), shell=shell) == 0
    for _ in range(100):  # IOP-9
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    assert script(state, "start", shell=shell) == 0, "it is up (IOP-12)"
    assert script(state, "stop", shell=shell) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=5)
    assert script(state, "stop", shell=shell) == 0, "it is down (IOP-15)"


def test_a_start_that_fails_exits_with_one_and_leaves_nothing(state: Path) -> None:
    port = choose_ports(("any",), {})["any"]
    with socket.create_server(("127.0.0.1", port)):
        assert script(state, "start", "--port", str(port)) == 1
    assert script(state, "start", "--limit", "0") == 1, "not up in time (IOP-11)"
    assert find_marked(str(state / "tallystick/brokers/redis")) == []


def test_a_broker_that_will_not_stop_in_time_exits_with_one(state: Path) -> None:
    assert script(state, "start") == 0
    place = Place(state / "tallystick/brokers/redis")
    program = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True)"
    command = [sys.executable, "-c", f"{program}; time.sleep(600)"]
    found = read_state(place)
    assert found
    with subprocess.Popen(command, stdout=subprocess.PIPE) as stubborn:
        assert stubborn.stdout
        stubborn.stdout.readline()
        write_state(place, msgspec.structs.replace(found, identity=identify(stubborn.pid)))
        assert script(state, "stop", "--limit", "0.5") == 1, "IOP-14"
        assert stubborn.wait(10) == -signal.SIGKILL
    write_state(place, found)
    assert script(state, "stop") == 0


@pytest.mark.parametrize("name", [name for name in NAMES if name not in STORES])
def test_every_broker_has_its_scripts(name: str) -> None:
    for verb in ("start", "stop"):
        script = INTEROP / name / "broker" / verb
        assert os.access(script, os.X_OK)
        subprocess.run(["sh", "-n", script], check=True)


def test_a_download_is_drawn_in_megabytes_for_a_person(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with _Bar() as bar:
        for done in (0, 25_000_000, 49_500_000):
            bar.fetched("kafka 4.3.1", done, 49_500_000)
        bar.say("starting kafka")
    shown = capsys.readouterr().err
    assert "49/50 MB  kafka 4.3.1" in shown
    assert "starting kafka" in shown

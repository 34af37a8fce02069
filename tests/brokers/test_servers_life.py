"""Start, crash, stop: laws that hold for any broker, shown on a small one that can misbehave."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.brokers.fake_server import ANSWER, FAKE, serve

from tallystick.brokers.servers import Running, down, life, running, status, up
from tallystick.brokers.servers.places import Place
from tallystick.brokers.servers.ports import is_free
from tallystick.brokers.servers.process import MARK, find_marked, identify, is_alive
from tallystick.brokers.servers.state import read_state, write_state
from tallystick.core.errors import Unavailable

pytestmark = pytest.mark.usefixtures("fake")


def starts(one: Running) -> int:
    return len((one.data_dir / "started").read_text())


def test_up_returns_when_it_answers(tmp_path: Path) -> None:
    one = up("fake", home=tmp_path)
    assert one.url == f"fake://127.0.0.1:{one.ports['main']}"
    assert (one.data_dir / "etc/fake.conf").read_text() == f"port={one.ports['main']}\n"
    with socket.create_connection((one.host, one.ports["main"]), timeout=5) as peer:
        peer.sendall(b"PING\n")
        assert peer.recv(4) == b"PONG"
    assert status("fake", home=tmp_path).state == "running"


def test_down_leaves_no_process_no_port_and_no_state(tmp_path: Path) -> None:
    one = up("fake", home=tmp_path)
    assert down("fake", home=tmp_path)
    assert not is_alive(one.identity)
    assert all(map(is_free, one.ports.values()))
    assert sorted(path.name for path in (tmp_path / "fake").iterdir()) == [
        "data", "log", "ports.json",
    ]  # fmt: skip
    assert status("fake", home=tmp_path).state == "down"
    assert down("fake", home=tmp_path), "a second stop is a success (IOP-15)"


def test_down_with_wipe_leaves_nothing_at_all(tmp_path: Path) -> None:
    up("fake", home=tmp_path)
    assert down("fake", home=tmp_path, wipe=True)
    assert list(tmp_path.iterdir()) == []


def test_a_broker_that_runs_is_not_started_twice(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: up("fake", home=tmp_path), range(4)))
    assert len({one.pid for one in found}) == 1
    assert starts(found[0]) == 1


def test_data_and_ports_stay_until_fresh_ones_are_asked_for(tmp_path: Path) -> None:
    first = up("fake", home=tmp_path)
    down("fake", home=tmp_path)
    second = up("fake", home=tmp_path)
    assert (second.ports, starts(second)) == (first.ports, 2)
    third = up("fake", home=tmp_path, fresh=True)
    assert third.pid != second.pid
    assert not is_alive(second.identity)
    assert starts(third) == 1


def test_a_broker_that_was_killed_is_dead_and_comes_back_on_its_ports(tmp_path: Path) -> None:
    first = up("fake", home=tmp_path)
    os.kill(first.pid, signal.SIGKILL)
    second = up("fake", home=tmp_path)  # at once: the kernel may still be burying the first
    assert second.pid != first.pid
    assert second.ports == first.ports


def test_a_broker_outlives_the_process_that_started_it(tmp_path: Path) -> None:
    program = (
        "import sys, time, pathlib; sys.path[:0] = sys.argv[2:]\n"
        "from tallystick.brokers.servers import life, up\n"
        "from tests.brokers.fake_server import FAKE\n"
        "life.find_server = lambda name: FAKE\n"
        "print(up('fake', home=pathlib.Path(sys.argv[1])).pid, flush=True); time.sleep(600)"
    )
    root = str(Path(__file__).parents[2])
    command = [sys.executable, "-c", program, str(tmp_path), root]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout
        pid = int(starter.stdout.readline())
        starter.kill()
    seen = status("fake", home=tmp_path)
    assert (seen.state, seen.found and seen.found.pid) == ("running", pid)
    assert down("fake", home=tmp_path)
    assert status("fake", home=tmp_path).state == "down"


def test_a_reused_process_number_is_not_taken_for_the_broker(tmp_path: Path) -> None:
    one = up("fake", home=tmp_path)
    down("fake", home=tmp_path)
    place = Place(tmp_path / "fake")
    me = identify(os.getpid())
    for stale in (
        msgspec.structs.replace(me, started=me.started - 1),
        msgspec.structs.replace(me, boot="another"),
    ):
        write_state(place, msgspec.structs.replace(one, identity=stale, ready=True))
        assert status("fake", home=tmp_path).state == "dead"
        assert down("fake", home=tmp_path)
        assert read_state(place) is None
    write_state(place, msgspec.structs.replace(one, identity=stale, ready=True))
    assert up("fake", home=tmp_path).pid != os.getpid()


def test_what_a_lost_broker_left_running_is_found_by_its_mark(tmp_path: Path) -> None:
    environment = {**os.environ, MARK: str(tmp_path / "fake")}
    with subprocess.Popen(["sleep", "600"], env=environment) as stray:
        left = identify(stray.pid)
        up("fake", home=tmp_path)
        assert not is_alive(left)


def test_a_broken_state_file_is_said_and_not_guessed_at(tmp_path: Path) -> None:
    place = Place(tmp_path / "fake")
    place.folder.mkdir()
    place.state.write_text('{"name": "fa')
    with pytest.raises(Unavailable) as caught:
        up("fake", home=tmp_path)
    assert caught.value.code == "state"
    place.state.unlink()


def test_a_program_is_asked_to_end_by_the_signal_it_wants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parting = ANSWER.replace(
        "while True",
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGINT, signal.SIG_DFL)\n"  # a job in the background ignores it
        "while True",
    )
    command = ("$python", "-S", "-c", parting, *FAKE.command[4:])
    wary = replace(FAKE, command=command, farewell=signal.SIGINT, tidies=True)
    serve(monkeypatch, wary)
    up("fake", home=tmp_path)
    assert down("fake", home=tmp_path)
    assert life._parting(wary) == life.LIMIT


def test_what_is_half_started_ends_with_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("tallystick.brokers.servers.launch.answers", interrupt)
    with pytest.raises(KeyboardInterrupt):
        up("fake", home=tmp_path)
    assert find_marked(str(tmp_path / "fake")) == []


def test_one_that_will_not_go_is_killed_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, replace(FAKE, command=(*FAKE.command, "stubborn")))
    one = up("fake", home=tmp_path)
    assert not down("fake", home=tmp_path, limit=0.2)
    assert not is_alive(one.identity)


def test_one_that_is_stopped_by_a_signal_can_still_be_taken_down(tmp_path: Path) -> None:
    one = up("fake", home=tmp_path)
    os.kill(one.pid, signal.SIGSTOP)
    assert down("fake", home=tmp_path)
    assert not is_alive(one.identity)


def test_a_silent_broker_is_neither_taken_for_a_good_one_nor_killed(tmp_path: Path) -> None:
    one = up("fake", home=tmp_path)
    os.kill(one.pid, signal.SIGSTOP)
    with pytest.raises(Unavailable) as caught:
        up("fake", home=tmp_path, limit=0.1)
    assert caught.value.code == "slow"
    assert is_alive(one.identity)
    assert status("fake", home=tmp_path).state == "silent"
    os.kill(one.pid, signal.SIGCONT)
    assert up("fake", home=tmp_path).pid == one.pid


def test_a_broker_of_ones_own_is_gone_at_the_end_even_after_a_failure(tmp_path: Path) -> None:
    seen: list[Running] = []

    def fail_with_it() -> None:
        with running("fake") as one:
            seen.append(one)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_with_it()
    assert not is_alive(seen[0].identity)
    assert not seen[0].data_dir.parent.parent.exists()

"""Start, crash, stop: laws that hold for any broker, shown on a small one that can misbehave."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tallystick.brokers.servers import Running, down, launch, life, running, status, up
from tallystick.brokers.servers.places import Place
from tallystick.brokers.servers.ports import choose_ports, is_free
from tallystick.brokers.servers.process import MARK, find_marked, identify, is_alive
from tallystick.brokers.servers.recipe import HOST, Here, Probe, Server, override
from tallystick.brokers.servers.state import read_state, write_state
from tallystick.brokers.servers.table import find_server
from tallystick.core.errors import TallystickError, Unavailable, UsageError

ANSWER: Final = """
import signal, socket, sys
stubborn = "stubborn" in sys.argv
if stubborn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
open(sys.argv[2] + "/started", "a").write("x")
while True:
    peer, _ = listener.accept()
    if peer.recv(5):
        peer.sendall(b"PONG")
    peer.close()
"""

FAKE: Final = Server(
    name="fake",
    title="Fake",
    version="1",
    fetch=Here(()),
    ports=("main", "other"),
    urls={"fake": "fake://$host:$port_main"},
    files={"etc/fake.conf": "port=$port_main\n"},
    command=("$python", "-S", "-c", ANSWER, "$port_main", "$data"),
    probe=Probe("main", b"PING\n", b"PONG"),
    memory=1,
)


def serve(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setattr(life, "find_server", lambda _name: server)


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Put the small broker in place of every other, and see that nothing of it is left."""
    serve(monkeypatch, FAKE)
    yield
    down("fake", home=tmp_path, limit=0)
    assert find_marked(str(tmp_path / "fake")) == []


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
        "from tests.brokers import test_servers_life as t\n"
        "t.life.find_server = lambda name: t.FAKE\n"
        "print(t.up('fake', home=pathlib.Path(sys.argv[1])).pid, flush=True); time.sleep(600)"
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


def test_a_program_that_ends_is_reported_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("/bin/sh", "-c", "echo one; echo 'no room for rent' >&2; exit 3")
    serve(monkeypatch, replace(FAKE, command=command))
    with pytest.raises(Unavailable, match="no room for rent") as caught:
        up("fake", home=tmp_path)
    assert caught.value.code == "ended"
    assert status("fake", home=tmp_path).state == "down"


def test_a_program_that_is_not_there_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, replace(FAKE, command=("$data/nothing",)))
    with pytest.raises(Unavailable, match="nothing") as caught:
        up("fake", home=tmp_path)
    assert caught.value.code == "ended"


def test_one_that_does_not_answer_in_time_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, replace(FAKE, probe=Probe("main", b"PING\n", b"PANG")))
    with pytest.raises(Unavailable) as caught:
        up("fake", home=tmp_path, limit=0.5)
    assert caught.value.code == "slow"
    assert find_marked(str(tmp_path / "fake")) == []
    assert status("fake", home=tmp_path).state == "down"


def test_one_that_answers_too_early_is_ready_when_its_log_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = replace(FAKE, says="data read")
    serve(monkeypatch, early)
    with pytest.raises(Unavailable) as caught:
        up("fake", home=tmp_path, limit=0.5)
    assert caught.value.code == "slow"
    talking = ANSWER.replace("while True", "print('data read', flush=True)\nwhile True")
    command = ("$python", "-S", "-c", talking, *FAKE.command[4:])
    serve(monkeypatch, replace(early, command=command))
    assert up("fake", home=tmp_path).ready


def test_data_of_before_must_be_read_in_silence(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.data.mkdir()
    server = replace(FAKE, says="up", settles=("store", 60.0))
    assert launch._silence(server, place) == 0
    (place.data / "store").touch()
    assert launch._silence(server, place) == 60
    place.log.write_text("up\n")
    assert launch._says(server, place, 0.0)
    assert not launch._says(server, place, 60.0)
    os.utime(place.log, (0, 0))
    assert launch._says(server, place, 60.0)


def test_a_program_that_refuses_root_is_run_as_nobody_by_root_and_by_others_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, wary = Place(tmp_path), replace(FAKE, refuses_root=True)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert launch._command(wary, place, ("$data/run",), {"data": "/d"}) == ["/d/run"]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    first = launch._command(wary, place, ("$data/run",), {"data": "/d"})
    assert (first[0], first[-1]) == ("setpriv", "/d/run")
    assert launch._command(FAKE, place, ("$data/run",), {"data": "/d"}) == ["/d/run"]
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable) as caught:
        launch._command(wary, place, ("$data/run",), {"data": "/d"})
    assert caught.value.code == "no_setpriv"


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


def test_a_port_that_somebody_else_took_is_replaced(tmp_path: Path) -> None:
    first = up("fake", home=tmp_path)
    down("fake", home=tmp_path)
    with socket.create_server((HOST, first.ports["main"])):
        second = up("fake", home=tmp_path)
        assert second.ports["main"] != first.ports["main"]
        assert second.ports["other"] == first.ports["other"]


def test_a_port_that_was_asked_for_is_taken_or_refused(tmp_path: Path) -> None:
    wanted = choose_ports(("any",), {})["any"]
    with socket.create_server((HOST, wanted)), pytest.raises(Unavailable) as caught:
        up("fake", home=tmp_path, port=wanted)
    assert caught.value.code == "port_in_use"
    one = up("fake", home=tmp_path, port=wanted)
    assert one.ports["main"] == wanted
    assert up("fake", home=tmp_path, port=wanted).pid == one.pid
    with pytest.raises(Unavailable) as caught:
        up("fake", home=tmp_path, port=wanted + 1)
    assert caught.value.code == "runs_already"


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_number_that_is_no_port_is_refused(tmp_path: Path, port: int) -> None:
    with pytest.raises(UsageError) as caught:
        up("fake", home=tmp_path, port=port)
    assert caught.value.code == "port"


def test_ports_never_repeat_within_one_broker() -> None:
    names = tuple(f"p{number}" for number in range(50))
    assert len(set(choose_ports(names, dict.fromkeys(names, 21_000)).values())) == 50


def test_a_command_to_prepare_data_runs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = ("/bin/sh", "-c", 'echo x >>"$$0"', "$data/prepared")
    serve(monkeypatch, replace(FAKE, once=once, once_makes="prepared"))
    up("fake", home=tmp_path)
    down("fake", home=tmp_path)
    assert (up("fake", home=tmp_path).data_dir / "prepared").read_text() == "x\n"


def test_a_failure_to_prepare_data_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    once = ("/bin/sh", "-c", "echo bad cluster >&2; exit 1")
    serve(monkeypatch, replace(FAKE, once=once, once_makes="prepared"))
    with pytest.raises(Unavailable, match="bad cluster") as caught:
        up("fake", home=tmp_path)
    assert caught.value.code == "prepare"


def test_an_emulator_whose_library_is_missing_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(monkeypatch, replace(FAKE, fetch=Here(("no_such_module",))))
    with pytest.raises(Unavailable, match="no_such_module"):
        up("fake", home=tmp_path)


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


def test_a_folder_that_start_scripts_cannot_take_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unavailable) as caught:
        up("fake", home=tmp_path / "with space")
    assert caught.value.code == "folder"


def test_an_unknown_broker_is_refused_with_the_list() -> None:
    with pytest.raises(TallystickError) as caught:
        find_server("mosquitto")
    assert "redis, rabbitmq" in caught.value.hint


def test_settings_replace_those_of_the_program_or_are_added() -> None:
    text = "a=1\n# b=2\nb = 3\n"
    assert override(text, {"b": "4", "c": "5"}) == "a=1\n# b=2\nb=4\nc=5\n"

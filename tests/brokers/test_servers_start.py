"""A broker that does not start as it should is said, ended and never taken for ready."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.brokers.fake_server import ANSWER, FAKE, serve

from tallystick.brokers.servers import down, launch, status, up
from tallystick.brokers.servers.places import Place
from tallystick.brokers.servers.process import find_marked
from tallystick.brokers.servers.recipe import Here, Probe, override
from tallystick.brokers.servers.table import find_server
from tallystick.core.errors import MissingExtra, TallystickError, Unavailable

pytestmark = pytest.mark.usefixtures("fake")


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
    serve(monkeypatch, replace(FAKE, fetch=Here("artemis")))
    monkeypatch.setitem(sys.modules, "proton", None)
    with pytest.raises(MissingExtra, match="proton") as caught:
        up("fake", home=tmp_path)
    assert caught.value.hint == "pip install 'tallystick[artemis]'"


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

"""Java's archive of classes: each installation has its own, and few are kept."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tallystick.pipeline import session
from tallystick.pipeline.tables.deliveries import pair_events


def test_an_archive_is_of_one_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    for home in ("one", "other", "one"):
        (tmp_path / home / "jars").mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv("SPARK_HOME", str(tmp_path / home))
        names.append(session._archive())
    assert names[0] == names[2] != names[1]


def test_jars_that_were_installed_anew_need_another_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    before = session._archive()
    os.utime(jars, (1, 1))
    assert session._archive() != before


def test_the_archives_used_last_are_kept_and_none_that_was_left_unfinished(tmp_path: Path) -> None:
    for age in range(5):
        place = tmp_path / f"spark-{age}.jsa"
        place.touch()
        os.utime(place, (1000 - age, 1000 - age))
    for process in (os.getpid(), 2**30):  # the second is no process
        (tmp_path / f"spark-9.jsa.{process}").touch()
    session._sweep(tmp_path)
    found = {one.name for one in tmp_path.iterdir()}
    assert found == {*(f"spark-{age}.jsa" for age in range(3)), f"spark-9.jsa.{os.getpid()}"}


@pytest.mark.parametrize("events", [0, 1_000_000, 20_000_000, 2_000_000_000])
def test_no_more_events_are_grouped_at_once_than_fit_a_small_heap(events: int) -> None:
    told = re.search(r"REPARTITION\((\d+), key_high\)", pair_events(events))
    assert told is not None
    assert events / int(told[1]) <= 600_000

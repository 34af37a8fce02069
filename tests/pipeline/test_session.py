"""Java's archive of classes: each installation has its own, few are kept, and only whole ones.

An archive is a gain and no need: where none can be read or written, Spark starts without.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from tallystick.pipeline import session
from tallystick.pipeline.tables.deliveries import pair_events


def test_an_archive_is_of_one_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = []
    for home in ("one", "other", "one"):
        (tmp_path / home / "jars").mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv("SPARK_HOME", str(tmp_path / home))
        names.append(session._archive([]))
    assert names[0] == names[2] != names[1]


def test_an_archive_serves_only_a_java_with_the_same_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small work crashed with an archive of large work, which has another kind of locks."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(atexit, "register", lambda *_: None)

    def names() -> set[str]:
        flags = (flag for small in (True, False) for flag in session._java_options(small=small))
        return {Path(flag.partition("=")[2]).stem for flag in flags if ".jsa" in flag}

    plain = names()
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:+UseBiasedLocking")
    assert len(plain) == 2
    assert len(plain | names()) == 4


def test_jars_that_were_installed_anew_need_another_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jars = tmp_path / "jars"
    jars.mkdir()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    before = session._archive([])
    os.utime(jars, (1, 1))
    assert session._archive([]) != before


def test_the_archives_used_last_are_kept_and_none_that_was_left_unfinished(tmp_path: Path) -> None:
    for age in range(6):
        place = tmp_path / f"spark-{age}.jsa"
        place.touch()
        os.utime(place, (1000 - age, 1000 - age))
    for process in (os.getpid(), 2**30):  # the second is no process
        (tmp_path / f"spark-9.jsa.{process}").touch()
    session._sweep(tmp_path)
    found = {one.name for one in tmp_path.iterdir()}
    assert found == {*(f"spark-{age}.jsa" for age in range(4)), f"spark-9.jsa.{os.getpid()}"}


Java = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Name the archive in a cache of its own; nothing happens at the end of these tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(atexit, "register", lambda *_: None)
    return session._archive([session._QUIET, *session._SMALL.split()])


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator[Java]:
    """Let a line of shell be the Java under Spark; it has ended when the test has."""
    with ExitStack() as stack:

        def start(line: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(["/bin/sh", "-c", line], stdin=subprocess.PIPE)
            stack.enter_context(process)
            stack.callback(process.kill)
            monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
            return process

        yield start


def refuse(*_: object, **__: object) -> None:
    raise PermissionError(13, "Permission denied")


def test_an_archive_of_another_user_is_used_as_it_is(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"classes")
    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(Path, "touch", refuse)
    assert session._java_options(small=True)[-1] == f"-XX:SharedArchiveFile={archive}"


def test_an_archive_that_was_used_counts_as_new(archive: Path) -> None:
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"classes")
    os.utime(archive, (1, 1))
    session._java_options(small=True)
    assert archive.stat().st_mtime > 1


@pytest.mark.parametrize("refused", [["mkdir"], ["touch"], ["stat", "mkdir"]])
def test_a_cache_that_may_not_be_written_or_read_is_done_without(
    refused: list[str], archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_archive", lambda _: archive)
    with monkeypatch.context() as closed:
        for method in refused:
            closed.setattr(Path, method, refuse)
        told = " ".join(session._java_options(small=True))
    assert "Archive" not in told
    assert not archive.exists()


def test_a_cache_under_a_file_is_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert "Archive" not in " ".join(session._java_options(small=False))


def test_an_archive_swept_by_another_process_is_not_made_anew_as_an_empty_one(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"classes")
    marked = os.utime

    def sweep_first(path: Path, times: None = None) -> None:
        path.unlink()
        marked(path, times)

    monkeypatch.setattr(os, "utime", sweep_first)
    session._java_options(small=True)
    assert not archive.exists()


def test_an_empty_archive_is_none_and_is_written_again(archive: Path) -> None:
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert session._java_options(small=True)[-1].startswith("-XX:ArchiveClassesAtExit=")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("cat; printf classes >'{}'", "classes"),
        ("cat; printf cla >'{}'; exit 1", ""),
        ("cat; printf cla >'{}'; kill -9 $$", ""),
        ("cat; : >'{}'", ""),
        ("cat", ""),
    ],
    ids=["whole", "failed", "killed", "empty", "none"],
)
def test_an_archive_is_kept_only_when_java_ended_well(
    line: str, kept: str, tmp_path: Path, java: Java
) -> None:
    written, archive = tmp_path / f"spark-1.jsa.{os.getpid()}", tmp_path / "spark-1.jsa"
    java(line.format(written))
    session._keep(written, archive)
    assert {one.name: one.read_text() for one in tmp_path.iterdir()} == (
        {archive.name: kept} if kept else {}
    )


def test_a_java_that_does_not_end_is_ended_and_leaves_nothing(
    tmp_path: Path, java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / f"spark-1.jsa.{os.getpid()}"
    written.write_text("cla")
    process = java("exec sleep 1000")
    monkeypatch.setattr(session, "_END", 0.01)
    session._keep(written, tmp_path / "spark-1.jsa")
    assert process.wait(60) == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("small", [True, False])
def test_the_collector_of_the_users_environment_is_the_only_one(
    archive: Path, monkeypatch: pytest.MonkeyPatch, *, small: bool
) -> None:
    archive.parent.mkdir(parents=True)
    archive.write_bytes(b"classes")
    assert "GC" in " ".join(session._java_options(small=small))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xss2m -XX:+UseG1GC")
    assert "GC" not in " ".join(session._java_options(small=small))


def test_without_a_java_of_our_own_no_archive_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SparkContext, "_gateway", None)
    written = tmp_path / f"spark-1.jsa.{os.getpid()}"
    written.write_text("cla")
    session._keep(written, tmp_path / "spark-1.jsa")
    assert list(tmp_path.iterdir()) == []


def test_the_java_of_spark_ends_well_and_its_archive_is_kept(tmp_path: Path) -> None:
    program = (
        "from tallystick.brokers.owner import scratch\n"
        "from tallystick.pipeline import session\n"
        "session._END = 200.0  # a loaded machine may be slow\n"
        "with session.open_session(small=True) as spark:\n"
        "    system = spark.sparkContext._jvm.java.lang.System\n"
        "    folder = system.getProperty('java.io.tmpdir')\n"
        "    assert folder == str(scratch()), folder  # a killed Java leaves its files there\n"
    )
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment, capture_output=True, encoding="utf-8", timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (kept,) = (tmp_path / "tallystick").iterdir()
    assert kept.suffix == ".jsa"
    assert kept.stat().st_size > 1 << 20
    kept.unlink()  # some 150 MB


@pytest.mark.parametrize("events", [0, 1_000_000, 20_000_000, 2_000_000_000])
def test_no_more_events_are_grouped_at_once_than_fit_a_small_heap(events: int) -> None:
    told = re.search(r"REPARTITION\((\d+), key_high\)", pair_events(events))
    assert told is not None
    assert events / int(told[1]) <= 600_000

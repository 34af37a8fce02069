"""Fetching: what is pinned or nothing; a busy registry is asked again; no half file is kept."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tallystick.brokers.servers import NAMES, Talk, find_server
from tallystick.brokers.servers.download import fetch, install_folder, is_fetched
from tallystick.brokers.servers.pins import Pin, read_pins, verify
from tallystick.brokers.servers.recipe import Archive, Bundle, Debian, Here, Jars, Probe, Server
from tallystick.core.errors import Unavailable

BODY: Final = b"a jar of jam"
PIN: Final = Pin(hashlib.sha256(BODY).hexdigest(), len(BODY), "jam-1.jar")

MVN: Final = r"""#!/bin/sh
# A registry's client: fails with each line of the script in turn, then delivers.
for word; do case $word in -DoutputDirectory=*) out=${word#*=};; esac; done
echo "$@" >>"$PLAN.calls"
line=$(head -n 1 "$PLAN")
if test -n "$line"; then
  sed -i 1d "$PLAN"
  printf 'a j' >"$out/jam-1.jar"
  test "$line" != hang || exec sleep 600
  echo "[ERROR] $line"
  exit 1
fi
printf '%s' "${BODY-a jar of jam}" >"$out/jam-1.jar"
"""

JAM: Final = Server(
    name="jam",
    title="Jam",
    version="1",
    fetch=Jars(("org.example:jam:1",)),
    ports=("main",),
    urls={},
    command=("true",),
    probe=Probe("main", b"", b""),
    memory=1,
)


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a registry's client of our own first on the PATH; it fails as the plan says."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "mvn").write_text(MVN)
    (tools / "mvn").chmod(0o755)
    path = tmp_path / "plan"
    path.write_text("")
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    monkeypatch.setenv("PLAN", str(path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return path


def calls(plan: Path) -> int:
    return len(plan.with_suffix(".calls").read_text().splitlines())


def kept() -> list[str]:
    return sorted(path.name for path in install_folder(JAM).parent.rglob("*"))


def test_what_is_fetched_is_in_place_whole_and_fetched_once(plan: Path) -> None:
    told: list[tuple[str, int, int]] = []
    folder = fetch(JAM, Talk(fetched=lambda *row: told.append(row)), pins=[PIN])
    assert (folder / "jam-1.jar").read_bytes() == BODY
    assert told[-1] == ("jam 1", len(BODY), len(BODY))
    assert is_fetched(JAM)
    assert fetch(JAM, pins=[PIN]) == folder
    assert calls(plan) == 1
    assert kept() == [folder.name, "jam-1.jar"]


@pytest.mark.parametrize(
    "line",
    [
        "status: 429 Too Many Requests",
        "status code: 503, reason phrase: Service Unavailable (503)",
        "Read timed out",
        "Connection reset by peer",
    ],
)
def test_a_busy_registry_is_asked_again_later_and_later(plan: Path, line: str) -> None:
    plan.write_text(f"{line}\n{line}\n")
    said: list[str] = []
    fetch(JAM, Talk(say=said.append), pins=[PIN], pauses=(0.0, 0.001, 0.002))
    assert calls(plan) == 3
    assert sum("busy" in text for text in said) == 2


def test_a_line_that_has_gone_dead_is_dialled_again(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallystick.brokers.servers.download._STALLED", 0.3)
    plan.write_text("hang\n")
    assert (fetch(JAM, pins=[PIN], pauses=(0.0,)) / "jam-1.jar").read_bytes() == BODY
    assert calls(plan) == 2


def test_a_registry_that_stays_busy_is_given_up_with_its_reason(plan: Path) -> None:
    plan.write_text("status: 429 Too Many Requests\n" * 9)
    with pytest.raises(Unavailable, match="429") as caught:
        fetch(JAM, pins=[PIN], pauses=(0.0, 0.0))
    assert caught.value.code == "fetch"
    assert calls(plan) == 3
    assert kept() == []


def test_a_version_that_is_gone_is_not_asked_for_again(plan: Path) -> None:
    plan.write_text("Could not find artifact org.example:jam:jar:1\n")
    with pytest.raises(Unavailable, match="Could not find artifact") as caught:
        fetch(JAM, pins=[PIN], pauses=(0.0, 0.0))
    assert caught.value.code == "fetch"
    assert calls(plan) == 1
    assert kept() == []


@pytest.mark.parametrize("body", ["a jar of jaM", "a jar", ""])
def test_one_other_byte_and_nothing_is_kept(
    plan: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setenv("BODY", body)
    with pytest.raises(Unavailable, match=r"jam-1\.jar") as caught:
        fetch(JAM, pins=[PIN])
    assert caught.value.code == "checksum"
    assert kept() == []
    assert not is_fetched(JAM)


@pytest.mark.parametrize(("files", "word"), [([], "missing"), (["jam-1.jar", "x"], "not pinned")])
def test_a_file_too_few_or_too_many_is_refused(tmp_path: Path, files: list[str], word: str) -> None:
    for file in files:
        (tmp_path / file).write_bytes(BODY)
    with pytest.raises(Unavailable, match=word):
        verify([PIN], tmp_path)


def test_half_a_download_of_one_who_was_killed_is_swept_away(plan: Path) -> None:
    left = install_folder(JAM).parent / "part-killed" / "files"
    left.mkdir(parents=True)
    (left / "jam-1.jar").write_bytes(BODY[:3])
    assert not is_fetched(JAM)
    assert (fetch(JAM, pins=[PIN]) / "jam-1.jar").read_bytes() == BODY
    assert not left.exists()


def test_ctrl_c_in_a_download_leaves_nothing_of_it(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(JAM, Talk(fetched=interrupt), pins=[PIN])
    assert kept() == []


def test_a_client_that_is_not_here_is_named(plan: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(plan.parent / "nowhere"))
    for server, program in (
        (JAM, "mvn"),
        (find_server("redis"), "apt-get"),
        (find_server("pulsar"), "mvn"),
    ):
        with pytest.raises(Unavailable, match=program) as caught:
            fetch(server)
        assert caught.value.code == f"no_{program}"
        assert "tally doctor" in caught.value.hint


def test_a_package_is_unpacked_and_patched(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = tmp_path / "package"
    (tree / "DEBIAN").mkdir(parents=True)
    control = "Package: jam\nVersion: 1\nArchitecture: amd64\nMaintainer: us\nDescription: jam\n"
    (tree / "DEBIAN/control").write_text(control)
    (tree / "run").write_text("root=/usr")
    built = tmp_path / "jam_1_amd64.deb"
    subprocess.run(["dpkg-deb", "-b", tree, built], check=True, capture_output=True)
    (plan.parent / "tools/apt-get").write_text(f'#!/bin/sh\ncp "{built}" .\n')
    (plan.parent / "tools/apt-get").chmod(0o755)
    pin = Pin(hashlib.sha256(built.read_bytes()).hexdigest(), built.stat().st_size, built.name)
    server = Server(
        **{
            **{name: getattr(JAM, name) for name in JAM.__slots__},
            "fetch": Debian(patches=(("run", "/usr", "/else"),)),
        }
    )
    assert (fetch(server, pins=[pin]) / "run").read_text() == "root=/else"


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_is_fetched_is_pinned(name: str) -> None:
    server = find_server(name)
    pins = read_pins(name)
    if isinstance(server.fetch, Here):
        assert pins == ()
        return
    assert pins
    assert all(re.fullmatch("[0-9a-f]{64}", pin.sha256) and pin.size > 0 for pin in pins)
    assert any(server.version in pin.file for pin in pins)
    assert [pin.file for pin in pins] == sorted({pin.file for pin in pins})
    match server.fetch:
        case Jars(artifacts):
            wanted = {f"{text.split(':')[1]}-{text.split(':')[2]}.jar" for text in artifacts}
            assert wanted <= {pin.file for pin in pins}
        case Bundle(artifact, _):
            _, named, version = artifact.split(":")
            assert [pin.file for pin in pins] == [f"{named}-{version}.jar"]
        case Archive(artifact, _):
            _, named, version, kind, classifier = artifact.split(":")
            assert [pin.file for pin in pins] == [f"{named}-{version}-{classifier}.{kind}"]

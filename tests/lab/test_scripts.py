"""The scripts under `interop/`: they need a PATH, return when the work is done, or fail in time."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pika  # type: ignore[import-untyped]
import pytest

from tallystick.core.errors import Unavailable
from tallystick.lab.clients import Client, Started, end_clients, find_clients, start_client
from tallystick.lab.shell import Place
from tallystick.lab.vm_server import Vm
from tests.lab.company import INTEROP, PATIENCE, ROOT, TESTS, words

START = INTEROP / "python" / "client" / "start"
PATH = f"{Path(sys.executable).parent}:/usr/bin:/bin"


def call(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run with nothing but a PATH (IOP-8)."""
    return subprocess.run(
        ["env", "-i", f"PATH={PATH}", *map(str, command)],
        capture_output=True, text=True, timeout=PATIENCE * 2, check=False,
    )  # fmt: skip


def read_line(line: str) -> Started:
    name, process, log = line.split()
    return Started(name, int(process), Path(log))


def end(vm: Vm, started: Started) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(vm.url))
    properties = pika.BasicProperties(headers={"CONTROL_TYPE": "TERMINATE"})
    key = f"iop.control.{started.name}"
    connection.channel().basic_publish("amq.topic", key, b"", properties)
    connection.close()
    assert end_clients([started], PATIENCE) == (), "it ends when it is told to"


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_client_is_started_by_any_shell_and_left_running(vm: Vm, shell: str) -> None:
    """IOP-2, IOP-8, IOP-9, IOP-16, IOP-18, IOP-19, IOP-36: when it returns, the client listens."""
    if not shutil.which(shell):
        shell = "sh"
    done = call(shell, START, "-b", vm.host, "-p", str(vm.port), f"client_name={shell}-it")
    assert done.returncode == 0, done.stderr
    started = read_line(done.stdout)
    assert started.name == f"{shell}-it"
    os.kill(started.process, 0)
    connection = pika.BlockingConnection(pika.URLParameters(vm.url))
    channel = connection.channel()
    channel.confirm_delivery()
    channel.basic_publish("amq.topic", f"iop.control.{started.name}", b"", mandatory=True)
    connection.close()
    end(vm, started)


def test_a_client_that_cannot_connect_is_exit_one() -> None:
    """IOP-17, IOP-18: a closed port."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        done = call(START, "-p", str(held.getsockname()[1]))
    assert done.returncode == 1
    assert "cannot connect" in done.stderr
    assert not done.stdout


def test_a_client_whose_broker_never_answers_is_ended_in_time() -> None:
    """IOP-17: a port that accepts and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = call(START, "-p", str(silent.getsockname()[1]), "start_timeout=1")
    assert done.returncode == 1
    assert "was not ready in 1 s" in done.stderr


def test_an_option_that_nobody_knows_is_refused() -> None:
    """IOP-19, IOP-20, IOP-21."""
    done = call(START, "--nonsense")
    assert done.returncode == 1
    assert "--nonsense" in done.stderr


def seen(folder: Path, *options: str, name: str = "it") -> tuple[list[str], dict[str, str]]:
    """Give what a program gets: its own arguments, and words by name."""
    program = folder / "program"
    program.write_text(f'#!/bin/sh\nprintf "%s\\0" "$@" >"{folder}/seen"\necho READY it\n')
    program.chmod(0o755)
    done = call(INTEROP / "client.sh", name, *options, "--", program, "first", "a b")
    assert done.returncode == 0, done.stderr
    shutil.rmtree(Path(done.stdout.split()[2]).parent)
    lines = (folder / "seen").read_text().split("\0")[:-1]
    given = dict(one.split("=", 1) for one in lines[2:])
    assert done.stdout.split()[0] == given["client_name"]
    return lines[:2], given


def test_a_program_gets_everything_ready_made(tmp_path: Path) -> None:
    """IOP-6, IOP-7, IOP-19, IOP-20, IOP-21: without -v it is on `/`; the last of a name counts."""
    options = ["-b", "a.host", "-p", "1", "note=a = b", "client_name=me", "start_timeout=9"]
    own, given = seen(tmp_path, *options)
    assert own == ["first", "a b"]
    about = json.loads(given.pop("capabilities"))
    assert len(given.pop("instance")) == 16
    assert given == {
        "host": "a.host", "port": "1", "vhost": "/", "username": "guest", "password": "guest",
        "note": "a = b",
        "url": "amqp://guest:guest@a.host:1/%2F", "client_name": "me", "control_key": "iop.control",
        "private_key": "iop.control.me", "control_timeout": "60", "tests": " ".join(TESTS),
    }  # fmt: skip
    assert about == {
        "language": "it", "platform": sys.platform, "protocol": 4, "tests": list(TESTS),
        "given": {
            "host": "a.host", "port": "1", "vhost": "/", "username": "guest", "client_name": "me",
            "control_key": "iop.control", "control_timeout": "60", "note": "a = b",
        },
    }  # fmt: skip
    assert call(INTEROP / "client.sh", "it", "-b", "x").returncode == 1, "there is no program"


ODD = "ü@:/?#[]%\"\\ '$x`\t{}\n"


def test_no_character_of_an_option_is_lost(tmp_path: Path) -> None:
    """IOP-21: user, password and virtual host in the URL, any option in the capabilities."""
    odd = {"username": f"u{ODD}", "password": f"p{ODD}", "vhost": f"v{ODD}", "note": ODD}
    pairs = [f"{name}={value}" for name, value in odd.items() if name != "vhost"]
    _, given = seen(tmp_path, "-b", "::1", "-v", odd["vhost"], *pairs)
    url = urlsplit(given["url"])
    assert (url.hostname, url.port) == ("::1", 5672)
    found = {"username": url.username, "password": url.password, "vhost": url.path[1:]}
    assert {name: unquote(text or "") for name, text in found.items()} == {
        name: odd[name] for name in found
    }
    about = json.loads(given["capabilities"])["given"]
    assert {name: about[name] for name in odd if name in about} == {
        name: value for name, value in odd.items() if name != "password"
    }
    assert "password" not in about
    assert {name: given[name] for name in odd} == odd, "as they are, for who needs no URL"


@pytest.mark.parametrize(
    "options", [("-p", "56x2"), ("-b", "a host"), ("-b", "h%2F"), ("-b", ""), ("url=amqp://u:secret@h",),
                ("capabilities={}",), ("instance=1",), ("private_key=k",)],
)  # fmt: skip
def test_no_place_and_no_word_of_ours_is_taken_and_no_secret_is_told(options: tuple[str]) -> None:
    """IOP-19 to IOP-21: a library that cannot read a URL would tell it, or go elsewhere."""
    done = call(INTEROP / "client.sh", "it", "password=secret", *options, "--", "true")
    assert done.returncode == 1
    assert done.stderr
    assert "secret" not in done.stderr + done.stdout


def test_a_guest_of_the_tests_gets_what_a_program_gets(tmp_path: Path) -> None:
    _, given = seen(tmp_path, name="python")
    guest = words(Place("127.0.0.1", 5672), {})
    assert given.keys() == guest.keys()
    alike = ("url", "client_name", "control_key", "private_key", "control_timeout", "tests")
    assert {name: given[name] for name in alike} == {name: guest[name] for name in alike}
    about, told = json.loads(given["capabilities"]), json.loads(guest["capabilities"])
    assert {name: about[name] for name in told if name != "given"} == {
        name: value for name, value in told.items() if name != "given"
    }


LOCKS = {
    "go": ("go.mod", "amqp091-go v{}"),
    "java": ("pom.xml", "<version>{}</version>"),
    "node": ("package.json", '"amqplib": "{}"'),
    "rust": ("Cargo.lock", 'name = "lapin"\nversion = "{}"'),
}


@pytest.mark.parametrize("language", LOCKS)
def test_a_manifest_names_the_version_that_is_pinned(language: str) -> None:
    folder = INTEROP / language / "client"
    file, line = LOCKS[language]
    version = json.loads((folder / "manifest.json").read_text())["library_version"]
    assert line.format(version) in (folder / file).read_text()


def test_startall_starts_every_client_with_the_options_unchanged(tmp_path: Path) -> None:
    """IOP-3, IOP-23, IOP-24: also options with spaces and equal signs."""
    home = tmp_path / "interop"
    for name in ("one", "two"):
        folder = home / name / "client"
        folder.mkdir(parents=True)
        start = folder / "start"
        start.write_text(f'#!/bin/sh\nprintf "%s|" "$@" >"{tmp_path}/{name}.seen"\n')
        start.chmod(0o755)
    (home / "three" / "broker").mkdir(parents=True)
    shutil.copy(INTEROP / "startall", home / "startall")
    options = ["-b", "a host", "-p", "1", "-v", "/x y", "note=a = b"]
    assert call(home / "startall", *options).returncode == 0
    for name in ("one", "two"):
        assert (tmp_path / f"{name}.seen").read_text() == "|".join(options) + "|"
    (home / "one" / "client" / "start").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "two.seen").unlink()
    assert call(home / "startall", *options).returncode == 1
    assert (tmp_path / "two.seen").exists(), "one that fails does not keep the others back"


def test_testall_invites_runs_and_ends_the_clients(vm: Vm, tmp_path: Path) -> None:
    """IOP-4, IOP-6, IOP-21, IOP-22, IOP-34: on clients that startall started."""
    home = tmp_path / "interop"
    home.mkdir()
    shutil.copy(INTEROP / "startall", home / "startall")
    start = home / "python" / "client" / "start"
    start.parent.mkdir(parents=True)
    start.write_text(f'#!/bin/sh\nexec "{START}" "$@"\n')
    start.chmod(0o755)
    options = ["-b", vm.host, "-p", str(vm.port)]
    started = call(home / "startall", *options)
    assert started.returncode == 0, started.stderr
    report = tmp_path / "lab.xml"
    done = call(
        INTEROP / "testall", *options, "P2P_NUM_MESSAGES=3", "--names", "python",
        "--cases", "TC[12]*", "--junit", report, "--json", "--enlist", "60",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert '"passed": 2' in done.stdout
    assert "TC2_BasicP2P" in report.read_text()
    assert end_clients([read_line(started.stdout)], PATIENCE) == (), "the client has ended"


def test_testall_without_a_broker_is_exit_one() -> None:
    """IOP-22: the coordinator cannot connect."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        done = call(INTEROP / "testall", "-p", str(held.getsockname()[1]))
    assert done.returncode == 1
    assert "no broker answers at" in done.stderr


def test_every_client_says_where_it_runs() -> None:
    """IOP-1, IOP-3, IOP-16: one that cannot run here is listed, and not started."""
    found = find_clients(INTEROP)
    assert "python" in found
    for client in found.values():
        assert client.start.with_name("manifest.json").exists()
        assert os.access(client.start, os.X_OK)


def test_a_client_of_another_platform_is_listed_and_not_started(tmp_path: Path) -> None:
    """IOP-1."""
    folder = tmp_path / "cobol" / "client"
    folder.mkdir(parents=True)
    (folder / "start").write_text("#!/bin/sh\nexit 0\n")
    (folder / "manifest.json").write_text('{"platforms": ["zos"], "needs": []}')
    found = find_clients(tmp_path)
    assert "not available on" in found["cobol"].missing
    (folder / "manifest.json").write_text('{"needs": ["no-such-program"]}')
    assert find_clients(tmp_path)["cobol"].missing == "needs no-such-program"


def test_scripts_are_where_the_specification_puts_them() -> None:
    """IOP-3, IOP-10, IOP-13, IOP-16, IOP-22, IOP-23."""
    for script in ("startall", "testall", "rabbitmq/broker/start", "rabbitmq/broker/stop",
                   "qpid/broker/start", "qpid/broker/stop", "python/client/start"):  # fmt: skip
        assert os.access(INTEROP / script, os.X_OK), script
    assert ROOT.joinpath("interop").is_dir()


def test_start_client_gives_the_process(vm: Vm) -> None:
    """IOP-18."""
    given = {"client_name": "p", "control_timeout": "9"}
    started = start_client(Client("python", START), Place(vm.host, vm.port), given)
    assert started.name == "p"
    assert end_clients([started], patience=0.0) == ("p",), "nobody told it to end"


def test_what_a_start_script_says_is_told_while_it_runs(tmp_path: Path) -> None:
    heard = tmp_path / "heard"
    script = tmp_path / "start"
    script.write_text(
        f"#!/bin/sh\necho 'building (once)' >&2\n"
        f"until test -e '{heard}'; do sleep 0.01; done\necho 'built in 3 s' >&2\nexit 1\n"
    )
    script.chmod(0o755)
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        heard.touch()

    with pytest.raises(Unavailable, match=r"did not start: building .* [|] built in 3 s"):
        start_client(Client("slow", script), Place("127.0.0.1", 1), {}, say)
    assert lines == ["slow: building (once)", "slow: built in 3 s"]

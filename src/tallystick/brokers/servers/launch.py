"""Start one broker from its recipe: ports, files, process, and wait until it answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from time import monotonic, sleep, time
from typing import Final

import msgspec

from tallystick.brokers.servers.download import install_folder
from tallystick.brokers.servers.java import JVM, archive_flags, find_java, keep_archive
from tallystick.brokers.servers.places import Place
from tallystick.brokers.servers.ports import choose_ports, is_free, read_ports, write_ports
from tallystick.brokers.servers.probe import answers
from tallystick.brokers.servers.process import MARK, find_marked, is_alive, spawn, stop, tail
from tallystick.brokers.servers.recipe import HOST, Server, fill, override
from tallystick.brokers.servers.state import Running, forget, write_state
from tallystick.core.errors import Unavailable

__all__ = ["clear", "launch"]

_TRIES: Final = 3
_LOOK: Final = 0.03
_NOBODY: Final = (
    "setpriv", "--securebits", "+no_setuid_fixup", "--reuid", "65534", "--regid", "65534",
    "--clear-groups", "--bounding-set", "-all,+dac_override",
    "--inh-caps", "-all,+dac_override", "--ambient-caps", "-all,+dac_override",
)  # fmt: skip
_PASSED: Final = ("PATH", "HOME", "LANG", "TZ", "JAVA_HOME")
"""The only variables that a broker gets from our environment (IOP-8)."""


def clear(server: Server, place: Place, found: Running | None, limit: float) -> bool:
    """End the remaining processes of an earlier run."""
    willing = True
    mark = str(place.folder)
    if found:
        willing = stop(found.identity, mark, limit, server.farewell)
    else:
        for stray in find_marked(mark):
            willing = stop(stray, mark, limit, server.farewell) and willing
    if server.shared_classes and place.classes.exists():
        keep_archive(find_java(), install_folder(server), place.classes)
    if place.tmp.exists():
        shutil.rmtree(place.tmp)
    forget(place)
    return willing


def launch(
    server: Server,
    place: Place,
    install: Path,
    port: int | None,
    limit: float,
    owner: Mapping[str, str],
) -> Running:
    """Start the broker; if another program took one of its ports, use other ports."""
    end = monotonic() + limit
    for left in reversed(range(_TRIES)):
        ports = choose_ports(server.ports, read_ports(place.ports), port)
        write_ports(place.ports, ports)
        values = _values(server, place, install, ports)
        environment = {**_environment(server, place, values), **owner}
        _write_files(server, place, values)
        _run_once(server, place, values, environment, end)
        silence = _silence(server, place)
        if monotonic() >= end:  # however quickly it would answer now
            raise _late(server, place)
        found = _spawn(server, place, values, environment, ports)
        try:
            ready = await_answer(server, place, found, end - monotonic(), silence)
        except BaseException:  # also Ctrl-C: what is half started is ended
            clear(server, place, found, 0)
            raise
        if ready:
            return ready
        failed = _failed(server, place, "stopped during its start", "ended")
        clear(server, place, found, 0)
        if not left or all(map(is_free, ports.values())):
            raise failed
    raise AssertionError("the last try returns or raises")


def _values(
    server: Server, place: Place, install: Path, ports: Mapping[str, int]
) -> dict[str, str]:
    values = {f"port_{name}": str(number) for name, number in ports.items()}
    java = str(find_java()) if server.uses_java else ""
    return {**values, "data": str(place.data), "install": str(install), "java": java,
            "python": sys.executable, "host": HOST, "tmp": str(place.tmp)}  # fmt: skip


def _write_files(server: Server, place: Place, values: Mapping[str, str]) -> None:
    place.tmp.mkdir(exist_ok=True)
    for folder in server.folders:
        (place.data / folder).mkdir(parents=True, exist_ok=True)
    texts = {file: fill(text, values) for file, text in server.files.items()}
    for file, (source, ours) in server.properties.items():
        theirs = Path(fill(source, values)).read_text(encoding="utf-8")
        texts[file] = override(theirs, {key: fill(text, values) for key, text in ours.items()})
    for file, text in texts.items():
        path = place.data / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _environment(server: Server, place: Place, values: Mapping[str, str]) -> dict[str, str]:
    ours = {name: os.environ[name] for name in _PASSED if name in os.environ}
    theirs = {name: fill(text, values) for name, text in server.environment.items()}
    fixed = {"TMPDIR": str(place.tmp), MARK: str(place.folder)}
    return {"LANG": "C.UTF-8", **ours, **theirs, **fixed}


def _command(
    server: Server, place: Place, words: tuple[str, ...], values: Mapping[str, str]
) -> list[str]:
    flags = [*JVM] if server.uses_java else []
    if server.shared_classes:
        flags += archive_flags(Path(values["java"]), Path(values["install"]), place.classes)
    return [*_as_nobody(server), *(fill(word, values) for word in (words[0], *flags, *words[1:]))]


def _as_nobody(server: Server) -> tuple[str, ...]:
    """Give what makes root another user to the program, with no power left but over files."""
    if not server.refuses_root or os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        raise Unavailable(
            f"{server.name} does not run as root, and `setpriv` is not installed",
            code="no_setpriv",
            hint="run it as another user, or install util-linux",
        )
    return _NOBODY


def _run_once(
    server: Server,
    place: Place,
    values: Mapping[str, str],
    environment: Mapping[str, str],
    end: float,
) -> None:
    if not server.once or (place.data / server.once_makes).exists():
        return
    command = _command(server, place, server.once, values)
    try:
        result = subprocess.run(  # noqa: S603 (the recipe's own command)
            command,
            env=environment,
            cwd=place.data,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=max(1.0, end - monotonic()),
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise Unavailable(f"{server.name} did not prepare its data in time", code="slow") from late
    if result.returncode:
        said = (result.stdout + result.stderr).strip().splitlines()[-3:]
        raise Unavailable(
            f"{server.name} cannot prepare its data: {' | '.join(said)}", code="prepare"
        )


def _spawn(
    server: Server,
    place: Place,
    values: Mapping[str, str],
    environment: Mapping[str, str],
    ports: Mapping[str, int],
) -> Running:
    command = _command(server, place, server.command, values)
    child = spawn(command, environment, place.data, place.log)
    found = Running(
        name=server.name,
        version=server.version,
        host=HOST,
        ports=ports,
        urls={scheme: fill(url, values) for scheme, url in server.urls.items()},
        admin=fill(server.admin, values),
        data_dir=place.data,
        log=place.log,
        identity=child.identity,
    )
    write_state(place, found)
    child.begin()
    return found


def await_answer(
    server: Server, place: Place, found: Running, limit: float, silence: float = 0.0
) -> Running | None:
    """Return the broker when it answers, None if it has ended; raise after the time limit."""
    end = monotonic() + limit
    while is_alive(found.identity):
        if _says(server, place, silence) and answers(server.probe, found.ports):
            ready = msgspec.structs.replace(found, ready=True)
            write_state(place, ready)
            return ready
        if monotonic() >= end:
            raise _late(server, place)
        sleep(_LOOK)
    return None


def _late(server: Server, place: Place) -> Unavailable:
    return _failed(server, place, "did not answer in time", "slow")


def _silence(server: Server, place: Place) -> float:
    file, seconds = server.settles
    return seconds if file and (place.data / file).exists() else 0.0


def _says(server: Server, place: Place, silence: float) -> bool:
    """Say whether the log has said what it must, and then nothing for as long as it must."""
    if not server.says:
        return True
    said = server.says in place.log.read_text("utf-8", errors="replace")
    return said and time() - place.log.stat().st_mtime >= silence


def _failed(server: Server, place: Place, what: str, code: str) -> Unavailable:
    said = tail(place.log)
    return Unavailable(
        f"{server.name} {server.version} {what}" + (f"; its output:\n{said}" if said else ""),
        code=code,
        hint=f"see its log: {place.log}",
    )

"""Every verb works from the wheel in an empty folder, or names the extra that it needs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tallystick.core.extras import EXTRAS
from tallystick.suites.subjects import NAMES
from tests.wheel.environments import ROOT, Environment
from tests.wheel.rows import CHAINS, Call, verb_of

_WALK: Final = Path(__file__).with_name("walk.py")
_PATIENCE: Final = 600.0
_LACKED: Final = ("artemis",)
"""The extras that the full environment does not have either: they need a compiler."""
_AT_ONCE: Final = 4


def _walked(environment: Environment, what: str, folder: Path) -> str:
    done = subprocess.run(
        [environment.program("python"), "-I", _WALK, what],
        cwd=folder, capture_output=True, text=True, check=True, timeout=_PATIENCE,
    )  # fmt: skip
    return done.stdout


def _environment(environment: Environment, folder: Path) -> dict[str, str]:
    """Give a user's variables, but a state of its own, so that no broker of the user is touched."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TALLY")}
    kept.pop("VIRTUAL_ENV", None)
    return {**kept, "XDG_STATE_HOME": str(folder / "state")}


def _run(call: Call, environment: Environment, folder: Path) -> tuple[int, str, str]:
    """Run a call in a folder; one that would go on for ever is interrupted once it says `until`."""
    name, *words = call.words.split()
    with (folder / "stdout").open("w+b") as out, (folder / "stderr").open("w+b") as err:
        child = subprocess.Popen(
            [environment.program(name), *words], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=out, stderr=err, env=_environment(environment, folder),
        )  # fmt: skip
        guard = threading.Timer(_PATIENCE, child.kill)
        guard.start()
        try:
            if call.until:
                _wait_for(call.until, child, folder)
                child.send_signal(signal.SIGINT)
            code = child.wait()
        finally:
            child.kill()
            child.wait()
            guard.cancel()
    out_text, err_text = ((folder / at).read_text(errors="replace") for at in ("stdout", "stderr"))
    return code, out_text, err_text


def _wait_for(text: str, child: subprocess.Popen[bytes], folder: Path) -> None:
    pause = threading.Event()
    while child.poll() is None:
        if any(text in (folder / name).read_text() for name in ("stdout", "stderr")):
            return
        pause.wait(0.05)


def _missing(call: Call, environment: Environment) -> str:
    """Name the extra that the call must say is missing; none where it must work."""
    needed = call.needs.split()
    return next((one for one in needed if not environment.extras or one in _LACKED), "")


def _faults(call: Call, environment: Environment, folder: Path) -> list[str]:
    """Run one call and say what is wrong with how it ended."""
    missing = _missing(call, environment)
    call = replace(call, until="") if missing else call
    code, out, err = _run(call, environment, folder)
    found = []
    if missing:
        lines = err.splitlines()
        said = f"this needs the extra `{missing}` ("
        if code != 2:
            found.append(f"exit {code}, not 2")
        if not any(said in line for line in lines):
            found.append(f"no line says: {said}")
        if f"  hint: pip install 'tallystick[{missing}]'" not in lines:
            found.append("no line gives the pip command")
        if len(lines) > 3:
            found.append("it says more than the error")
    elif code != call.exit:
        found.append(f"exit {code}, not {call.exit}")
    found += [f"it says {word!r}" for word in ("Traceback", "internal fault") if word in out + err]
    return [f"{call.words}: {one}\n{out[-1500:]}\n{err[-1500:]}" for one in found]


def _run_chain(name: str, environment: Environment) -> list[str]:
    """Run the calls of a chain in a new folder that has the examples and nothing else."""
    with tempfile.TemporaryDirectory(prefix="tally-wheel-") as place:
        folder = Path(place)
        shutil.copytree(ROOT / "examples", folder, dirs_exist_ok=True)
        shutil.copy(folder / "app" / "shop.py", folder)
        try:
            return [one for call in CHAINS[name] for one in _faults(call, environment, folder)]
        finally:
            if name == "broker":
                _run(Call("tally broker down redis --wipe"), environment, folder)


def _run_all(environment: Environment) -> list[str]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return [one for found in pool.map(lambda name: _run_chain(name, environment), CHAINS)
                for one in found]  # fmt: skip


def test_every_verb_has_a_call(bare: Environment, tmp_path: Path) -> None:
    verbs = frozenset(json.loads(_walked(bare, "list", tmp_path)))
    assert len(verbs) > 50
    calls = [call for chain in CHAINS.values() for call in chain if "python -m" not in call.words]
    assert {verb_of(call, verbs) for call in calls} == verbs


def test_every_extra_but_the_brokers_own_is_asked_for() -> None:
    """A broker's extra is asked for in `tests/brokers`; here one stands for all."""
    brokers = {"rabbitmq", "sqs", "servicebus", "pulsar", "kafka", "telemetry"}
    needed = {one for chain in CHAINS.values() for call in chain for one in call.needs.split()}
    assert needed == set(EXTRAS) - brokers


@pytest.mark.parametrize("kind", ["bare", "full"])
def test_help_always_works(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    environment: Environment = request.getfixturevalue(kind)
    for verb, (code, text) in json.loads(_walked(environment, "help", tmp_path)).items():
        assert code == 0, f"{verb}: {text}"
        assert "usage" in text.lower(), verb


def test_without_extras_each_verb_works_or_names_the_one_it_needs(bare: Environment) -> None:
    faults = _run_all(bare)
    assert not faults, "\n".join(faults)


def test_with_extras_each_verb_works_in_a_folder_of_its_own(full: Environment) -> None:
    faults = _run_all(full)
    assert not faults, "\n".join(faults)


def test_every_named_implementation_runs_from_the_wheel(full: Environment) -> None:
    """Those whose toolchain is not here say so; what they answer is not judged here."""

    def run(name: str) -> str:
        call = Call(
            f"tally suite run standard/make/* cloudevents/own/json/* --implementation {name}"
        )
        with tempfile.TemporaryDirectory(prefix="tally-wheel-") as place:
            code, out, err = _run(call, full, Path(place))
        ran = code in (0, 1) and "passed" in out
        lacking = code == 2 and "is not on the PATH" in err
        return "" if ran or lacking else f"{name}: exit {code}\n{out}\n{err}"

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        faults = list(filter(None, pool.map(run, NAMES)))
    assert not faults, "\n".join(faults)


def test_python_code_gets_the_error_with_the_pip_command(bare: Environment, tmp_path: Path) -> None:
    program = """
from tallystick import App
from tallystick.core.errors import MissingExtra
from tallystick.runtime.outbox import Outbox
for make in (lambda: App("redis://127.0.0.1:1"), lambda: Outbox("postgresql://127.0.0.1:1/x")):
    try:
        made = make()
        made.publish("urn:babel:a:b", {})
    except MissingExtra as error:
        print(error.extra, error.hint)
"""
    done = subprocess.run([bare.program("python"), "-I", "-c", program], cwd=tmp_path,
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert done.stdout == (
        "redis pip install 'tallystick[redis]'\npostgresql pip install 'tallystick[postgresql]'\n"
    )

"""Run a `tally` command as a step of the proof, in a process of its own.

The step is the command that a user would run, so the proof shows it as the way to repeat the step.
Its stdout is one JSON value; its progress goes to our stderr.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tallystick.brokers.owner import tied
from tallystick.core.errors import Unavailable

__all__ = ["Answered", "run_tally", "show_command"]


@dataclass(frozen=True, slots=True)
class Answered:
    """How a command ended (0 or 1), and the JSON value that it printed."""

    code: int
    value: Any


def show_command(arguments: Sequence[str]) -> str:
    """Give the command as a user types it."""
    return shlex.join(["tally", *arguments])


def run_tally(arguments: Sequence[str]) -> Answered:
    """Run a command with `--json`; raise `Unavailable` when it could not do its work."""
    command = [sys.executable, "-m", "tallystick", *arguments, "--json"]
    with subprocess.Popen(  # noqa: S603 (our own program)
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env={**os.environ, **tied()},
    ) as process:
        try:
            out, _ = process.communicate()
        except BaseException:
            process.terminate()  # it ends what it has started
            raise
    if process.returncode not in (0, 1):
        raise _explain(arguments, process.returncode, out)
    return Answered(process.returncode, json.loads(out))


def _explain(arguments: Sequence[str], code: int, out: str) -> Unavailable:
    """Give the error that the command printed as the last line of its output."""
    lines = out.splitlines()
    try:
        fault = json.loads(lines[-1])["error"]
        return Unavailable(fault["message"], code=fault["code"], hint=fault["hint"])
    except (IndexError, ValueError, KeyError, TypeError):
        return Unavailable(f"{show_command(arguments)} ended with {code}", code="step")

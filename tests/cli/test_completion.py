"""Laws of completion: the real shells are asked, with the script that `tally completion` prints.

bash is asked everywhere. zsh and fish are asked where they are installed; without them their tests
are skipped, and only the bash script is proven on that machine.
"""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.cli import NOUNS
from tallystick.cli.completion import SHELLS

ASKED = [
    ("tally sch", {"schema"}),
    ("tally schema com", {"compat"}),
    ("tally schema compat --mo", {"--mode"}),
    ("tally schema compat --mode FULL", {"FULL", "FULL_TRANSITIVE"}),
    ("tally schema validate --unknown w", {"warn"}),
    ("tally broker up red", {"redis"}),
    ("tally envelope project --broker ra", {"rabbitmq"}),
    ("tally schema check --registry contr", {"contracts.json"}),
    ("tally completion f", {"fish"}),
    ("bqschema export", {"export-asyncapi"}),
    ("bqschema compat contr", {"contracts.json"}),
]
"""What is on the line -> what the shell must offer."""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with every script, and a file to complete."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "work").mkdir()
    (folder / "work" / "contracts.json").touch()
    for shell in SHELLS:
        for program in ("tally", "bqschema"):
            done = subprocess.run(
                [sys.executable, "-m", "tallystick", "completion", shell, "--program", program],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            assert done.stderr == ""
            (folder / f"{program}.{shell}").write_text(done.stdout)
    return folder


def run_shell(shell: str, script: str, *words: str, folder: Path) -> list[str]:
    """Run a script of a shell and give its lines; it may not complain."""
    done = subprocess.run(
        [shell, *(["--no-config"] if shell == "fish" else ["--norc"]), "-c", script, *words],
        cwd=folder / "work", capture_output=True, text=True, check=False,
        env={**os.environ, "HOME": str(folder), "XDG_DATA_HOME": str(folder)},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


BASH = """
source "$1/tally.bash"; source "$1/bqschema.bash"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
handler=$(complete -p "$1" | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$handler" "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(("line", "offered"), ASKED)
def test_bash_completes(scripts: Path, line: str, offered: set[str]) -> None:
    words = ["bash", str(scripts), *line.split()]
    assert {*run_shell("bash", BASH, *words, folder=scripts)} >= offered


def test_bash_offers_every_noun(scripts: Path) -> None:
    shown = run_shell("bash", BASH, "bash", str(scripts), "tally", "", folder=scripts)
    assert {*shown} >= {*NOUNS}


@pytest.mark.parametrize(("line", "offered"), ASKED)
def test_fish_completes(scripts: Path, line: str, offered: set[str]) -> None:
    script = f"source {scripts}/tally.fish; source {scripts}/bqschema.fish; complete -C '{line}'"
    shown = run_shell("fish", script, folder=scripts)
    assert {row.split("\t")[0] for row in shown} >= offered


@pytest.mark.parametrize(("line", "offered"), ASKED)
def test_zsh_completes(scripts: Path, line: str, offered: set[str]) -> None:
    """Type the line and a tab into a zsh of its own; the list or the word appears."""
    functions = scripts / "functions"
    functions.mkdir(exist_ok=True)
    for program in ("tally", "bqschema"):
        shutil.copy(scripts / f"{program}.zsh", functions / f"_{program}")
    begin = (
        f"fpath=({functions} $fpath); autoload -Uz compinit; compinit -D; unsetopt auto_menu; "
        f"setopt list_ambiguous; PS1='READY'' '; cd {scripts}/work\n"
    )
    shown = type_into_zsh(begin, f"{line}\t\t", offered)
    assert all(word in shown for word in offered), shown


def type_into_zsh(begin: str, keys: str, awaited: set[str]) -> str:
    """Start zsh on a terminal, type, and read until all that is awaited is shown."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["zsh", "-f", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "200", "LINES": "100"},
    )  # fmt: skip
    os.close(theirs)
    try:
        os.write(ours, begin.encode())
        read_until(ours, {"READY "})
        os.write(ours, keys.encode())
        return read_until(ours, awaited)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(terminal: int, awaited: set[str]) -> str:
    """Read until every word is shown; a minute of silence ends it."""
    shown = ""
    while not all(word in shown for word in awaited):
        ready, _, _ = select.select([terminal], [], [], 60)
        if not ready:
            break
        chunk = os.read(terminal, 1 << 16).decode("utf-8", "replace")
        shown += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", chunk)
    return shown


def test_the_script_names_no_place_of_this_machine(scripts: Path) -> None:
    for shell in SHELLS:
        text = (scripts / f"tally.{shell}").read_text()
        assert str(Path(sys.prefix)) not in text
        assert str(Path.home()) + "/" not in text

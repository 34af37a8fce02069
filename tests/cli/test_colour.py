"""Laws of colour: on a terminal only, off with NO_COLOR, never in JSON or in files."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tallystick.cli.outputs.colour import TONES, Tone, has_colour, paint_first_words

REGISTRY = Path(__file__).parents[2] / "examples" / "registry"
SCHEMAS = REGISTRY / "schemas"
BREAKING = (
    "schema", "compat", str(SCHEMAS / "orders-created.json"),
    str(SCHEMAS / "orders-created.v2-breaking.json"),
)  # fmt: skip
ESCAPE = "\x1b["
VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "TERM")


def environment(**variables: str) -> dict[str, str]:
    """Give this environment without the variables of colour, then with the given ones."""
    plain = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return {**plain, "TERM": "xterm", **variables}


def in_terminal(*words: str, **variables: str) -> str:
    """Run `tally` on a terminal of its own, stdout and stderr both, and give what it shows."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "tallystick", *words],
            stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment(**variables),
        )  # fmt: skip
    finally:
        os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 1 << 16):
            shown += chunk
    except OSError:  # Linux tells the end of a terminal this way
        pass
    finally:
        os.close(ours)
        process.wait()
    return shown.decode()


def in_pipe(*words: str, **variables: str) -> str:
    """Run `tally` into a pipe and give stdout and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "tallystick", *words],
        capture_output=True, text=True, check=False, env=environment(**variables),
    )  # fmt: skip
    return done.stdout + done.stderr


def test_a_terminal_shows_the_verdict_and_its_marks_in_colour() -> None:
    shown = in_terminal(*BREAKING)
    assert "\x1b[31mbreaking\x1b[0m" in shown
    assert "\x1b[31mx\x1b[0m /properties/currency/enum" in shown


def test_an_error_has_a_coloured_prefix_and_a_quiet_hint() -> None:
    shown = in_terminal("schema", "check", "--registry", "none.json")
    assert "\x1b[31mtally:\x1b[0m none.json" in shown
    assert "\x1b[2mhint:\x1b[0m" in shown


@pytest.mark.parametrize(
    "words",
    [
        ("schema", "check", "--registry", "none.json"),
        ("schema", "gdpr", "--require", "--registry", str(REGISTRY)),
        ("suite", "run", "standard/bytes/numbers/zero"),
        BREAKING,
    ],
)
def test_no_color_turns_colour_off_on_a_terminal(words: tuple[str, ...]) -> None:
    shown = in_terminal(*words, NO_COLOR="1")
    assert shown
    assert "\x1b[3" not in shown  # the progress bar clears its line with another sequence


def test_a_dumb_terminal_and_a_pipe_get_plain_text() -> None:
    assert ESCAPE not in in_terminal(*BREAKING, TERM="dumb")
    assert ESCAPE not in in_pipe(*BREAKING)


@pytest.mark.parametrize("name", ["FORCE_COLOR", "CLICOLOR_FORCE"])
def test_colour_can_be_forced_into_a_pipe(name: str) -> None:
    assert ESCAPE in in_pipe(*BREAKING, **{name: "1"})
    assert ESCAPE not in in_pipe(*BREAKING, **{name: "0"})
    assert ESCAPE not in in_pipe(*BREAKING, **{name: "1", "NO_COLOR": "1"})


def test_json_and_files_are_never_coloured(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    shown = in_terminal(*BREAKING, "--json", "--junit", str(report), FORCE_COLOR="1")
    assert ESCAPE not in shown
    assert ESCAPE not in report.read_text()


def test_a_verdict_word_is_coloured_only_at_the_start_of_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    text = "failed  a/case\n  it failed\nfailedness\n"
    assert paint_first_words(text) == text
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert has_colour()
    assert paint_first_words(text) == text.replace("failed ", "\x1b[31mfailed\x1b[0m ", 1)


def test_every_tone_is_used() -> None:
    assert set(TONES.values()) == set(Tone)

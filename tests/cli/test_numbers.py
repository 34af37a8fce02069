"""Every number on a command line is judged before anything starts: one text for each kind."""

from __future__ import annotations

import argparse
import select
import socket
from collections.abc import Callable, Iterator
from importlib import import_module

import pytest

from tallystick.cli import NOUNS, main
from tallystick.cli.numbers import (
    above_zero,
    from_zero,
    per_second,
    port,
    seconds,
    stamp,
    wait,
    whole,
    whole_per_second,
    whole_seconds,
)

HUGE = "9" * 5000
NEVER = ["", "x", "nan", "inf", "1e400", "1_0", "\u0663", "\uff11", " 1", "1 ", "0x1", HUGE]
READERS: dict[Callable[[str], float], tuple[str, list[str], dict[str, float]]] = {
    above_zero: ("'0' is not a whole number above 0", ["-1", "0", "1.5"], {"1": 1, "007": 7}),
    from_zero: ("'-1' is not a whole number, 0 or more", ["-1", "1.5"], {"0": 0, "12": 12}),
    whole: ("'1.5' is not a whole number", ["1.5", "--1"], {"-12": -12, "0": 0}),
    port: (
        "'65536' is not a port number from 0 to 65535",
        ["-1", "65536"],
        {"0": 0, "65535": 65535},
    ),
    seconds: (
        "'0' is not a time above 0",
        ["0", "-1", "2000001"],
        {"0.5": 0.5, ".5": 0.5, "1e3": 1e3},
    ),
    wait: ("'-1' is not a time from 0", ["-1", "2000001"], {"0": 0.0, "-0.0": 0.0, "2.": 2.0}),
    stamp: ("'-1' is not a number of seconds from 0", ["-1", "1e12"], {"0": 0.0, "1.7e9": 1.7e9}),
    per_second: (
        "'0' is not a rate from 0.00001 to 1000000000 per second",
        ["0", "-2", "-0.0", "1e-300", "0.000009", "1e10"],
        {"0.1": 0.1, "1e9": 1e9, "0.00001": 0.00001},
    ),
    whole_per_second: (
        "'0' is not a whole rate from 1",
        ["0", "-1", "0.5", "1000000001"],
        {"1": 1, "1000000000": 10**9},
    ),
    whole_seconds: (
        "'0' is not a whole number of seconds from 1 to 86400",
        ["0", "-1", "0.5", "86401"],
        {"1": 1, "86400": 86_400},
    ),
}


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_a_number_is_read_or_refused_with_its_kind(read: Callable[[str], float]) -> None:
    said, wrong, right = READERS[read]
    for text in [*wrong, *NEVER]:
        with pytest.raises(argparse.ArgumentTypeError) as refused:
            read(text)
        assert said.split("' ", 1)[1] in str(refused.value)
        assert len(str(refused.value)) < 120, "a long text is shown by its beginning"
    assert {text: read(text) for text in right} == right


@pytest.mark.parametrize("read", [seconds, wait])
def test_the_longest_time_fits_the_waits_of_the_system(read: Callable[[str], float]) -> None:
    ready, other = socket.socketpair()
    with ready, other, select.epoll() as waiting:
        other.send(b"x")
        waiting.register(ready, select.EPOLLIN)
        assert waiting.poll(read("2000000")), "a longer one is an OverflowError"
        asked = select.poll()
        asked.register(ready, select.POLLIN)
        assert asked.poll(read("2000000") * 1000)


def verbs(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    for action in below:
        for one in action.choices.values():
            yield from verbs(one)
    if not below:
        yield parser


@pytest.mark.parametrize("noun", NOUNS)
def test_no_command_takes_a_number_that_argparse_alone_reads(noun: str) -> None:
    parser = argparse.ArgumentParser(prog=noun)
    import_module(f"tallystick.cli.{noun}").register(parser)
    bare = {
        f"{verb.prog} {'/'.join(action.option_strings)}"
        for verb in verbs(parser)
        for action in verb._actions
        if action.type in (int, float)
    }
    assert bare == set()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("outbox relay --store sqlite:///x --broker memory:// --poll inf", "'inf' is not a time"),
        (
            "outbox relay --store sqlite:///x --broker memory:// --batch 0",
            "not a whole number above",
        ),
        ("outbox relay --store sqlite:///x --broker memory:// --idle nan", "'nan' is not a time"),
        ("capture memory:// q -o x --max-age 0", "'0' is not a time above 0"),
        ("redrive memory:// q --limit=-1", "'-1' is not a whole number, 0 or more"),
        ("run a:b --every 0", "'0' is not a time above 0"),
        ("suite run --deadline x", "'x' is not a time above 0"),
        ("suite run --deadline 1000000000", "is not a time above 0, up to 2000000 seconds"),
        ("envelope project x --broker artemis --delay 1_0", "'1_0' is not a number of seconds"),
        ("envelope project x --broker artemis --now \u0663", "is not a number of seconds from 0"),
        ("schema validate x --jobs x", "'x' is not a whole number above 0"),
        (f"schema serve --addr {HUGE}", "is not a port number from 0 to 65535"),
        ("schema gdpr --today soon", "'soon' is not a date; write for example 2026-01-31"),
        ("replay x --since \u0663", "is not a time; write for example 2026-01-31T12:00:00Z"),
        (f"replay x --since {HUGE}", "is not a time; write for example 2026-01-31T12:00:00Z"),
        (
            f"envelope project x --broker kafka --tiers {HUGE}",
            "is not a whole number above 0; write a list",
        ),
        ("broker up redis --limit nan", "'nan' is not a time from 0"),
        ("replay x --rate 1e-300", "'1e-300' is not a rate from 0.00001"),
        ("replay x --rate inf", "'inf' is not a rate"),
        (
            "capture redis://h?timeout=nan q -o x",
            "`timeout` must be a number from 0 to 2000000, found 'nan'",
        ),
        (
            "capture artemis://h?timeout=1e300 q -o x",
            "`timeout` must be a number from 0 to 2000000, found '1e300'",
        ),
        (
            "capture pulsar://h?timeout=-1 q -o x",
            "`timeout` must be a number from 0 to 2000000, found '-1'",
        ),
        ("lab perf --rate 1e9", "'1e9' is not a whole rate"),
        ("lab perf --duration 86401", "'86401' is not a whole number of seconds"),
        ("lab run-tier full --broker vm --limit nan", "'nan' is not a time above 0"),
        ("faults run redis --workers 65", "--workers from 1 to 64"),
        ("pipeline stream --input x --out y --trigger 25h", "at most a day, 24h"),
        ("pipeline stream --input x --out y --trigger \u0663s", "is not a time"),
        (f"pipeline stream --input x --out y --trigger {HUGE}s", "is not a time"),
    ],
)
def test_a_number_that_cannot_be_is_one_line_and_exit_2(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""

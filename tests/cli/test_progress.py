"""A bar is drawn where somebody watches, and talk is never drawn over."""

from __future__ import annotations

import io
from itertools import count
from threading import Event

import pytest

from tallystick.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_is_drawn_on_a_terminal_and_gives_way_to_talk() -> None:
    stream = Terminal()
    with Progress(2, "go", stream) as bar:
        bar.advance()
        bar.talk(b"building\n")
        bar.rename("node")
    text = stream.getvalue()
    assert "1/2 node" in text
    assert "go: building\n" in text
    assert text.endswith("\r\x1b[K")


def test_a_bar_says_how_long_is_left_once_it_can_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 0.0, 10.0, 10.0, 20.0])
    monkeypatch.setattr("tallystick.cli.progress.monotonic", lambda: next(now))
    stream = Terminal()
    with Progress(10, "go", stream) as bar:
        bar.advance()
    assert "1/10 go, 1:30 left" in stream.getvalue()
    assert "0/10 go, " not in stream.getvalue()


def test_nothing_is_drawn_where_nobody_watches() -> None:
    stream = io.StringIO()
    with Progress(2, "go", stream) as bar:
        bar.advance()
        bar.talk(b"building\n")
    assert stream.getvalue() == "go: building\n"


def test_each_line_of_talk_names_its_subject_and_cannot_draw() -> None:
    stream = io.StringIO()
    with Progress(2, "go", stream) as bar:
        bar.talk(b"one\ntw")
        bar.talk(b"o \x1b[31m\n\nthree")
        bar.rename("node")
        bar.talk(b"four")
    assert stream.getvalue() == "go: one\ngo: two \\x1b[31m\ngo: three\nnode: four\n"


def test_a_bar_counts_the_seconds_while_nothing_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallystick.cli.progress._TICK", 0.001)
    monkeypatch.setattr("tallystick.cli.progress._EVERY", 0.0)
    drawn = Event()

    class Watched(Terminal):
        def write(self, text: str) -> int:
            if "0/2 go, waiting " in text:
                drawn.set()
            return super().write(text)

    clock = count()
    monkeypatch.setattr("tallystick.cli.progress.monotonic", lambda: float(next(clock)))
    with Progress(2, "go", Watched()):
        assert drawn.wait(60)

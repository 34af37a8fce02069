"""The subjects under test, started once for the module that asks for them.

A toolchain that is not here fails the test with the subject's own line; nothing is skipped.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tallystick.suites.protocol import Breach
from tallystick.suites.subject import Deadlines, ProcessSubject

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[2] / "subjects"
WRITERS = ("tallystick-go", "tallystick-node", "tallystick-java")


def _open(name: str) -> ProcessSubject:
    subject = ProcessSubject([str(FOLDER / name / "start")], Deadlines(run=60.0), lambda _: None)
    try:
        subject.start()
    except Breach as breach:
        pytest.fail(f"subject {name} {breach.reason}", pytrace=False)
    return subject


@pytest.fixture(scope="module")
def writers() -> Iterator[dict[str, ProcessSubject]]:
    """Give the three programs that follow the canonical rules."""
    subjects = {name: _open(name) for name in WRITERS}
    yield subjects
    assert {name: subject.stop() for name, subject in subjects.items()} == dict.fromkeys(
        WRITERS, ()
    )


@pytest.fixture(scope="module")
def babelqueue() -> Iterator[ProcessSubject]:
    """Give the package from PyPI, in its own environment."""
    subject = _open("babelqueue")
    yield subject
    assert subject.stop() == ()

"""The official files, where `TALLY_OFFICIAL` gives them: one more witness, never a need.

A test that is only about them has the mark `official` with the name of their folder. Without that
folder it is not collected, and a line of the test summary says so.
"""

from __future__ import annotations

import pytest

from tallystick.suites.cloudevents import CONFORMANCE, official_folder

__all__ = ["CLOUDEVENTS", "JUNIT", "QPID", "is_missing", "missing_lines", "needs"]

CLOUDEVENTS = official_folder(CONFORMANCE)
JUNIT = official_folder("junit-xsd")
QPID = official_folder("qpid-interop")
_SAID = {
    CONFORMANCE: (CLOUDEVENTS, "official CloudEvents cases"),
    "junit-xsd": (JUNIT, "JUnit schemas of Jenkins and Surefire"),
    "qpid-interop": (QPID, "AMQP 1.0 values of the Qpid interop test"),
}


def needs(part: str) -> pytest.MarkDecorator:
    """Mark a test that is only about one folder of official files."""
    assert part in _SAID
    return pytest.mark.official(part)


def is_missing(item: pytest.Item) -> bool:
    """Tell whether a test is about official files that are not here."""
    mark = item.get_closest_marker("official")
    return mark is not None and _SAID[mark.args[0]][0] is None


def missing_lines() -> list[str]:
    """Give a line for each folder of official files that is not here."""
    return [
        f"{name}: not run (see docs/guides/events.md)"
        for folder, name in _SAID.values()
        if folder is None
    ]

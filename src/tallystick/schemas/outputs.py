"""Machine-readable results of a merge gate: JUnit XML and GitHub annotations, from `Mark`s.

The XML conforms to the schema Jenkins publishes (jenkins-junit-10.xsd). An annotation is one
workflow command per mark; `%`, line ends and, inside properties, `:` and `,` are escaped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["LEVELS", "Level", "Mark", "github_annotations", "junit_xml"]

_UNPRINTABLE: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


Level = Literal["passed", "notice", "warning", "failed"]

LEVELS: Final[dict[Level, str]] = {"failed": "error", "warning": "warning", "notice": "notice"}
"""Level of a mark that is not simply passed -> the word of a workflow command."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One checked item: a name, its result, and its place in a file.

    `rule` names the rule that was broken (`check/schema.meta`). `pointer` is the place inside the
    file, or inside the line when `stream` says that every line is a document. `parts` are the
    findings inside this one, for a format that shows each of them at its own place.
    """

    name: str
    level: Level
    message: str = ""
    detail: str = ""
    file: str = ""
    line: int = 0
    rule: str = ""
    pointer: str = ""
    stream: bool = False
    parts: tuple[Mark, ...] = ()


def junit_xml(suite: str, marks: Sequence[Mark]) -> str:
    """Write marks as one JUnit suite; warnings and notices pass, their text is kept."""
    failures = sum(mark.level == "failed" for mark in marks)
    counts = f'tests="{len(marks)}" failures="{failures}" errors="0"'
    rows = "".join(map(_case, marks))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<testsuites name={_attribute(suite)} {counts}>\n"
        f"  <testsuite name={_attribute(suite)} {counts}>\n{rows}  </testsuite>\n</testsuites>\n"
    )


def _case(mark: Mark) -> str:
    head = (
        f"    <testcase name={_attribute(mark.name)} classname={_attribute(mark.file or 'schema')}"
    )
    if mark.level == "failed":
        inner = f"<failure message={_attribute(mark.message)}>{_text(mark.detail)}</failure>"
    elif mark.message:
        inner = f"<system-out>{_text(mark.message)}</system-out>"
    else:
        return f"{head}/>\n"
    return f"{head}>{inner}</testcase>\n"


def _text(value: str) -> str:
    return escape(_UNPRINTABLE.sub("\ufffd", value))


def _attribute(value: str) -> str:
    return quoteattr(_UNPRINTABLE.sub("\ufffd", value), {"\n": "&#10;", "\t": "&#9;"})


def github_annotations(marks: Iterable[Mark]) -> str:
    """Write one workflow command per mark that is not simply passed."""
    return "".join(
        f"::{LEVELS[mark.level]} {_properties(mark)}::{_data(mark.message)}\n"
        for mark in marks
        if mark.level in LEVELS
    )


def _properties(mark: Mark) -> str:
    fields = {"file": mark.file, "line": str(mark.line or ""), "title": mark.name}
    return ",".join(f"{key}={_property(value)}" for key, value in fields.items() if value)


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")

"""Write journals as JUnit XML that both the Jenkins and the Surefire schema accept.

The root is one `testsuite` (Surefire allows no other), without attributes that Surefire rejects.
`properties` come first; every `testcase` has a `time` with at most three decimals; `skipped` has
only a message. A known failure is skipped with its reason; a known failure that passes is a
failure. Characters that XML 1.0 does not allow are written as a visible escape.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

from tallystick.core.journal import KNOWN, Record
from tallystick.core.verdict import Difference, Outcome
from tallystick.report.table import repeat_command, section_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tallystick.core.journal import Journal

__all__ = ["junit"]

_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS: Final = {
    Outcome.FAILED: "failure",
    Outcome.ERRORED: "error",
    Outcome.UNSUPPORTED: "skipped",
    KNOWN: "skipped",
}


def junit(journals: Sequence[Journal], options: Sequence[str] = ()) -> str:
    """Return one XML document for one or more runs; `options` are part of the repeat command."""
    found = [(journal, record) for journal in journals for record in journal.records]
    elements = [_element(record) for _, record in found]
    milliseconds = sum(record.verdict.milliseconds for _, record in found)
    root = ET.Element(
        "testsuite",
        {
            "name": _clean(" ".join(dict.fromkeys(j.head.suite for j in journals)) or "tallystick"),
            "tests": str(len(found)),
            "failures": str(elements.count("failure")),
            "errors": str(elements.count("error")),
            "skipped": str(elements.count("skipped")),
            "time": _seconds(milliseconds),
        },
    )
    if journals:
        root.set("timestamp", _clean(journals[0].head.time))
    _add_properties(root, journals)
    for journal, record in found:
        _add_case(root, journal.head.subject, record, options)
    ET.indent(root)
    return "<?xml version='1.0' encoding='UTF-8'?>\n" + ET.tostring(root, "unicode") + "\n"


def _element(record: Record) -> str:
    return "failure" if record.alarm else _ELEMENTS.get(record.counts_as, "")


def _add_properties(root: ET.Element, journals: Sequence[Journal]) -> None:
    properties = ET.SubElement(root, "properties")
    for journal in journals:
        given = {"run": journal.head.run, "complete": str(journal.complete).lower()}
        for name, value in (given | dict(journal.head.versions)).items():
            full = _clean(f"{journal.head.subject}.{name}")
            ET.SubElement(properties, "property", {"name": full, "value": _clean(value)})


def _add_case(root: ET.Element, subject: str, record: Record, options: Sequence[str]) -> None:
    verdict = record.verdict
    section = section_of(verdict.case)
    case = ET.SubElement(
        root,
        "testcase",
        {
            "name": _clean(verdict.case.removeprefix(f"{section}/")),
            "classname": _clean(f"{subject}.{section.replace('/', '.')}"),
            "time": _seconds(verdict.milliseconds),
        },
    )
    name = _element(record)
    if not name:
        return
    message = _message(record)
    attributes = {"message": _clean(message)}
    if name != "skipped":
        attributes["type"] = "alarm" if record.alarm else verdict.outcome.value
    element = ET.SubElement(case, name, attributes)
    if name != "skipped":
        lines = [_line(difference) for difference in verdict.differences]
        again = f"repeat with: {repeat_command(subject, verdict.case, options)}"
        element.text = _clean("\n".join([message, *lines, again]))


def _message(record: Record) -> str:
    verdict = record.verdict
    if record.alarm:
        return f"passes now, but is listed as a known failure: {record.known}"
    if record.known:
        return f"known failure: {record.known}"
    return verdict.reason or f"{len(verdict.differences)} difference(s)"


def _line(difference: Difference) -> str:
    expected, found = _value(difference.expected), _value(difference.found)
    return f"at {difference.pointer or 'the root'}: expected {expected}, found {found}"


def _value(value: Any) -> str:
    return "nothing" if value is ... else json.dumps(value, ensure_ascii=False, default=str)


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / 1000:.3f}"


def _clean(text: str) -> str:
    """Write characters that XML 1.0 does not allow as a visible escape."""
    return _NOT_XML.sub(lambda found: f"\\u{ord(found.group()):04x}", text)

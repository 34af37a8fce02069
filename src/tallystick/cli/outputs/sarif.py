"""Findings as SARIF 2.1.0 (OASIS), for code scanning and editors.

One run a file. A result has the id of its rule, the file with line and column, and a fingerprint
that stays the same when lines move: it is made of the rule, the file, the name and the pointer.
Findings only: what passed is not in the file. Columns count Unicode code points from 1.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from tallystick import __version__
from tallystick.cli.annotations import place_in_repository
from tallystick.cli.outputs.sarif_rules import describe_rule
from tallystick.schemas.outputs import Level, Mark
from tallystick.schemas.values import place_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["fingerprint", "is_file", "write_sarif"]

_SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS: Final[dict[Level, str]] = {"failed": "error", "warning": "warning", "notice": "note"}
_FINGERPRINT: Final = "tallystick/v1"


def write_sarif(command: str, marks: Iterable[Mark]) -> str:
    """Write the findings of one command as a SARIF log."""
    findings = [part for mark in marks for part in mark.parts or (mark,) if part.level in _LEVELS]
    rules = list(dict.fromkeys(mark.rule for mark in findings))
    run = {
        "tool": {
            "driver": {
                "name": "tallystick",
                "version": __version__,
                "rules": [describe_rule(rule) for rule in rules],
            }
        },
        "automationDetails": {"id": f"{command.replace(' ', '-')}/"},
        "columnKind": "unicodeCodePoints",
        "results": [*_results(findings, rules)],
    }
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _results(findings: Sequence[Mark], rules: Sequence[str]) -> Iterator[dict[str, Any]]:
    seen: Counter[str] = Counter()
    for mark in findings:
        print_of = fingerprint(mark)
        seen[print_of] += 1
        yield {
            "ruleId": mark.rule,
            "ruleIndex": rules.index(mark.rule),
            "level": _LEVELS[mark.level],
            "message": {"text": f"{mark.name}: {mark.message}"},
            "locations": [{"physicalLocation": _location(mark)}] if is_file(mark.file) else [],
            "partialFingerprints": {_FINGERPRINT: f"{print_of}:{seen[print_of]}"},
        }


def fingerprint(mark: Mark) -> str:
    """Give a digest of a finding that does not change when lines move."""
    parts = (mark.rule, place_in_repository(mark.file), mark.name, mark.pointer)
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def is_file(name: str) -> bool:
    """Tell whether a mark names a file; standard input and a commit are none."""
    return name not in ("", "-")


def _location(mark: Mark) -> dict[str, Any]:
    file = place_in_repository(mark.file)
    location: dict[str, Any] = (
        {"uri": Path(file).as_uri()} if Path(file).is_absolute()
        else {"uri": quote(Path(file).as_posix()), "uriBaseId": "%SRCROOT%"}
    )  # fmt: skip
    region = _region(mark)
    return {"artifactLocation": location, **({"region": region} if region else {})}


def _region(mark: Mark) -> dict[str, int]:
    """Give line and column of the pointer; only the line where the text cannot be read."""
    text = _read(mark.file)
    if mark.stream:
        rows = text.split("\n")
        text = rows[mark.line - 1] if 0 < mark.line <= len(rows) else ""
    if not _is_json(text):
        return {"startLine": mark.line} if mark.line else {}
    line, column = place_of(text, mark.pointer)
    if mark.stream:
        return {"startLine": mark.line, "startColumn": column}
    if mark.line and line != mark.line:  # the mark knows better: the file is another version
        return {"startLine": mark.line}
    return {"startLine": line, "startColumn": column}


@lru_cache(maxsize=4)
def _read(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):  # the finding says so already; it has no column
        return ""


@lru_cache(maxsize=4)
def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True

"""Findings as a Code Quality report of GitLab: one JSON array, shown in the merge request.

GitLab takes a finding only with a description, a rule, a fingerprint, a severity, a path and a
line. A finding without a file is placed at line 1 of the registry that was checked.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final

from tallystick.cli.outputs.sarif import fingerprint, is_file
from tallystick.schemas.outputs import Level, Mark

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["write_code_quality"]

_SEVERITIES: Final[dict[Level, str]] = {"failed": "major", "warning": "minor", "notice": "info"}


def write_code_quality(marks: Iterable[Mark], registry: str) -> str:
    """Write the findings; `registry` is the place of those that name no file."""
    seen: Counter[str] = Counter()
    rows = []
    findings = [part for mark in marks for part in mark.parts or (mark,)]
    for mark in findings:
        if mark.level not in _SEVERITIES:
            continue
        print_of = fingerprint(mark)
        seen[print_of] += 1
        rows.append(
            {
                "description": f"{mark.name}: {mark.message}",
                "check_name": mark.rule,
                "fingerprint": f"{print_of}:{seen[print_of]}",
                "severity": _SEVERITIES[mark.level],
                "location": {
                    "path": mark.file if is_file(mark.file) else registry,
                    "lines": {"begin": mark.line or 1},
                },
            }
        )
    return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"

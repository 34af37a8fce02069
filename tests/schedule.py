"""How the tests are spread over the workers of xdist: file by file, the longest first.

A file stays on one worker, and so do the files of the pipeline: their Spark session starts once.
The pages of the documentation need nothing of each other, so each goes to the next free worker.
`tests/seconds.txt` has the seconds of every file in one run; only the order counts. A file that is
not listed counts as a long one. `python -m tests.schedule REPORT.xml` prints the list anew from the
report of `pytest --junit-xml=REPORT.xml`.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]
from xdist.workermanage import WorkerController  # type: ignore[import-untyped]

SECONDS = Path(__file__).with_name("seconds.txt")
SPARK = "tests/pipeline/"
ALONE = {
    f"{SPARK}test_{name}.py" for name in ("cluster", "export", "lineage", "session")
}  # fmt: skip
"""Tests of the pipeline that do not use the shared Spark session."""
PAGES = "tests/docs/test_commands.py"
UNKNOWN = 60
"""Seconds of a file that is not listed: it must not come last."""


def scope_of(nodeid: str) -> str:
    """Name what stays together on one worker."""
    file = nodeid.partition("::")[0]
    if file == PAGES:
        return nodeid
    return SPARK if file.startswith(SPARK) and file not in ALONE else file


def read_seconds(text: str) -> Counter[str]:
    """Add up the seconds of every scope."""
    seconds: Counter[str] = Counter()
    for line in text.splitlines():
        amount, file = line.split()
        seconds[scope_of(file)] += int(amount)
    return seconds


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]
    """Give a worker that is free the longest of the scopes that are left."""

    def __init__(self, config: Any, log: Any = None) -> None:
        super().__init__(config, log)
        self._seconds = read_seconds(SECONDS.read_text(encoding="utf-8"))

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        longest = max(self.workqueue, key=lambda scope: self._seconds.get(scope, UNKNOWN))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


def main(report: str) -> None:
    """Print the files of a report, the longest first."""
    seconds: dict[str, float] = {}
    for case in ET.parse(report).iter("testcase"):
        file = f"{case.get('classname', '').replace('.', '/')}.py"
        if Path(file).exists():
            seconds[file] = seconds.get(file, 0.0) + float(case.get("time", 0))
    for file, amount in sorted(seconds.items(), key=lambda row: -row[1]):
        print(f"{amount:.0f} {file}")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Laws of the order of the tests: the longest file first, one Spark, nothing unknown at the end."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests import schedule
from tests.schedule import LongestFirst, main, read_seconds, scope_of


@dataclass(frozen=True)
class Node:
    """A worker, as the scheduler sees it."""

    send_runtest_some: Callable[[list[int]], None]


def test_a_file_stays_together_and_so_does_what_needs_spark() -> None:
    assert scope_of("tests/core/test_a.py::test_one[a::b]") == "tests/core/test_a.py"
    assert scope_of("tests/pipeline/test_run.py::test_one") == "tests/pipeline/"
    assert scope_of("tests/pipeline/page/test_x.py::test_one") == "tests/pipeline/"
    assert scope_of("tests/pipeline/test_cluster.py::test_one") == "tests/pipeline/test_cluster.py"
    page = "tests/docs/test_commands.py::test_a_page_works_as_printed[README.md]"
    assert scope_of(page) == page
    assert read_seconds("2 tests/pipeline/test_run.py\n3 tests/pipeline/test_page.py") == {
        "tests/pipeline/": 5
    }


def test_the_longest_scope_is_given_first_and_an_unknown_one_is_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = tmp_path / "seconds.txt"
    seconds.write_text("9 short\n90 long\n")
    monkeypatch.setattr(schedule, "SECONDS", seconds)
    given: list[list[int]] = []
    config = SimpleNamespace(getvalue=lambda _: ["popen"])
    order = LongestFirst(config, SimpleNamespace(loadscopesched=lambda *_: None))
    node = Node(given.append)
    names = ["short", "unknown", "long"]
    order.registered_collections[node] = names
    order.workqueue = OrderedDict((name, {name: False}) for name in names)
    for _ in names:
        order._assign_work_unit(node)
    assert given == [[2], [1], [0]]


def test_the_list_is_made_from_a_report(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    rows = ("core.test_fuzz", 1.2), ("core.test_journal", 5.0), ("core.test_fuzz", 1.1)
    cases = (f'<testcase classname="tests.{name}" time="{time}"/>' for name, time in rows)
    report.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
    main(str(report))
    assert capsys.readouterr().out == "5 tests/core/test_journal.py\n2 tests/core/test_fuzz.py\n"

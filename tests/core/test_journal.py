"""Laws of the journal format."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import Rejected
from tallystick.core.journal import (
    Foot,
    Head,
    Journal,
    Record,
    count,
    read,
    write_foot,
    write_head,
    write_record,
)
from tallystick.core.verdict import Difference, Outcome, Verdict

HEAD = Head("run-1", "2026-11-15T21:00:00Z", "standard", "go", {"tallystick": "0.1.0"})

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
differences = st.builds(
    Difference, st.text(), st.just(...) | json_values, st.just(...) | json_values
)
verdicts = st.builds(
    Verdict,
    st.text(),
    st.sampled_from(Outcome),
    st.text(),
    st.lists(differences, max_size=3).map(tuple),
    st.integers(0, 10**6).map(lambda whole: whole / 1000),
)
records = st.lists(st.builds(Record, verdicts, st.text(max_size=3)), max_size=5)


def write(recorded: list[Record], *, foot: bool = True) -> list[str]:
    lines = [write_head(HEAD), *map(write_record, recorded)]
    return [*lines, write_foot(Foot(count(recorded), 12.5, ("note",)))] if foot else lines


def types(value: Any) -> Any:
    if isinstance(value, list):
        return [types(one) for one in value]
    if isinstance(value, dict):
        return {key: types(one) for key, one in value.items()}
    return type(value)


@given(records)
def test_what_is_written_is_read_back_with_its_types(recorded: list[Record]) -> None:
    (journal,) = read(write(recorded))
    assert journal.head == HEAD
    assert journal.records == tuple(recorded)
    assert journal.complete
    for back, sent in zip(journal.records, recorded, strict=True):
        for one, other in zip(back.verdict.differences, sent.verdict.differences, strict=True):
            assert types(one.found) == types(other.found)


@given(records)
def test_every_entry_is_one_line(recorded: list[Record]) -> None:
    assert all(line.endswith("\n") and len(line.splitlines()) == 1 for line in write(recorded))


@given(records, st.data())
def test_a_journal_cut_anywhere_says_that_it_is_not_complete(
    recorded: list[Record], data: st.DataObject
) -> None:
    text = "".join(write(recorded))
    first = len(write_head(HEAD))
    cut = data.draw(st.integers(first, len(text) - 2))
    (journal,) = read(text[:cut].splitlines(keepends=True))
    assert not journal.complete
    assert journal.records == tuple(recorded)[: len(journal.records)]


def test_several_journals_in_one_file_stay_apart() -> None:
    second = Head("run-1", HEAD.time, "standard", "node")
    lines = [*write([], foot=False), write_head(second), write_foot(Foot(count([])))]
    assert [(j.head.subject, j.complete) for j in read(lines)] == [("go", False), ("node", True)]


def test_known_failures_are_counted_apart_and_a_known_pass_is_an_alarm() -> None:
    failed = Record(Verdict("a", Outcome.FAILED), "issue 7")
    passed = Record(Verdict("b", Outcome.PASSED), "issue 7")
    assert count([failed, passed]) == {
        "passed": 1, "failed": 0, "errored": 0, "unsupported": 0, "known": 1,
    }  # fmt: skip
    assert (failed.alarm, passed.alarm) == (False, True)


@pytest.mark.parametrize(
    "lines",
    [
        ["not json\n"],
        ["{}\n"],
        ["[]\n"],
        ["[" * 100_000 + "\n"],
        ['{"kind":"surprise"}\n'],
        [write_foot(Foot(count([])))],
        [write_head(HEAD), '{"kind":"verdict","case":"a","outcome":"maybe","milliseconds":1}\n'],
        [write_head(HEAD), '{"kind":"verdict","outcome":"passed","milliseconds":1}\n'],
        [write_head(HEAD), write_foot(Foot({"passed": 1}))],
        [],
    ],
)
def test_a_line_that_is_no_journal_is_rejected(lines: list[str]) -> None:
    with pytest.raises(Rejected):
        read(lines)


def test_a_number_beyond_a_double_is_written_as_its_text() -> None:
    verdict = Verdict("a", Outcome.FAILED, differences=(Difference("/n", 1, Decimal("1e400")),))
    (journal,) = read(write([Record(verdict)]))
    assert journal.records[0].verdict.differences[0].found == "1E+400"


def test_a_value_that_is_not_json_is_refused_loudly() -> None:
    verdict = Verdict("a", Outcome.FAILED, differences=(Difference("/n", 1, object()),))
    with pytest.raises(TypeError):
        write_record(Record(verdict))


def test_journals_compare_by_value() -> None:
    assert Journal(HEAD) == Journal(HEAD)

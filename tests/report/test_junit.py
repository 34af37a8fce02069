"""Laws of the JUnit XML: our rules and both schemas accept it, whatever the names hold."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]
from tests.official import needs
from tests.report.junit_rules import BOTH, JENKINS, check_junit, schema

from tallystick.core.journal import Foot, Head, Journal, Record, count
from tallystick.core.verdict import Difference, Outcome, Verdict
from tallystick.report.junit import junit

STRANGE = "\x00\x07\x1b[31m\u0085\ufffe\ud800<&\"'>]]>\n\t é 😀"


def journal(records: list[Record], subject: str = "go") -> Journal:
    head = Head("run", "2026-11-15T21:00:00Z", "standard", subject, {"tallystick": "0.1.0"})
    return Journal(head, tuple(records), Foot(count(records)))


def record(outcome: Outcome, *, name: str = "s/x/1", known: str = "", text: str = "") -> Record:
    differences = (Difference("/a", text, ...),) if outcome is Outcome.FAILED else ()
    return Record(Verdict(name, outcome, text, differences, 1234567.8949), known)


EVERY = [record(outcome, known=known, text=STRANGE) for outcome in Outcome for known in ("", "why")]


def parsed(text: str) -> etree._Element:
    return etree.fromstring(text.encode())


def test_the_rules_accept_every_outcome() -> None:
    check_junit(parsed(junit([journal(EVERY)])))


def test_the_rules_accept_several_subjects_none_and_a_run_cut_short() -> None:
    short = Journal(journal([]).head, tuple(EVERY))
    check_junit(parsed(junit([journal(EVERY), journal(EVERY, "node"), short])))
    check_junit(parsed(junit([])))
    check_junit(parsed(junit([journal([])])))


RUN = """<testsuite name="s" tests="3" failures="1" errors="1" skipped="1" time="1.5"
 timestamp="2026-11-15T21:00:00Z"><properties><property name="a" value="b"/></properties>
 <testcase name="a" classname="c" time="0.001"><failure message="m" type="t">w</failure></testcase>
 <testcase name="b" classname="c" time="0"><error message="m" type="t"/></testcase>
 <testcase name="d" classname="c" time="12.25"><skipped message="m"/></testcase></testsuite>"""
MARKS = """<testsuites name="s" tests="2" failures="1" errors="0">
 <testsuite name="s" tests="2" failures="1" errors="0">
 <testcase name="a" classname="f.json"><failure message="m">why</failure></testcase>
 <testcase name="b" classname="f.json"><system-out>note</system-out></testcase>
 </testsuite></testsuites>"""
BROKEN = [
    (RUN, ' name="s"', ""),
    (RUN, ' tests="3"', ""),
    (RUN, ' failures="1"', ""),
    (RUN, ' errors="1"', ""),
    (RUN, ' skipped="1"', ""),
    (RUN, ' time="1.5"', ""),
    (RUN, 'tests="3"', 'tests="three"'),
    (RUN, 'tests="3"', 'tests="-3"'),
    (RUN, 'tests="3"', 'tests="4"'),
    (RUN, 'failures="1"', 'failures="0"'),
    (RUN, 'errors="1"', 'errors="2"'),
    (RUN, 'skipped="1"', 'skipped="0"'),
    (RUN, 'time="1.5"', 'time="1.5001"'),
    (RUN, 'time="1.5"', 'time="1e3"'),
    (RUN, 'time="0.001"', 'time="0.0001"'),
    (RUN, 'time="0.001"', 'time="soon"'),
    (RUN, ' time="0.001"', ""),
    (RUN, "2026-11-15T21:00:00Z", "yesterday"),
    (RUN, 'tests="3"', 'tests="3" hostname="h"'),
    (RUN, "<properties>", "<system-out/><properties>"),
    (RUN, '<property name="a" value="b"/>', '<property name="a"/>'),
    (RUN, '<property name="a" value="b"/>', '<property value="b"/>'),
    (RUN, '<properties><property name="a" value="b"/></properties>', ""),
    (RUN, 'name="a" classname="c"', 'classname="c"'),
    (RUN, 'name="a" classname="c"', 'name="a"'),
    (RUN, '<failure message="m" type="t">', '<failure type="t">'),
    (RUN, '<failure message="m" type="t">', '<failure message="m">'),
    (RUN, '<error message="m" type="t"/>', '<error message="m"/>'),
    (RUN, '<error message="m" type="t"/>', '<error type="t"/>'),
    (RUN, '<error message="m" type="t"/>', '<error message="m" type="t"/><skipped message="m"/>'),
    (RUN, '<skipped message="m"/>', "<skipped/>"),
    (RUN, '<skipped message="m"/>', '<skipped message="m" type="t"/>'),
    (RUN, '<skipped message="m"/>', '<skipped message="m">text</skipped>'),
    (RUN, "</testsuite>", "<testsuite/></testsuite>"),
    (RUN, "</testsuite>", "text</testsuite>"),
    (RUN, 'testsuite name="s"', 'testsuite xmlns="urn:other" name="s"'),
    (MARKS, 'testsuites name="s"', "testsuites"),
    (MARKS, 'testsuite name="s"', "testsuite"),
    (MARKS, 'tests="2" failures="1" errors="0">\n <testsuite ', 'errors="0">\n <testsuite '),
    (MARKS, '<failure message="m">', "<failure>"),
    (MARKS, "<system-out>note</system-out>", "<note/>"),
    (MARKS, "<system-out>note</system-out>", "<error/>"),
    (MARKS, "</testsuites>", '<testcase name="a" classname="b"/></testsuites>'),
]


@pytest.mark.parametrize("text", [RUN, MARKS])
def test_the_rules_accept_a_right_document(text: str) -> None:
    check_junit(parsed(text), (JENKINS,) if text is MARKS else BOTH)


@pytest.mark.parametrize(("right", "old", "new"), BROKEN)
def test_the_rules_refuse_a_document_that_breaks_one_of_them(
    right: str, old: str, new: str
) -> None:
    assert old in right
    with pytest.raises((etree.DocumentInvalid, AssertionError)):
        check_junit(parsed(right.replace(old, new, 1)), ())


@needs("junit-xsd")
@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("broken", ['tests="3"', "testcase"])
def test_the_schemas_of_others_are_asked_too(name: str, broken: str) -> None:
    wrong = parsed(RUN)
    if broken == "testcase":
        wrong[1].set("unknown", "x")
    else:
        del wrong.attrib["tests"]
    with pytest.raises(etree.DocumentInvalid):
        schema(name).assertValid(wrong)


def test_a_failure_names_the_command_that_repeats_it_as_it_was_run() -> None:
    text = junit([journal([record(Outcome.FAILED)])], ["--cases", "my suite"])
    assert "repeat with: tally suite run s/x/1 --implementation go --cases 'my suite'" in text


texts = st.text(st.characters(), max_size=20)


@settings(max_examples=60)
@given(st.lists(st.tuples(texts, st.sampled_from(Outcome), texts, texts), max_size=5))
def test_the_rules_accept_any_text(rows: list[tuple[str, Outcome, str, str]]) -> None:
    records = [record(o, name=n, text=t, known=k) for n, o, t, k in rows]
    root = parsed(junit([journal(records)]))
    check_junit(root)
    assert len(root.findall("testcase")) == len(rows)


def test_the_counts_are_those_of_the_elements() -> None:
    root = parsed(junit([journal(EVERY)]))
    found = {
        name: len(root.findall(f"testcase/{name}")) for name in ("failure", "error", "skipped")
    }
    assert found == {"failure": 2, "error": 1, "skipped": 4}
    attributes = [root.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert attributes == ["8", "2", "1", "4"]


def test_a_known_failure_is_skipped_and_one_that_passes_is_a_failure() -> None:
    known = [record(Outcome.FAILED, known="issue 7"), record(Outcome.PASSED, known="issue 8")]
    skipped, alarm = parsed(junit([journal(known)])).findall("testcase/*")
    assert (skipped.tag, skipped.get("message")) == ("skipped", "known failure: issue 7")
    assert (alarm.tag, alarm.get("type")) == ("failure", "alarm")
    assert "issue 8" in str(alarm.get("message"))


def test_a_failure_carries_the_differences_and_the_command_that_repeats_it() -> None:
    failed = record(Outcome.FAILED, name="public/trim/job number", text="x")
    (failure,) = parsed(junit([journal([failed])])).findall("testcase/failure")
    assert 'at /a: expected "x", found nothing' in str(failure.text)
    assert "tally suite run 'public/trim/job number' --implementation go" in str(failure.text)


def test_names_are_split_into_class_and_case() -> None:
    (case,) = parsed(junit([journal([record(Outcome.PASSED, name="a/b/c/d e")])])).findall(
        "testcase"
    )
    assert (case.get("classname"), case.get("name")) == ("go.a.b", "c/d e")


def test_what_xml_cannot_carry_stays_visible() -> None:
    (case,) = parsed(junit([journal([record(Outcome.PASSED, name="a/b/\x00\ud800")])])).findall(
        "testcase"
    )
    assert case.get("name") == "\\u0000\\ud800"

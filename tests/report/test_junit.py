"""Laws of the JUnit XML: both schemas accept it, whatever the names hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree  # type: ignore[import-untyped]

from tallystick.core.journal import Foot, Head, Journal, Record, count
from tallystick.core.verdict import Difference, Outcome, Verdict
from tallystick.report.junit import junit

SCHEMAS = Path(__file__).parents[3] / "shared" / "data" / "junit-xsd"
STRANGE = "\x00\x07\x1b[31m\u0085\ufffe\ud800<&\"'>]]>\n\t é 😀"


@pytest.fixture(scope="module", params=["jenkins-junit-10.xsd", "surefire-test-report.xsd"])
def schema(request: pytest.FixtureRequest) -> etree.XMLSchema:
    return etree.XMLSchema(etree.parse(SCHEMAS / request.param))


def journal(records: list[Record], subject: str = "go") -> Journal:
    head = Head("run", "2026-11-15T21:00:00Z", "standard", subject, {"tallystick": "0.1.0"})
    return Journal(head, tuple(records), Foot(count(records)))


def record(outcome: Outcome, *, name: str = "s/x/1", known: str = "", text: str = "") -> Record:
    differences = (Difference("/a", text, ...),) if outcome is Outcome.FAILED else ()
    return Record(Verdict(name, outcome, text, differences, 1234567.8949), known)


EVERY = [record(outcome, known=known, text=STRANGE) for outcome in Outcome for known in ("", "why")]


def parsed(text: str) -> etree._Element:
    return etree.fromstring(text.encode())


def test_both_schemas_accept_every_outcome(schema: etree.XMLSchema) -> None:
    schema.assertValid(parsed(junit([journal(EVERY)])))


def test_both_schemas_accept_several_subjects_none_and_a_run_cut_short(
    schema: etree.XMLSchema,
) -> None:
    short = Journal(journal([]).head, tuple(EVERY))
    schema.assertValid(parsed(junit([journal(EVERY), journal(EVERY, "node"), short])))
    schema.assertValid(parsed(junit([])))
    schema.assertValid(parsed(junit([journal([])])))


def test_a_failure_names_the_command_that_repeats_it_as_it_was_run() -> None:
    text = junit([journal([record(Outcome.FAILED)])], ["--cases", "my suite"])
    assert "again: tally suite run s/x/1 --subject go --cases 'my suite'" in text


texts = st.text(st.characters(), max_size=20)


@settings(max_examples=60)
@given(st.lists(st.tuples(texts, st.sampled_from(Outcome), texts, texts), max_size=5))
def test_both_schemas_accept_any_text(rows: list[tuple[str, Outcome, str, str]]) -> None:
    records = [record(o, name=n, text=t, known=k) for n, o, t, k in rows]
    root = parsed(junit([journal(records)]))
    for name in ("jenkins-junit-10.xsd", "surefire-test-report.xsd"):
        etree.XMLSchema(etree.parse(SCHEMAS / name)).assertValid(root)
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
    assert "tally suite run 'public/trim/job number' --subject go" in str(failure.text)


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

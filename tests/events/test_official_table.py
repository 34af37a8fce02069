"""Our own cases check all that each official case checks: the table, and the proof by mutants.

`official_table.json` names, for each official case, the cases of ours that check the same. The
impostors (`impostors.txt`) break one rule of a reader each, and ours must notice each of them in
every clone. Where the official files are given, no mutant may be noticed by an official case and
not by ours for that case: neither an impostor nor any of the mutants made from the source.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tallystick.core.verdict import Case
from tallystick.events.official import load_official, load_own
from tallystick.suites.cloudevents import CONFORMANCE
from tests.events.judge import answer, judge
from tests.events.mutants import EventMutant, generated_mutants, impostors, wrong_reader
from tests.official import CLOUDEVENTS, needs

TABLE: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parent / "official_table.json").read_text(encoding="utf-8")
)
IMPOSTORS = impostors()


@cache
def own_cases() -> dict[str, Case]:
    return {case.name.removeprefix("cloudevents/own/"): case for case in load_own()}


@cache
def official_cases() -> tuple[Case, ...]:
    return tuple(load_official(CLOUDEVENTS)) if CLOUDEVENTS else ()


@cache
def covering(official: str) -> tuple[Case, ...]:
    """Give our cases for an official one; for a name that is not in the table, all of its file."""
    _, form, file, name = official.split("/", maxsplit=3)
    row = TABLE[form].get(f"{file}/{name}")
    if row is not None:
        return tuple(own_cases()[f"{form}/{each}"] for each in row)
    same_file = [row for key, row in TABLE[form].items() if key.startswith(f"{file}/")]
    return tuple(own_cases()[f"{form}/{each}"] for row in same_file for each in row)


@cache
def cases_of(form: str) -> tuple[Case, ...]:
    return tuple(own_cases()[f"{form}/{each}"] for row in TABLE[form].values() for each in row)


def failing(cases: Iterable[Case], mutant: EventMutant | None = None) -> dict[str, bool]:
    """Give the names of the cases that a reader fails, and whether it answered: no crash.

    It only answers while it is wrong. What it answered is judged by the right code.
    """
    answers: list[tuple[Case, dict[str, Any] | None]] = []
    with wrong_reader(mutant) if mutant else nullcontext():
        for case in cases:
            try:
                answers.append((case, answer(case)))
            except Exception:  # noqa: BLE001 - a mutant may raise anything
                answers.append((case, None))
    return {
        case.name: result is not None
        for case, result in answers
        if result is None or judge(case, result)
    }


def noticing(mutant: EventMutant, cases: Iterable[Case]) -> set[str]:
    """Give the cases that say what is wrong with a mutant: a crash is no verdict."""
    return {name for name, answered in failing(cases, mutant).items() if answered}


def unnoticed(mutant: EventMutant) -> list[str]:
    """Give the official cases that notice a mutant which ours for them do not."""
    asked = [case for case in official_cases() if case.name.split("/")[1] in mutant.reached]
    noticed = failing(asked, mutant)
    ours = failing(
        {case.name: case for name in noticed for case in covering(name)}.values(), mutant
    )
    return [name for name in noticed if not any(case.name in ours for case in covering(name))]


def test_every_case_of_the_table_is_one_of_ours() -> None:
    named = {
        f"{form}/{each}" for form, rows in TABLE.items() for row in rows.values() for each in row
    }
    assert named - own_cases().keys() == set()
    assert all(row for rows in TABLE.values() for row in rows.values())


def test_the_table_names_the_cases_of_every_file() -> None:
    counts = {
        form: {
            file: sum(key.startswith(f"{file}/") for key in rows)
            for file in ("valid-events", "invalid-events", "valid-batches", "invalid-batches")
        }
        for form, rows in TABLE.items()
    }
    assert [tuple(counts[form].values()) for form in ("json", "protobuf", "xml")] == [
        (10, 25, 5, 3), (6, 20, 5, 2), (10, 27, 8, 7),
    ]  # fmt: skip


def test_a_case_of_the_table_expects_what_the_name_says() -> None:
    wrong = [
        (key, each)
        for form, rows in TABLE.items()
        for key, row in rows.items()
        for each in row
        if ("rejected" in own_cases()[f"{form}/{each}"].expect) != key.startswith("invalid-")
    ]
    assert wrong == []


@pytest.mark.parametrize("mutant", IMPOSTORS, ids=lambda mutant: mutant.name)
def test_our_cases_notice_a_reader_that_breaks_a_rule(mutant: EventMutant) -> None:
    assert mutant.formats
    assert [form for form in mutant.formats if not noticing(mutant, cases_of(form))] == []


def test_each_row_of_the_table_notices_some_reader() -> None:
    """No row stands there for show: each has a case that fails for one of the impostors."""
    rows = {(form, key): row for form, rows in TABLE.items() for key, row in rows.items()}
    for mutant in IMPOSTORS:
        for form in mutant.formats:
            names = noticing(mutant, cases_of(form))
            for key in [key for key in rows if key[0] == form]:
                if any(f"cloudevents/own/{form}/{each}" in names for each in rows[key]):
                    del rows[key]
    assert sorted(rows) == []


def test_nothing_is_left_of_a_wrong_reader() -> None:
    cases = [case for form in TABLE for case in cases_of(form)]
    assert all(failing(cases, mutant) for mutant in IMPOSTORS[:3])
    assert failing(cases) == {}


@needs(CONFORMANCE)
def test_every_official_case_is_in_the_table() -> None:
    """Invalid XML events apart: the published file may have more of them than the table names."""
    names = {"/".join(case.name.split("/")[1:]) for case in official_cases()}
    known = {f"{form}/{key}" for form, rows in TABLE.items() for key in rows}
    assert {name for name in names - known if not name.startswith("xml/invalid-events/")} == set()


@needs(CONFORMANCE)
@pytest.mark.parametrize("mutant", IMPOSTORS, ids=lambda mutant: mutant.name)
def test_what_an_official_case_notices_ours_for_it_notice(mutant: EventMutant) -> None:
    assert unnoticed(mutant) == []


@needs(CONFORMANCE)
def test_ours_notice_every_mutant_of_the_source_that_an_official_case_notices() -> None:
    judged = {mutant.name: unnoticed(mutant) for mutant in generated_mutants()}
    assert len(judged) > 500
    assert {name: cases for name, cases in judged.items() if cases} == {}

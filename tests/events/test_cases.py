"""Every official case in the folder, and every case of ours, on Tallystick itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tallystick.core.errors import Refused, Rejected, Unavailable
from tallystick.core.verdict import Case, Difference
from tallystick.events.golden import EVENTS
from tallystick.events.neutral import to_neutral
from tallystick.events.official import EVENT_RULES, load_official, load_own
from tallystick.events.subject import EVENT_OPERATIONS
from tallystick.suites.rules import RULES
from tests.events.places import OFFICIAL

OFFICIAL_CASES = load_official(OFFICIAL)
OWN_CASES = load_own()
ALL_RULES: dict[str, Any] = {**RULES, **EVENT_RULES}


def answer(case: Case) -> dict[str, Any]:
    try:
        return EVENT_OPERATIONS[case.operation](case.given)
    except (Rejected, Refused) as refusal:
        return {"rejected": str(refusal)}


def judge(case: Case, result: dict[str, Any]) -> list[Difference]:
    if "rejected" in result and "rejected" not in case.expect:
        return [Difference("/rejected", ..., result["rejected"])]
    return [found for name, want in case.expect.items() for found in ALL_RULES[name](want, result)]


def test_all_official_cases_are_loaded() -> None:
    counts = Counter(case.name.split("/")[1] for case in OFFICIAL_CASES)
    assert counts["json"] == 43
    assert counts["protobuf"] == 33
    assert counts["xml"] >= 52
    assert len({case.name for case in OFFICIAL_CASES}) == len(OFFICIAL_CASES)


@pytest.mark.parametrize("case", OFFICIAL_CASES, ids=lambda case: case.name)
def test_an_official_case_passes(case: Case) -> None:
    assert judge(case, answer(case)) == []


@pytest.mark.parametrize("case", OWN_CASES, ids=lambda case: case.name)
def test_a_case_of_our_own_passes(case: Case) -> None:
    assert judge(case, answer(case)) == []


def test_our_own_cases_are_many_and_have_names_of_their_own() -> None:
    assert len({case.name for case in OWN_CASES}) == len(OWN_CASES) >= 120
    assert {case.operation for case in OWN_CASES} == EVENT_OPERATIONS.keys()


@pytest.mark.parametrize("case", OFFICIAL_CASES + OWN_CASES, ids=lambda case: case.name)
def test_a_case_can_fail(case: Case) -> None:
    wrong = to_neutral(EVENTS["minimal"]) | {"id": "not this one"}
    for result in ({"event": wrong, "events": [wrong] * 9, "bytes_base64": "e30="}, {}):
        if case.expect != {"parsed": True} or not result:
            assert judge(case, result) != []


def test_a_folder_without_cases_says_so(tmp_path: Path) -> None:
    with pytest.raises(Unavailable):
        load_official(tmp_path)


def test_the_folder_of_one_format_is_enough() -> None:
    leaf = load_official(OFFICIAL / "format" / "xml")
    assert leaf == [case for case in OFFICIAL_CASES if case.name.startswith("cloudevents/xml/")]

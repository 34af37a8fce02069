"""Laws of names, globs and known failures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import UsageError
from tallystick.core.verdict import Case
from tallystick.suites.known import check_known, read_known, reason_for
from tallystick.suites.select import match, may_begin_with, select

names = st.lists(st.text("ab[]{}().+$^|\\ -", min_size=1, max_size=4), min_size=1, max_size=4).map(
    "/".join
)


@given(names)
def test_a_name_selects_itself(name: str) -> None:
    assert match(name)(name)


@given(names, names)
def test_a_name_without_stars_selects_only_itself_and_what_is_below(one: str, other: str) -> None:
    assert match(one)(other) == (other == one or other.startswith(f"{one}/"))


@pytest.mark.parametrize(
    ("pattern", "name", "selected"),
    [
        ("public/**", "public/trim/a/b", True),
        ("public", "public/trim/a", True),
        ("public/", "public/trim/a", True),
        ("pub", "public/trim/a", False),
        ("public/*/x", "public/trim/x", True),
        ("public/*/x", "public/trim/y/x", False),
        ("**/x", "public/trim/y/x", True),
        ("public/tr?m", "public/trim/x", True),
        ("public/tr?m", "public/tr/m/x", False),
        ("standard/**", "public/x", False),
    ],
)
def test_stars_stay_within_a_part_and_double_stars_cross(
    pattern: str, name: str, selected: bool
) -> None:
    assert match(pattern)(name) is selected


@pytest.mark.parametrize(
    ("pattern", "suite", "may"),
    [
        ("public/**", "public", True),
        ("public", "public", True),
        ("**/x", "public", True),
        ("*/trim", "public", True),
        ("standard/**", "public", False),
    ],
)
def test_a_suite_is_loaded_only_when_a_pattern_can_select_from_it(
    pattern: str, suite: str, may: bool
) -> None:
    assert may_begin_with(pattern, suite) is may


def case(name: str) -> Case:
    return Case(name, "decode", {}, {})


def test_a_pattern_that_selects_nothing_is_an_error() -> None:
    with pytest.raises(UsageError):
        select([case("a/b/c")], ["a/b/c", "a/x/**"])


def test_cases_keep_their_order_and_come_once() -> None:
    cases = [case("a/b/2"), case("a/b/1")]
    assert select(cases, ["a/b/1", "a/**"]) == cases


TOML = b"""
"a/**" = "for all"
[go]
"a/b/1" = "only Go"
"""


def test_known_failures_hold_for_all_or_for_one_subject() -> None:
    assert read_known(TOML, toml=True, subject="go") == {"a/**": "for all", "a/b/1": "only Go"}
    both = {"go", "node"}
    assert read_known(TOML, toml=True, subject="node", subjects=both) == {"a/**": "for all"}
    assert read_known(b'{"a":"b"}', toml=False, subject="go") == {"a": "b"}


@pytest.mark.parametrize(
    "text",
    [
        b"[]", b"{", b"\xff", b"[" * 99_999, b'{"a":""}', b'{"a":5}', b'{"a":" "}',
        b'{"go":{"a":null}}', b'{"rust":{"a":"not a subject here"}}',
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_used_is_a_mistake_in_the_request(text: bytes) -> None:
    with pytest.raises(UsageError):
        read_known(text, toml=False, subject="go")


def test_a_known_failure_must_match_a_case() -> None:
    check_known({"a/*/c": "why"}, [case("a/b/c")])
    with pytest.raises(UsageError):
        check_known({"a/*/d": "why"}, [case("a/b/c")])


def test_a_pattern_for_a_suite_that_is_not_loaded_is_left_alone() -> None:
    check_known({"public/backoff/**": "why"}, [case("a/b/c")])


def test_the_reason_is_found_by_pattern() -> None:
    assert reason_for({"a/**": "why"}, "a/b/c") == "why"
    assert reason_for({"a/**": "why"}, "b/b/c") == ""

"""d(n) = min(maximum, base * multiplier^(n-1)); full jitter draws from [0, d(n)]."""

from __future__ import annotations

import sys
from math import inf, isfinite, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import UsageError
from tallystick.runtime.retry import JITTERS, Backoff, backoff, backoff_range, draw

settings = st.builds(
    Backoff,
    base=st.floats(0, 1e6),
    multiplier=st.floats(0, 100),
    maximum=st.floats(0, 1e6),
    jitter=st.sampled_from(JITTERS),
)


@pytest.mark.parametrize(
    ("base", "multiplier", "maximum", "n", "expected"),
    [
        (0, 1, 0, 1, 0),
        (0, 2, 0, 5, 0),
        (5, 1, 0, 4, 5),
        (1, 2, 0, 1, 1),
        (1, 2, 0, 6, 32),
        (1, 2, 10, 4, 8),
        (1, 2, 10, 5, 10),
        (1, 2, 10, 20, 10),
        (20, 2, 10, 1, 10),
        (0.5, 3, 0, 3, 4.5),
        (2, 10, 0, 4, 2000),
        (8, 0.5, 0, 3, 2),
    ],
)
def test_the_formula(
    base: float, multiplier: float, maximum: float, n: int, expected: float
) -> None:
    assert backoff(Backoff(base, multiplier, maximum), n) == expected


def test_the_defaults_retry_at_once() -> None:
    assert [backoff(Backoff(), n) for n in range(1, 6)] == [0] * 5
    assert backoff_range(Backoff(), 3) == (0, 0)


@given(settings, st.integers(1, 10**6))
def test_a_wait_is_finite_and_within_its_cap(given_settings: Backoff, n: int) -> None:
    longest = backoff(given_settings, n)
    assert isfinite(longest)
    assert longest >= 0
    assert longest <= (given_settings.maximum or sys.float_info.max)


@given(settings, st.integers(1, 50), st.floats(0, 1))
def test_a_draw_stays_in_its_range(given_settings: Backoff, n: int, chance: float) -> None:
    shortest, longest = backoff_range(given_settings, n)
    assert longest == backoff(given_settings, n)
    assert shortest == (0 if given_settings.jitter == "full" else longest)
    assert shortest <= draw(given_settings, n, chance) <= longest


def test_full_jitter_reaches_both_ends() -> None:
    full = Backoff(4, 1, 0, "full")
    assert [draw(full, 1, chance) for chance in (0, 0.25, 1)] == [0, 1, 4]


@pytest.mark.parametrize(
    "wrong",
    [
        {"base": -1},
        {"base": nan},
        {"multiplier": -0.5},
        {"maximum": inf},
        {"maximum": -1},
        {"jitter": "some"},
    ],
)
def test_settings_that_make_no_sense_are_a_usage_error(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        Backoff(**wrong)
    assert caught.value.code == "backoff"


def test_attempts_are_counted_from_one() -> None:
    with pytest.raises(UsageError):
        backoff(Backoff(1), 0)

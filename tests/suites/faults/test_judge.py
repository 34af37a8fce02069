"""Sent against handled, as multisets."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.verdict import Outcome
from tallystick.suites.faults.judge import Account, Evidence, account, judge

SENT = Counter("abc")
TRIED = frozenset("abcd")


def counted(effects: str, begun: str = "abc", ended: str = "abc", skipped: str = "") -> Account:
    return account(
        Evidence(
            sent=SENT,
            tried=TRIED,
            effects=Counter(effects),
            begun=Counter(begun),
            ended=Counter(ended),
            skipped=Counter(skipped),
        )
    )


def test_an_honest_run_has_nothing_to_say() -> None:
    assert counted("abc") == Account(
        sent=3, effects=3, lost=0, unexpected=0, doubled=0, duplicated=0, absorbed=0, recovered=0
    )


def test_what_was_confirmed_and_had_no_effect_is_lost() -> None:
    assert counted("ab").lost == 1


def test_what_was_tried_and_not_confirmed_is_not_unexpected() -> None:
    assert counted("abcd", "abcd", "abcd").unexpected == 0


def test_what_nobody_sent_is_unexpected_as_an_effect_and_as_a_delivery() -> None:
    assert counted("abcx").unexpected == 1
    assert counted("abc", begun="abcx").unexpected == 1
    assert counted("abc", skipped="y").unexpected == 1


def test_a_second_effect_is_doubled_and_makes_up_for_no_loss() -> None:
    found = counted("aab")
    assert (found.doubled, found.lost, found.effects) == (1, 1, 3)


def test_a_second_delivery_is_a_duplicate_that_was_absorbed() -> None:
    found = counted("abc", begun="abca", ended="abca", skipped="bb")
    assert (found.duplicated, found.absorbed) == (3, 3)


def test_what_a_killed_worker_had_begun_and_took_effect_later_is_recovered() -> None:
    assert counted("abc", begun="aabc", ended="abc").recovered == 1
    assert counted("bc", begun="abc", ended="bc").recovered == 0


@given(st.sampled_from("abcd"), st.integers(1, 5))
def test_any_message_missing_or_too_many_fails_one_demand(one: str, count: int) -> None:
    sent = Counter("abcd")
    for effects in (sent - Counter({one: 1}), sent + Counter({one: count}), sent + Counter("z")):
        found = account(Evidence(sent=sent, tried=TRIED, effects=effects))
        verdicts = judge("redis", found, messages=4, injected={}, wanted={})
        assert Outcome.FAILED in {verdict.outcome for verdict in verdicts}


def test_a_fault_that_did_not_come_fails_the_run() -> None:
    wanted = {"kill_broker": 3, "cut": 0}
    for injected, outcome in (({"kill_broker": 3}, "passed"), ({"kill_broker": 2}, "failed")):
        verdicts = judge("x", counted("abc"), messages=3, injected=injected, wanted=wanted)
        assert verdicts[-1].case == "faults/x/faults"
        assert verdicts[-1].outcome == outcome

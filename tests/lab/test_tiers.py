"""Laws of the tiers on the in-process broker, and impostors that the judgement must catch."""

from __future__ import annotations

import pytest

from tallystick.core.errors import UsageError
from tallystick.core.verdict import Outcome, Verdict
from tallystick.lab.combinations import all_combinations
from tallystick.lab.probe_crash import Kept
from tallystick.lab.probe_vm import Fault, probe_vm
from tallystick.lab.profiles import find_profile
from tallystick.lab.raw import Refusal
from tallystick.lab.tier_table import TIERS, TierCase, tier_cases
from tallystick.lab.tiers import judge, judge_refusal, run_here

VM = find_profile("vm", "")

CAUGHT = {
    Fault.LOSES_ONE: {"/received", "/depth", "/returned", "/delivery_modes", "/body_frames"},
    Fault.DOUBLES_ONE: {"/received", "/depth", "/returned", "/delivery_modes", "/body_frames"},
    Fault.REORDERS: {"/received"},
    Fault.CORRUPTS: {"/altered", "/body_frames"},
    Fault.SHOWS_UNCOMMITTED: {"/early"},
    Fault.FORGETS_MODE: {"/delivery_modes"},
    Fault.SHARES_EXCLUSIVE: {"/second_consumer"},
    Fault.SWALLOWS_RETURNS: {"/returned"},
    Fault.WRONG_CODE: {"/returned"},
}


def run(tier: str) -> list[Verdict]:
    told: list[Verdict] = []
    run_here(tier_cases(tier, "vm"), VM, told.append)
    return told


@pytest.mark.parametrize(("tier", "circuits"), [("full", 9216), ("local", 768), ("4way", 145)])
def test_every_circuit_on_the_in_process_broker_is_as_the_text_says(
    tier: str, circuits: int
) -> None:
    told = run(tier)
    assert len({one.case for one in told}) == len(told) == circuits
    assert {one.outcome for one in told} == {Outcome.PASSED}


@pytest.mark.parametrize("tier", ["crash", "restart"])
def test_what_needs_a_process_is_declared_unsupported_in_process(tier: str) -> None:
    assert {one.outcome for one in run(tier)} == {Outcome.UNSUPPORTED}
    assert all(one.reason for one in run(tier))


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault is not Fault.NONE])
def test_each_impostor_is_caught_where_it_shows(fault: Fault) -> None:
    pointers = set()
    for parameters in all_combinations()[::5]:
        case = TierCase("tier/full/vm/x", "full", parameters)
        verdict = judge(case, VM, probe_vm(parameters, fault=fault))
        pointers |= {one.pointer for one in verdict.differences}
    assert pointers == CAUGHT[fault]


def missed(tier: str) -> set[Fault]:
    return {
        fault
        for fault in CAUGHT
        if not any(
            judge(one, VM, probe_vm(one.parameters, fault=fault)).differences
            for one in tier_cases(tier, "vm")
        )
    }


def test_the_three_way_tier_catches_every_impostor_and_pairs_miss_one() -> None:
    assert missed("3way") == set()
    assert missed("pairwise") == {Fault.FORGETS_MODE}


@pytest.mark.parametrize("tier", list(TIERS))
def test_a_case_can_be_repeated_alone_by_its_name(tier: str) -> None:
    every = tier_cases(tier, "qpid")
    assert len({one.name for one in every}) == len(every)
    for one in every[:: max(1, len(every) // 7)]:
        assert tier_cases(tier, "qpid", one.name) == (one,)


def test_an_unknown_tier_or_case_is_refused() -> None:
    with pytest.raises(UsageError):
        tier_cases("half", "vm")
    with pytest.raises(UsageError):
        tier_cases("full", "vm", "no such name")


@pytest.mark.parametrize("tier", ["full", "crash", "restart"])
def test_a_queue_that_a_new_rabbitmq_refuses_is_right_there_and_wrong_elsewhere(tier: str) -> None:
    transient = next(one for one in tier_cases(tier, "rabbitmq") if not one.parameters.durable)
    durable = next(one for one in tier_cases(tier, "rabbitmq") if one.parameters.durable)
    refusal = Refusal("connection", 541, "INTERNAL_ERROR")
    new, old = find_profile("rabbitmq", "4.3.1"), find_profile("rabbitmq", "3.10.8")
    assert judge_refusal(transient, new, refusal).outcome is Outcome.PASSED
    assert judge_refusal(transient, old, refusal).outcome is Outcome.FAILED
    assert judge_refusal(durable, new, refusal).outcome is Outcome.FAILED
    other = Refusal("channel", 406, "PRECONDITION_FAILED")
    assert judge_refusal(transient, new, other).outcome is Outcome.FAILED


def crash(cut: str, found: Kept, broker: str = "rabbitmq") -> Outcome:
    (case,) = tier_cases("crash", broker, f"tier/crash/{broker}/{cut}/none")
    return judge(case, find_profile(broker, "3.10.8"), found).outcome


def test_a_crash_is_judged_by_the_messages_left_and_their_flag() -> None:
    assert crash("auto/half", Kept(left=(2, 3), redelivered=2)) is Outcome.PASSED
    for wrong in (Kept(left=(2, 3), redelivered=0), Kept(left=(0, 1), redelivered=2),
                  Kept(left=(2,), redelivered=1), Kept(left=(2, 3), redelivered=2, altered=(2,)),
                  Kept(there=False)):  # fmt: skip
        assert crash("auto/half", wrong) is Outcome.FAILED
    every = Kept(left=(0, 1, 2, 3), redelivered=0)
    assert crash("tx/acked", every, "qpid") is Outcome.PASSED
    assert crash("tx/acked", every) is Outcome.FAILED

"""Tiers between clients: what a report shows must be what the profile says, and nothing else."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from tallystick.core.verdict import Outcome
from tallystick.lab.cases import Settings
from tallystick.lab.combinations import Parameters
from tallystick.lab.control import Control, Kind
from tallystick.lab.coordinator import begin
from tallystick.lab.expected import Observation, expected_results
from tallystick.lab.instance import Evidence, Finding, Instance
from tallystick.lab.pairs import trial_group
from tallystick.lab.payload import digest_of, make_body
from tallystick.lab.profiles import find_profile
from tallystick.lab.shell import Place
from tallystick.lab.stages import drained, prepared
from tallystick.lab.state import Action, Judged, Live, Plan, Stage
from tallystick.lab.tier_clients import CLIENT_TIERS, tier_groups, tier_trial
from tallystick.lab.vm_server import running_vm
from tallystick.report.table import repeat_command
from tests.lab.company import client, company, fresh, run

Client: Any = client.Client
VM = find_profile("vm", "1")
QPID = find_profile("qpid", "10.1.0")
RABBITMQ = find_profile("rabbitmq", "4.3.0")


def instance_of(given: Parameters, profile: Any) -> Instance:
    settings = Settings("r", "b")
    (instance,) = trial_group(settings, tier_trial(settings, "full", given, profile)).make("a", "c")
    return instance


def told(
    instance: Instance, seen: Observation, sent: tuple[int, ...] = (0, 1), **more: Any
) -> Evidence:
    """Write the reports of two clients that saw this."""
    size = instance.parts[0].body["message_bytes"]
    echo = [
        {"body": base64.b64encode(b"x" if seen.altered else make_body(1, number, size)).decode(),
         "properties": {"delivery_mode": mode}, "headers": {"SEQUENCE": ["I", str(number)]}}
        for number, mode in zip(seen.received, seen.delivery_modes, strict=True)
    ]  # fmt: skip
    level, _, code = seen.refused.partition(" ")
    closed = {"level": level, "code": int(code), "text": ""} if code else None
    fine = {"closed": None, "error": ""}
    returned = [[0, at, one] for at, one in enumerate(seen.returned)]
    digests = [digest_of(1, size, sent)]
    sender = {**fine, "closed": closed, "returned": returned, "digests": digests}
    receiver = {**fine, "echo": echo, **more}
    return Evidence(
        {
            0: Control(Kind.REPORT, {"MESSAGE_COUNT": 2}, sender),
            1: Control(Kind.REPORT, {"MESSAGE_COUNT": len(echo)}, receiver),
        },
        seen.depth,
    )


def judged(given: Parameters, profile: Any, **wrong: Any) -> Finding:
    instance = instance_of(given, profile)
    sight = expected_results(given, profile).sight
    return instance.judge(instance, told(instance, replace(sight, **wrong)))


PLAIN = Parameters()
UNROUTED = Parameters(bind_out_route=False, mandatory=True)
QUEUED = Parameters(consumer_out_active=False)


@pytest.mark.parametrize("given", [PLAIN, UNROUTED, QUEUED, Parameters(persistent=True)])
def test_what_the_profile_says_passes(given: Parameters) -> None:
    assert judged(given, VM).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("given", "wrong", "place"),
    [
        (PLAIN, {"received": (1,), "delivery_modes": (1,)}, "/received"),
        (PLAIN, {"received": (1, 0)}, "/received"),
        (PLAIN, {"delivery_modes": (2, 2)}, "/delivery_modes"),
        (PLAIN, {"altered": ("all",)}, "/altered"),
        (PLAIN, {"depth": 1}, "/depth"),
        (PLAIN, {"refused": "connection 540"}, "/refused"),
        (QUEUED, {"depth": 0}, "/depth"),
        (UNROUTED, {"returned": (312,)}, "/returned"),
        (UNROUTED, {"returned": (312, 313)}, "/returned"),
    ],
)
def test_what_it_does_not_say_is_a_deviation(
    given: Parameters, wrong: dict[str, Any], place: str
) -> None:
    found = judged(given, VM, **wrong)
    assert found.outcome is Outcome.FAILED
    assert place in [one.pointer for one in found.differences]


def test_a_race_is_held_to_conservation_and_waits_for_no_more_than_was_not_returned() -> None:
    race = Parameters(immediate=True)
    assert instance_of(race, QPID).parts[1].share == 2
    one = {"received": (1,), "delivery_modes": (1,), "returned": (313,)}
    assert judged(race, QPID, **one).outcome is Outcome.PASSED
    assert judged(race, QPID, **{**one, "returned": ()}).outcome is Outcome.FAILED


def test_a_sender_that_sent_nothing_is_caught_where_nothing_has_to_arrive() -> None:
    dropped = Parameters(bind_out_route=False)
    instance, sight = instance_of(dropped, VM), expected_results(dropped, VM).sight
    assert instance.judge(instance, told(instance, sight)).outcome is Outcome.PASSED
    found = instance.judge(instance, told(instance, sight, sent=()))
    assert [one.pointer for one in found.differences] == ["/0/sender/digest"]


def test_a_queue_that_must_be_refused_says_how() -> None:
    assert instance_of(PLAIN, RABBITMQ).refusal == "connection 541"
    assert instance_of(Parameters(durable=True), RABBITMQ).refusal == ""


@pytest.mark.parametrize(
    ("given", "refusal", "outcome"),
    [
        (PLAIN, "connection 541 INTERNAL_ERROR", Outcome.PASSED),
        (PLAIN, "channel 403 ACCESS_REFUSED", Outcome.ERRORED),
        (Parameters(durable=True), "connection 541 INTERNAL_ERROR", Outcome.ERRORED),
    ],
)
def test_a_refused_queue_is_right_only_where_the_profile_says_so(
    given: Parameters, refusal: str, outcome: Outcome
) -> None:
    state, _ = begin(Plan("r", (), ()), 0.0)
    state = replace(state, live={0: Live(instance_of(given, RABBITMQ), Stage.PREPARING, 0.0, 9.0)})
    actions: list[Action] = []
    drained(prepared(state, 0, refusal, actions), 0, 0, actions)
    (judgement,) = [one for one in actions if isinstance(one, Judged)]
    assert judgement.verdict.outcome is outcome


def test_a_report_that_breaks_the_protocol_or_lies_in_its_count_is_caught() -> None:
    instance = instance_of(PLAIN, VM)
    sight = expected_results(PLAIN, VM).sight
    assert instance.judge(instance, told(instance, sight, echo=[{}])).outcome is Outcome.ERRORED
    liar = told(instance, sight, error="x")
    assert instance.judge(instance, liar).outcome is Outcome.FAILED
    short = told(instance, sight)
    reports = {**short.reports, 1: replace(short.reports[1], fields={"MESSAGE_COUNT": 1})}
    assert instance.judge(instance, replace(short, reports=reports)).outcome is Outcome.FAILED


def test_python_to_python_over_the_vm_passes_or_declines_with_the_parameter() -> None:
    with running_vm() as vm, company(Place(vm.host, vm.port), {"a": Client}):
        groups = tier_groups(Settings(fresh(), "vm"), "pairwise", VM)
        book = run(Place(vm.host, vm.port), ["a"], groups=groups)
    assert len(book.verdicts) == 18
    counted = [one.outcome for one in book.verdicts]
    assert set(counted) == {Outcome.PASSED, Outcome.UNSUPPORTED}, book.verdicts
    declined = [one for one in book.verdicts if one.outcome is Outcome.UNSUPPORTED]
    assert all("immediate: " in one.reason or "no_local: " in one.reason for one in declined)


def test_the_command_that_repeats_a_case_names_the_tier() -> None:
    assert "pairwise" in CLIENT_TIERS
    name = "qpid/pairwise/tx/no_body/none/go/java"
    assert repeat_command("qpid", name) == (
        "tally lab run --tier pairwise --broker qpid --clients go,java "
        "--cases pairwise/tx/no_body/none/go/java"
    )

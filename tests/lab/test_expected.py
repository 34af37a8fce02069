"""Laws of the rule tables: the measured truth table (sheet, 5.3), departures, versions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tallystick.core.errors import UsageError
from tallystick.lab.combinations import Parameters, all_combinations
from tallystick.lab.expected import (
    Observation,
    compare,
    crash_cuts,
    decide,
    expected_crash,
    expected_restart,
    expected_results,
)
from tallystick.lab.profiles import PROFILES, Kind, Profile, find_profile

RABBITMQ = find_profile("rabbitmq", "3.10.8")
QPID = find_profile("qpid", "10.1.0")
VM = find_profile("vm", "")

# b c t i m -> (RabbitMQ, Broker-J) as measured: d delivered, q queued, . dropped, 2 or 3 returned
# with 312 or 313, X connection closed (540 on RabbitMQ, 312 on Broker-J), r a race
MEASURED = """\
00000 . .   00001 2 2   00010 X 2   00011 X 2   00100 . .   00101 2 X   00110 X 2   00111 X X
01000 . .   01001 2 2   01010 X 2   01011 X 2   01100 . .   01101 2 X   01110 X 2   01111 X X
10000 q q   10001 q q   10010 X 3   10011 X 3   10100 q q   10101 q q   10110 X 3   10111 X 3
11000 d d   11001 d d   11010 X r   11011 X r   11100 d d   11101 d d   11110 X r   11111 X r
"""
WORDS = iter(MEASURED.split())
CELLS = {cell: (rabbitmq, qpid) for cell, rabbitmq, qpid in zip(WORDS, WORDS, WORDS, strict=True)}

SIGNS = {
    (Kind.DELIVERED, 0): "d", (Kind.QUEUED, 0): "q", (Kind.DROPPED, 0): ".",
    (Kind.RETURNED, 312): "2", (Kind.RETURNED, 313): "3", (Kind.NONDETERMINISTIC, 313): "r",
    (Kind.REFUSED, 540): "X", (Kind.REFUSED, 312): "X",
}  # fmt: skip


def sign(parameters: Parameters, profile: Profile) -> str:
    result = expected_results(parameters, profile).result
    return SIGNS[result.kind, result.code]


def cell(one: Parameters) -> str:
    flags = (
        one.bind_out_route, one.consumer_out_active, one.transactional, one.immediate,
        one.mandatory,
    )  # fmt: skip
    return "".join(str(int(flag)) for flag in flags)


def test_the_tables_say_what_was_measured_in_all_32_cells() -> None:
    assert len(CELLS) == 32
    for one in all_combinations():
        assert (sign(one, RABBITMQ), sign(one, QPID)) == CELLS[cell(one)], one


def test_the_spec_s_own_example_holds_everywhere_but_where_a_reason_is_given() -> None:
    given = Parameters(bind_out_route=False, mandatory=True)
    for profile in (RABBITMQ, QPID, VM):
        sight = expected_results(given, profile).sight
        assert (sight.returned, sight.received) == ((312, 312), ())


@pytest.mark.parametrize("profile", [RABBITMQ, QPID, find_profile("rabbitmq", "4.3.0")])
def test_every_departure_from_the_text_has_a_reason_and_nothing_else_has(profile: Profile) -> None:
    for one, local in product(all_combinations(), (False, True)):
        ours = decide(one, profile, local=local)
        text = decide(one, VM, local=local)
        assert (ours.result != text.result) == bool(ours.departs), (one, local)


@pytest.mark.parametrize("profile", [RABBITMQ, QPID, VM, find_profile("rabbitmq", "4.3.0")])
def test_no_row_that_is_the_profile_s_own_is_idle(profile: Profile) -> None:
    sets = product(all_combinations(), (False, True))
    used = {id(decide(one, profile, local=local)) for one, local in sets}
    own = [row for row in profile.rows if row.departs or profile is VM]
    assert own
    assert [row for row in own if id(row) not in used] == []


def test_an_old_rabbitmq_takes_transient_queues_and_a_new_one_refuses_them() -> None:
    for version, refused in (("3.10.8", ""), ("4.2.9", ""), ("4.3.0", "connection 541"),
                             ("4.10.0", "connection 541")):  # fmt: skip
        found = expected_results(Parameters(), find_profile("rabbitmq", version))
        assert found.sight.refused == refused, version
        durable = expected_results(Parameters(durable=True), find_profile("rabbitmq", version))
        assert durable.result.kind is Kind.DELIVERED


def test_a_body_a_mode_and_an_exclusive_consumer_are_expected_to_be_seen() -> None:
    given = Parameters(persistent=True, message_size="multi_body", exclusive=True)
    sight = expected_results(given, RABBITMQ).sight
    assert sight.body_frames == (3, 3)
    assert sight.delivery_modes == (2, 2)
    assert sight.second_consumer == "channel 403"
    assert expected_results(given, QPID).sight.second_consumer == "connection 403"
    assert expected_results(replace(given, exclusive=False), QPID).sight.second_consumer == (
        "admitted"
    )
    idle = replace(given, consumer_out_active=False)
    assert expected_results(idle, RABBITMQ).sight.second_consumer == ""


def test_no_local_is_seen_on_one_connection_only_and_rabbitmq_ignores_it() -> None:
    given = Parameters(no_local=True)
    kinds = {
        (profile.name, local): expected_results(given, profile, local=local).result.kind
        for profile in (RABBITMQ, QPID, VM)
        for local in (False, True)
    }
    assert kinds.pop(("qpid", True)) is kinds.pop(("vm", True)) is Kind.QUEUED
    assert set(kinds.values()) == {Kind.DELIVERED}


def test_what_a_library_cannot_say_is_not_applicable_with_its_reason() -> None:
    cannot = {"immediate": "the library has no such flag", "ack_mode=tx": "no transactions"}
    asked = expected_results(Parameters(immediate=True), VM, cannot=cannot)
    assert (asked.result.kind, asked.departs) == (Kind.NOT_APPLICABLE, cannot["immediate"])
    tx = expected_results(Parameters(ack_mode="tx"), VM, cannot=cannot)
    assert tx.result.kind is Kind.NOT_APPLICABLE
    assert expected_results(Parameters(), VM, cannot=cannot).result.kind is Kind.DELIVERED


RACE = Parameters(immediate=True)
GOOD = Observation(second_consumer="admitted", returned=(313,), received=(1,))


def test_a_race_is_held_to_conservation() -> None:
    expected = expected_results(RACE, QPID)
    assert compare(expected, GOOD) == ()
    for good in (replace(GOOD, returned=(), received=(0, 1)),
                 replace(GOOD, returned=(313, 313), received=())):  # fmt: skip
        assert compare(expected, good) == ()


@pytest.mark.parametrize(
    "change",
    [{"received": ()}, {"received": (0, 1)}, {"returned": (312,)}, {"depth": 1},
     {"returned": (), "received": (1, 1)}, {"altered": ("message 1 at byte 0",)},
     {"refused": "connection 540"}, {"early": 1}, {"second_consumer": ""}],
)  # fmt: skip
def test_a_race_that_loses_or_doubles_is_noticed(change: dict[str, object]) -> None:
    assert compare(expected_results(RACE, QPID), replace(GOOD, **change)) != ()  # type: ignore[arg-type]


def test_acknowledge_modes_differ_under_a_crash_as_measured() -> None:
    rabbit = {cut: expected_crash(cut, RABBITMQ)[0] for cut in crash_cuts()}
    assert rabbit["auto/half"] == rabbit["tx/half"] == (2, 2)
    assert rabbit["client/before"] == rabbit["dups_ok/before"] == rabbit["tx/acked"] == (4, 4)
    assert rabbit["no_ack/before"] == rabbit["pre_ack/before"] == (0, 0)
    left, why = expected_crash("tx/acked", QPID)
    assert left == (4, 0)
    assert why
    assert not any(expected_crash(cut, RABBITMQ)[1] for cut in crash_cuts())


def test_only_a_durable_queue_and_a_persistent_message_survive_a_restart() -> None:
    assert expected_restart(durable=True, persistent=True) == (True, 2)
    assert expected_restart(durable=True, persistent=False) == (True, 0)
    assert expected_restart(durable=False, persistent=True) == (False, 0)


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(UsageError):
        find_profile("mosquitto", "2")
    assert set(PROFILES) == {"rabbitmq", "qpid", "vm"}

"""Impostors of the lab's pure code: one piece of a function changed, and a law must notice.

The rows have the grammar of `tests/impostors/rows`, without the globs: what notices is `holds`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tallystick.core.errors import Rejected, Unavailable
from tallystick.core.journal import Head, Journal, Record
from tallystick.core.verdict import Outcome, Verdict
from tallystick.lab import (
    clocks,
    combinations,
    covering,
    expected,
    fields,
    perf,
    probe,
    probe_crash,
    probe_vm,
    profiles,
    tier_table,
    tiers,
    timing,
    vm_broker,
    vm_frames,
)
from tallystick.lab.probe_vm import Fault
from tallystick.report import diff, page
from tests.impostors.patches import Patches
from tests.impostors.rows import impostors_in
from tests.lab import test_coordinator, test_reports

IMPOSTORS = impostors_in(Path(__file__).parent / "impostors.txt")
SAMPLE = combinations.all_combinations()[::37]


def versions_hold() -> bool:
    refused = [
        expected.decide(
            combinations.Parameters(), profiles.find_profile("rabbitmq", version)
        ).departs
        for version in ("3.10.8", "4.2.9", "4.3", "4.3.0", "4.10.1")
    ]
    return [bool(text) for text in refused] == [False, False, True, True, True]


def circuits_hold() -> bool:
    vm = profiles.find_profile("vm", "")
    for local in (False, True):
        tier = "local" if local else "full"
        for one in SAMPLE:
            seen = probe_vm.probe_vm(one, local=local)
            if tiers.judge(tier_table.TierCase("n", tier, one), vm, seen).differences:
                return False
    caught = {
        fault
        for fault in Fault
        for one in SAMPLE
        if tiers.judge(
            tier_table.TierCase("n", "full", one), vm, probe_vm.probe_vm(one, fault=fault)
        ).differences
    }
    return caught == set(Fault) - {Fault.NONE}


def races_hold() -> bool:
    given = combinations.Parameters(immediate=True)
    race = expected.expected_results(given, profiles.find_profile("qpid", "10.1.0"))
    good = expected.Observation(second_consumer="admitted", returned=(313,), received=(1,))
    bad = [
        replace(good, received=()), replace(good, returned=(312,)), replace(good, depth=1),
        replace(good, returned=(), received=(1, 1)), replace(good, early=1),
        replace(good, second_consumer=""),
    ]  # fmt: skip
    return not expected.compare(race, good) and all(expected.compare(race, one) for one in bad)


def declared_hold() -> bool:
    vm = profiles.find_profile("vm", "")
    cannot = {"immediate": "no", "ack_mode=tx": "no"}
    kinds = [
        expected.expected_results(one, vm, cannot=cannot).result.kind
        for one in (
            combinations.Parameters(), combinations.Parameters(immediate=True),
            combinations.Parameters(ack_mode="tx"),
        )
    ]  # fmt: skip
    none = profiles.Kind.NOT_APPLICABLE
    return [kind is none for kind in kinds] == [False, True, True]


def crashes_hold() -> bool:
    tags = [1, 2, 3, 4]
    count = {
        (mode, point): len(probe_crash._steps(mode, point, tags))
        for mode in combinations.ACK_MODE_NAMES
        for point in ("before", "half", "acked", "rolled_back", "after")
    }
    some = {
        ("auto", "before"): 0, ("auto", "half"): 2, ("auto", "after"): 4, ("client", "after"): 1,
        ("no_ack", "after"): 0, ("pre_ack", "before"): 4, ("tx", "half"): 3, ("tx", "acked"): 4,
        ("tx", "rolled_back"): 5, ("tx", "after"): 5,
    }  # fmt: skip
    client = probe.acknowledgements("client", tags)[0]
    kept = expected.expected_restart(durable=True, persistent=False) == (True, 0)
    return all(count[key] == n for key, n in some.items()) and client.delivery_tag == 4 and kept


def clocks_hold() -> bool:
    near = clocks.Sample(1_000, 6_100, 6_150, 1_250)
    quick_there = clocks.Sample(2_000, 7_040, 12_000, 17_100)
    quick_back = clocks.Sample(20_000, 30_000, 30_000, 25_060)
    later = clocks.Sample(10**9, 10**9 + 5_100, 10**9 + 5_150, 10**9 + 250)
    drifted = 10**9 + 105_100
    narrow = clocks.intersect([near, quick_there, quick_back])
    fitted = clocks.fit([[near, quick_there], [later]])
    latency = clocks.measure_latency(
        100, clocks.Estimate(1_000.0, 3.0), 1_700, clocks.Estimate(-500.0, 4.0, 0.0, 0.0, 0.01)
    )
    return (
        near.round_trip == 200
        and abs(narrow.offset - 4_990) < 5
        and 50 < narrow.bound < 55
        and _contradict([near, clocks.Sample(2_000, 9_000, 9_000, 2_100)])
        and not _contradict([near, clocks.Sample(10**9, drifted, drifted, 10**9 + 200)])
        and clocks.fit([[quick_there], [quick_back]]).bound < 60
        and clocks.wants_more([near] * 24)
        and not clocks.wants_more([near] * 25)
        and clocks.wants_more([_SLOW] * 375)
        and not clocks.wants_more([_SLOW] * 400)
        and abs(fitted.offset - 4_970) < 2
        and 70 < fitted.bound < 73
        and abs(fitted.rate) <= fitted.rate_bound < clocks.WORST_RATE / 100
        and fitted.bound_at(fitted.at + 10**9) > fitted.bound
        and (latency.value, latency.bound) == (100.0, 24.0)
    )


_SLOW = clocks.Sample(0, 1_000_000, 1_000_000, 2_000_000)


def _contradict(burst: list[clocks.Sample]) -> bool:
    try:
        clocks.intersect(burst)
    except Unavailable:
        return True
    return False


def shifts_hold() -> bool:
    before = {"s": clocks.Estimate(100.0, 3.0), "r": clocks.Estimate(40.0, 4.0)}
    after = {"s": clocks.Estimate(90.0, 1.0), "r": clocks.Estimate(45.0, 1.0)}
    exact = {"s": clocks.Estimate(100.0, 0.0), "r": clocks.Estimate(40.0, 0.0)}
    return (
        timing.shift_of(before, "s", "r") == 60
        and timing.error_of((before,), "s", "r") == 9
        and timing.error_of((before, after), "s", "r") == 19
        and timing.error_of((after, before), "s", "r") == 24
        and timing.error_of((before, exact), "s", "r") == 9
    )


def latencies_hold() -> bool:
    histogram, zeros = perf.merge([{-300: 2, 500: 1}, {700: 1}], 300.0)
    if (zeros, histogram.get_total_count(), histogram.get_max_value()) != (2, 4, 700):
        return False
    for wrong, fault in (({-301: 1}, Rejected), ({10**15: 1}, ValueError)):
        try:
            perf.merge([wrong], 300.0)
        except fault:
            continue
        return False
    return bool(perf.describe(histogram)["latency_ns"]["p50"] == 0)


def names_hold() -> bool:
    good = all(combinations.read_name(combinations.name_of(one)) == one for one in SAMPLE)
    rows = covering.cover(2)
    whole, part = covering.count_tuples(rows, 2), covering.count_tuples(rows[1:], 2)
    pairs = (
        page.pair_of("q", "q/t/a/b"),
        page.pair_of("q", "tier/full/q/b"),
        page.pair_of("q", "q/t/b"),
    )
    return good and whole == (324, 324) and part[0] < 324 and pairs == (("a", "b"), None, None)


def headers_hold() -> bool:
    table = b"\x00\x00\x00\x01t"
    behind = fields.headers_of(bytes(12) + b"\xe0\x00\x01a\x02bb" + table + b"\x01")
    case = fields.FieldCase("n", "I", b"", "identical")
    return (
        behind == table
        and fields.headers_of(bytes(14) + table) == b""
        and fields.judge_field(case, "dropped").outcome is Outcome.FAILED
        and fields.judge_field(replace(case, expected=""), "x").outcome is Outcome.UNSUPPORTED
    )


def changes_hold() -> bool:
    p, f, e, u = Outcome.PASSED, Outcome.FAILED, Outcome.ERRORED, Outcome.UNSUPPORTED
    told = {
        ((p,), (f,)): "new", ((), (f,)): "new", ((u,), (e,)): "new", ((f,), (p,)): "fixed",
        ((f,), (e,)): "changed", ((p,), (p, f)): "flaky", ((p, f), (p,)): "flaky",
        ((p, f, f), (f,)): "flaky", ((p, f, p), (p,)): "flaky", ((), (p,)): "appeared",
        ((p,), ()): "gone", ((p,), (u,)): "gone",
        ((f,), (u,)): "changed", ((p,), (p,)): "",
    }  # fmt: skip

    def run(outcomes: tuple[Outcome, ...]) -> list[Journal]:
        records = tuple(Record(Verdict("n", one)) for one in outcomes)
        return [Journal(Head("r", "t", "s", "x"), records)]

    for (old, new), kind in told.items():
        changes = diff.compare_journals(run(old), run(new))
        if [name for name, found in changes.items() if found] != ([kind] if kind else []):
            return False
    return diff.regressed({"new": [], "gone": ["x"]}) and not diff.regressed(
        {"new": [], "gone": []}
    )


def frames_hold() -> bool:
    whole = vm_frames.join(1, 7, b"abc")
    wrong = (b"G" + whole[1:], vm_frames.join(1, 7, bytes(100)), whole[:-1] + b"x")
    if [_refused(one) for one in wrong] != [501] * 3:
        return False
    if _refused(whole[:-1]):
        return False
    buffer = bytearray(whole + b"z")
    return vm_frames.cut(buffer, 100) == (1, 7, b"abc") and buffer == b"z"


def _refused(data: bytes) -> int:
    try:
        vm_frames.cut(bytearray(data), 100)
    except vm_broker.Fault as fault:
        return fault.code
    return 0


def lists_hold() -> bool:
    laws: list[Callable[[], None]] = [
        test_reports.test_batches_of_a_sender_are_one_list_for_each_publisher,
        test_reports.test_streams_are_by_consumer_sender_correlation_id_and_publisher,
        test_reports.test_an_altered_message_is_told_with_its_offset_and_hash,
        partial(test_reports.test_a_message_of_no_client_is_unexpected, "CLIENT_NAME"),
        test_reports.test_what_was_put_back_is_no_arrival_but_stands_in_the_echo,
        test_reports.test_a_body_that_is_null_is_no_echo,
        test_reports.test_the_time_of_a_batch_ends_with_it,
        test_reports.test_a_latency_is_corrected_by_the_clocks,
        test_reports.test_where_bodies_are_not_looked_at_there_is_no_digest,
        test_reports.test_the_case_goes_before_the_command_line_and_that_before_the_defaults,
        test_reports.test_an_inactive_consumer_is_none,
        test_coordinator.test_who_speaks_another_protocol_is_told_and_takes_no_part,
        *(
            partial(
                test_reports.test_a_command_line_that_makes_no_sense_is_a_reason_and_no_fault_of_ours,
                *row,
            )
            for row in test_reports.SENSELESS
        ),
        test_reports.test_a_header_value_in_the_words_of_a_library_is_the_tagged_one,
        test_reports.test_a_string_that_is_no_text_is_told_as_bytes,
        test_reports.test_what_went_wrong_first_stays_and_a_connection_goes_before_its_channels,
        *(
            partial(test_reports.test_who_can_play_which_role_follows_from_what_it_declared, *row)
            for row in test_reports.ROWS
        ),
    ]
    try:
        for law in laws:
            law()
    except (AssertionError, LookupError, TypeError, ValueError):
        return False
    return True


LAWS = (
    lists_hold, shifts_hold, latencies_hold, versions_hold, races_hold, declared_hold, crashes_hold,
    clocks_hold, frames_hold, headers_hold, changes_hold, names_hold, circuits_hold,
)  # fmt: skip


def holds() -> bool:
    return all(law() for law in LAWS)


def test_without_an_impostor_every_law_holds() -> None:
    assert [law.__name__ for law in LAWS if not law()] == []


@pytest.mark.parametrize("name", IMPOSTORS)
def test_an_impostor_is_noticed(name: str) -> None:
    with Patches() as patches:
        IMPOSTORS[name](patches)
        assert not holds()

"""Perf circuits: every latency is right within its error, whatever the clocks say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.cli import main
from tallystick.core.errors import Rejected
from tallystick.core.journal import Head, Journal, Record, read, write_head, write_record
from tallystick.core.verdict import Outcome, Verdict
from tallystick.lab import perf
from tallystick.lab.cases import Settings
from tallystick.lab.clocks import Estimate
from tallystick.lab.control import Control, Kind
from tallystick.lab.coordinator import begin, step
from tallystick.lab.instance import Evidence
from tallystick.lab.perf import Load, describe, merge, perf_groups
from tallystick.lab.shell import Place
from tallystick.lab.state import (
    Drain,
    Drained,
    Event,
    Heard,
    Judged,
    Limits,
    Plan,
    Prepare,
    Prepared,
    Say,
)
from tallystick.lab.timing import error_of, shift_of
from tallystick.lab.vm_server import running_vm
from tallystick.report.perf import show_perf
from tallystick.report.table import repeat_command
from tests.lab.company import PATIENCE, client, company, fresh, run
from tests.lab.test_coordinator import Honest

Client: Any = client.Client
MESSAGES = 40
SECOND = 1_000_000_000


class Skewed(Honest):
    """A client whose clock is off and runs at a rate of its own; `world` has the true time."""

    def __init__(self, name: str, offset: int, rate: float, world: World) -> None:
        super().__init__(name)
        self.offset, self.rate, self.world = offset, rate, world

    def clock(self, true: int) -> int:
        return true + self.offset + round(true * self.rate)

    def report(self, asked: Control) -> Control:
        if self.roles[asked.assignment].fields["ROLE"] == "SENDER":
            return super().report(asked)
        messages = [
            {"consumer": 0, "redelivered": False, "put_back": False, "arrived_ns": str(late),
             "length": 1, "sha256": "", "differs": -1,
             "properties": {"correlation_id": self.world.correlation},
             "headers": {"CLIENT_NAME": ["S", "a"], "PUBLISHER": ["I", "0"],
                         "SEQUENCE": ["I", str(number)], "SENT_NS": ["l", "0"]}}
            for number, late in enumerate(self.world.raw())
        ]  # fmt: skip
        return self.tell(asked, len(messages), messages)


class World:
    """Two clients and the ways between them; every trip takes what `delays` says."""

    def __init__(self, a: tuple[int, float], b: tuple[int, float], delays: list[int]) -> None:
        self.now, self.delays, self.correlation = SECOND, delays, ""
        self.people = {"a": Skewed("a", *a, self), "b": Skewed("b", *b, self)}
        self.latencies: list[int] = []
        self.begun = 0

    def delay(self) -> int:
        self.delays.append(self.delays.pop(0))
        return self.delays[-1]

    def raw(self) -> list[int]:
        """Give what the receiver reads off: its own clock less the sender's stamp."""
        a, b = self.people["a"], self.people["b"]
        times = enumerate(self.latencies)
        sent = [(self.begun + number * SECOND // 10, late) for number, late in times]
        return [b.clock(at + late) - a.clock(at) for at, late in sent]

    def answer(self, asked: Control, name: str) -> Heard | None:
        person, sent = self.people[name], self.now
        self.now += self.delay()
        if asked.kind is Kind.START:
            self.correlation, self.begun = asked.assignment, self.now
            self.latencies = [self.delay() for _ in range(MESSAGES)]
            self.now += MESSAGES * SECOND // 10
        reply = person.reply(asked)
        if asked.kind is Kind.CLOCK_SYNCH:
            there = person.clock(self.now)
            reply = person.say(asked.kind, asked, T1=sent, T2=there, T3=there)
        self.now += self.delay()
        return Heard(self.now / SECOND, reply, self.now) if reply else None

    def run(self) -> Verdict:
        load = Load(messages=MESSAGES, size=1)
        (group, _) = perf_groups(Settings("r", "x"), load)
        only = replace(group, make=lambda *_: group.make(["a"], ["b"]))
        plan = Plan("r", (only,), ("a", "b"), Limits(ping=10**6, answer=10**6), parallel=1)
        state, actions = begin(plan, self.now / SECOND)
        events: list[Event] = []
        while True:
            for action in actions:
                match action:
                    case Say(control, to):
                        names = [to] if to else list(self.people)
                        found = [self.answer(control, name) for name in names]
                        events += [one for one in found if one]
                    case Prepare(number, _):
                        events.append(Prepared(self.now / SECOND, number))
                    case Drain(number, _):
                        events.append(Drained(self.now / SECOND, number))
                    case Judged(verdict):
                        return verdict
            state, actions = step(state, events.pop(0))


offsets = st.integers(-(10**12), 10**12)
rates = st.floats(-100e-6, 100e-6)


@settings(max_examples=30)
@given(st.tuples(offsets, rates), st.tuples(offsets, rates),
       st.lists(st.integers(1_000, 5_000_000), min_size=1, max_size=30))  # fmt: skip
def test_every_latency_is_right_within_its_error_whatever_the_clocks_say(
    a: tuple[int, float], b: tuple[int, float], delays: list[int]
) -> None:
    world = World(a, b, delays)
    verdict = world.run()
    assert verdict.outcome is Outcome.PASSED, verdict
    error, told = verdict.measured["error_ns"], verdict.measured["latency_ns"]
    for name, true in (("min", min(world.latencies)), ("max", max(world.latencies))):
        assert abs(told[name] - true) <= error + true // 500 + 2_000


def test_a_clock_that_is_set_in_between_is_a_failure_and_nothing_is_clamped() -> None:
    world = World((0, 0.0), (0, 0.0), [50_000])
    world.people["b"].clock = lambda true: true - SECOND * (world.begun > 0)  # type: ignore[method-assign]
    found = world.run()
    assert found.outcome is Outcome.PASSED, "what the second burst saw is in the error"
    assert found.measured["error_ns"] > SECOND
    assert found.measured["zero_within_error"] == MESSAGES
    world = World((0, 0.0), (0, 0.0), [50_000])
    world.raw = lambda: [-SECOND] * MESSAGES  # type: ignore[method-assign]
    found = world.run()
    assert found.outcome is Outcome.FAILED
    assert "synchronisation failure" in found.reason
    assert found.differences[0].found == -SECOND


def test_a_clock_that_jumps_while_it_is_asked_fails_the_case_with_the_clients_name() -> None:
    world = World((0, 0.0), (0, 0.0), [50_000])
    readings = iter(range(10**6))
    world.people["b"].clock = lambda true: true + SECOND * (next(readings) % 2)  # type: ignore[method-assign]
    found = world.run()
    assert found.outcome is Outcome.FAILED
    assert found.reason.startswith("b: synchronisation failure")


def test_a_negative_latency_is_zero_inside_the_error_and_rejected_outside() -> None:
    histogram, zeros = merge([{-300: 2, 500: 1}, {700: 1}], 300.0)
    assert (zeros, histogram.get_total_count(), histogram.get_min_value()) == (2, 4, 0)
    assert describe(histogram)["latency_ns"]["max"] == 700
    with pytest.raises(Rejected, match="301 ns before it was sent"):
        merge([{-301: 1}], 300.0)
    with pytest.raises(ValueError, match="is not a valid latency"):
        merge([{10**15: 1}], 300.0)


def test_a_rate_leaves_out_the_pauses_between_batches() -> None:
    """Of 3 + 3 messages, 2 + 2 came after the first of their batch: in 2 + 2 ns."""
    spans = [("10", "12"), ("900", "902")]
    found = judge_batches(spans)
    assert (found["sent_per_second"], found["received_per_second"]) == (1.5 * SECOND, 1.0 * SECOND)


def judge_batches(spans: list[tuple[str, str]]) -> Mapping[str, Any]:
    """Judge 6 messages that went from a to b in two batches."""
    (group, _) = perf_groups(Settings("r", "x"), Load(messages=3, size=1))
    (instance,) = group.make(["a"], ["b"])
    digest = {"digest": "", "redelivered": "", "altered": []}
    stream = {"consumer": 0, "sender": "a", "correlation_id": "c", "publisher": 0,
              "received": "0-5", **digest}  # fmt: skip
    quiet: dict[str, Any] = {"closed": None, "error": "", "left": 0, "returned": [], "spans": spans}
    sent = {**quiet, "sent": ["0-5"], "digests": [""]}
    received = {**quiet, "streams": [stream], "unexpected": [], "latency": {5: 6}}
    told = {
        at: Control(Kind.REPORT, {"CORRELATION_ID": "c", "MESSAGE_COUNT": 6}, body, "")
        for at, body in enumerate((sent, received))
    }
    exact = {name: Estimate(0.0, 0.0) for name in ("a", "b")}
    verdict = perf.judge_perf(instance, Evidence(told, 0, 2, (exact,)))
    assert verdict.outcome is Outcome.PASSED, verdict
    return verdict.measured


def test_the_shift_is_the_senders_offset_less_the_receivers() -> None:
    before = {"s": Estimate(100.0, 3.0), "r": Estimate(40.0, 4.0)}
    after = {"s": Estimate(90.0, 1.0), "r": Estimate(45.0, 1.0)}
    assert shift_of(before, "s", "r") == 60
    assert shift_of({}, "s", "s") == 0
    assert error_of((before,), "s", "r") == 3 + 1 + 4 + 1
    assert error_of((before, after), "s", "r") == 10 + 1 + 1 + 5 + 1 + 1
    assert error_of(({}, {}), "s", "s") == 0


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with running_vm() as vm:
        yield Place(vm.host, vm.port)


def test_python_to_python_over_the_vm_is_measured_and_told(place: Place) -> None:
    groups = perf_groups(Settings(fresh(), "vm"), Load(30, 100, 1, 16, {"ack_mode": "no_ack"}))
    limits = Limits(PATIENCE, PATIENCE, settle=PATIENCE)
    with company(place, {"a": Client, "b": Client}):
        book = run(place, ("a", "b"), groups=groups, limits=limits, parallel=1)
    assert [one.outcome for one in book.verdicts] == [Outcome.PASSED] * 8, book.verdicts
    for verdict in book.verdicts:
        alone = verdict.case.endswith(("/a/a", "/b/b"))
        assert (verdict.measured["error_ns"] == 0) == alone
        kept = HdrHistogram.decode(verdict.measured["histogram"])
        assert kept.get_total_count() == verdict.measured["messages"] in (30, 100)
    head = Head("1", "t", "lab", "vm")
    lines = [write_head(head), *(write_record(Record(one)) for one in book.verdicts)]
    (journal,) = read(lines)
    assert [one.verdict.measured for one in journal.records] == [
        dict(one.measured) for one in book.verdicts
    ]
    table = show_perf(journal)
    assert table.count("a to b") == 2
    assert table.count("\nall ") == 2
    assert show_perf(Journal(head)) == ""


def test_more_messages_than_a_report_can_list_go_in_batches(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tallystick.lab.perf._BATCH", 10)
    groups = perf_groups(Settings(fresh(), "vm"), Load(29, size=16))[:1]
    limits = Limits(PATIENCE, PATIENCE, settle=PATIENCE)
    with company(place, {"a": Client}):
        (found,) = run(place, ("a",), groups=groups, limits=limits).verdicts
    assert (found.outcome, found.measured["messages"]) == (Outcome.PASSED, 30), found
    assert found.measured["sent_per_second"] > 0


def test_the_command_that_repeats_a_pair_has_its_load() -> None:
    name = "qpid/Latency/rate=5,duration=2,size=9/go/java"
    assert repeat_command("qpid", name) == (
        "tally lab perf --rate=5 --duration=2 --size=9 --broker qpid --clients go,java "
        "--cases Latency/rate=5,duration=2,size=9/go/java"
    )


def test_the_command_takes_clients_that_listen_already(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    key = f"iop.{fresh()}"
    words = (
        f"lab perf -b {place.host} -p {place.port} --names a --enlist 60 --set control_key={key}"
    )
    with company(place, {"a": Client}, control_key=key):
        assert (
            main(
                [*words.split(), *["--messages", "5", "--rate", "50", "--duration", "1", "--json"]]
            )
            == 0
        )
    told = json.loads(capsys.readouterr().out)
    assert told["passed"] == len(told["measured"]) == 2

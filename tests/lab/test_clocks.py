"""Laws of synchronised clocks: the truth is always inside the bound, and nothing is clamped."""

from __future__ import annotations

import asyncio
import json
import socket
from struct import Struct
from threading import Event, Thread
from time import monotonic_ns

import pika  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.cli import main
from tallystick.core.errors import Unavailable
from tallystick.lab.clocks import (
    ZERO,
    Estimate,
    Latency,
    LocalClock,
    Sample,
    State,
    fit,
    intersect,
    measure_latency,
    wants_more,
)
from tallystick.lab.clocks_net import BrokerClock, UdpClock, answer_broker
from tallystick.lab.raw import read_address
from tallystick.lab.vm_server import running_vm

delays = st.integers(1, 5_000_000)
offsets = st.integers(-(10**15), 10**15)
rates = st.floats(-190e-6, 190e-6)
FLOATS = 1.0  # nanoseconds: at 10^15 a float has steps of 0.1


class World:
    """A reference clock that is off and drifts, seen over a network with delays of its own."""

    def __init__(self, offset: int, rate: float) -> None:
        self.offset, self.rate, self.now = offset, rate, 10**12

    def truth(self, local: float) -> float:
        return self.offset + self.rate * (local - 10**12)

    def read(self) -> int:
        return round(self.now + self.truth(self.now))

    def ask(self, out: int, work: int, back: int) -> Sample:
        sent = self.now
        self.now += out
        there = self.read()
        self.now += work
        answered = self.read()
        self.now += back
        return Sample(sent, there, answered, self.now)


bursts = st.lists(st.lists(st.tuples(delays, delays, delays), min_size=1, max_size=6), min_size=1,
                  max_size=5)  # fmt: skip


@given(offsets, rates, bursts, st.integers(0, 10**10), st.integers(0, 10**9))
def test_the_true_offset_lies_inside_the_bound_at_every_time(
    offset: int, rate: float, asked: list[list[tuple[int, int, int]]], later: int, pause: int
) -> None:
    world = World(offset, rate)
    heard = []
    for burst in asked:
        heard.append([world.ask(*delay) for delay in burst])
        world.now += pause
    found = fit(heard)
    for time in (found.at, float(world.now + later)):
        error = abs(found.offset_at(time) - world.truth(time))
        assert error <= found.bound_at(time) + FLOATS


@given(offsets, rates, st.lists(st.tuples(delays, delays, delays), min_size=1, max_size=30))
def test_the_true_offset_is_inside_one_burst_and_never_wider_than_its_nearest_exchange(
    offset: int, rate: float, asked: list[tuple[int, int, int]]
) -> None:
    world = World(offset, rate)
    burst = [world.ask(*delay) for delay in asked]
    found = intersect(burst)
    assert abs(found.offset - world.truth(found.at)) <= found.bound + FLOATS
    nearest = min(burst, key=lambda one: one.round_trip)
    assert found.bound <= intersect([nearest]).bound
    assert (found.samples, found.round_trip) == (len(burst), nearest.round_trip)


def test_the_sign_is_what_must_be_added_to_the_local_clock() -> None:
    world = World(5_000, 0.0)
    assert intersect([world.ask(100, 10, 100)]).offset == 5_000


def test_the_quickest_way_there_and_the_quickest_way_back_count_from_two_exchanges() -> None:
    world = World(5_000, 0.0)
    burst = [world.ask(100, 10, 90_000), world.ask(90_000, 10, 100)]
    found = intersect(burst)
    assert abs(found.offset - 5_000) < 20
    assert found.bound < 150 < min(intersect([one]).bound for one in burst)


def test_exchanges_that_contradict_each_other_are_a_failure() -> None:
    world = World(0, 0.0)
    burst = [world.ask(100, 10, 100)]
    world.offset += 10_000
    burst.append(world.ask(100, 10, 100))
    with pytest.raises(Unavailable, match=r"synchronisation failure: .* contradict") as failed:
        intersect(burst)
    assert failed.value.code == "clock_stepped"


def test_an_answer_that_took_less_than_no_time_is_a_failure() -> None:
    with pytest.raises(Unavailable, match="contradict"):
        intersect([Sample(sent=0, there=10, answered=500, back=100)])


def test_it_is_asked_in_whole_rounds_until_the_bound_is_narrow() -> None:
    world = World(0, 0.0)

    def asked(delay: int) -> int:
        burst: list[Sample] = []
        while wants_more(burst):
            burst.append(world.ask(delay, 1, delay))
        return len(burst)

    assert asked(400_000) == 25
    assert asked(600_000) == 400


def test_asking_on_ends_with_the_round_that_has_a_quick_way_each() -> None:
    world = World(0, 0.0)
    burst: list[Sample] = []
    while wants_more(burst):
        quick = len(burst) == 30
        burst.append(world.ask(10_000 if quick else 3_000_000, 1, 600_000))
    assert len(burst) == 50


def test_more_bursts_bound_the_rate_better_than_one() -> None:
    world = World(0, 50e-6)
    heard = []
    for _ in range(4):
        heard.append([world.ask(10, 1, 10) for _ in range(5)])
        world.now += 10**9
    one, four = fit(heard[:1]), fit(heard)
    assert four.rate_bound < one.rate_bound / 100
    assert abs(four.rate - 50e-6) <= four.rate_bound


def test_a_clock_that_was_set_in_between_is_a_failure() -> None:
    world = World(0, 0.0)
    before = [world.ask(10, 1, 10)]
    world.now += 10**6
    world.offset += 10**9
    with pytest.raises(Unavailable) as failed:
        fit([before, [world.ask(10, 1, 10)]])
    assert failed.value.code == "clock_stepped"


@pytest.mark.parametrize(
    ("value", "state"),
    [(0.0, State.MEASURED), (70.0, State.MEASURED), (-5.0, State.ZERO_WITHIN_ERROR),
     (-10.0, State.ZERO_WITHIN_ERROR), (-10.5, State.NOT_SYNCHRONISED)],
)  # fmt: skip
def test_a_negative_latency_is_zero_within_error_or_a_failure_and_never_clamped(
    value: float, state: State
) -> None:
    found = Latency(value, 10.0)
    assert (found.state, found.value) == (state, value)


def test_both_ends_are_carried_over_to_the_reference_and_both_errors_count() -> None:
    sender = Estimate(1_000.0, 3.0)
    receiver = Estimate(-500.0, 4.0, at=0.0, rate_bound=0.01)
    found = measure_latency(100, sender, 1_700, receiver)
    assert found.value == (1_700 - 500) - (100 + 1_000)
    assert found.bound == 3.0 + 4.0 + 17.0


def test_in_process_offset_and_error_are_zero() -> None:
    assert LocalClock().estimate() == ZERO


def test_the_error_over_udp_lies_inside_the_bound(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lab", "clock", "udp", "--rounds", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["inside"] == 3


def test_a_reference_that_stalls_once_is_asked_again_and_its_late_answers_do_not_count() -> None:
    times = Struct(">qq")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as reference:
        reference.bind(("127.0.0.1", 0))
        reference.settimeout(60)

        def reply() -> None:
            held = [(reference.recv(64), monotonic_ns())]
            while True:
                packet, asker = reference.recvfrom(64)
                if not packet:
                    return
                held.append((packet, monotonic_ns()))
                for number, there in held:
                    reference.sendto(number + times.pack(there, monotonic_ns()), asker)
                held.clear()

        thread = Thread(target=reply, daemon=True)
        thread.start()
        found = UdpClock(*reference.getsockname(), bursts=1).estimate()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", reference.getsockname())
        thread.join(60)
    assert abs(found.offset) <= found.bound


def test_the_error_over_a_broker_lies_inside_the_bound_and_its_end_is_said() -> None:
    ended: list[str] = []
    queue, injected, ready = "clock", 123_456_789_012, Event()

    def answer() -> None:
        try:
            asyncio.run(answer_broker(address, queue, injected, lambda _: ready.set()))
        except Unavailable as error:
            ended.append(error.message)

    with running_vm() as vm:
        address = read_address(vm.url)
        reference = Thread(target=answer, daemon=True)
        reference.start()
        assert ready.wait(60)
        with pika.BlockingConnection(pika.URLParameters(vm.url)) as stranger:
            stranger.channel().basic_publish("", queue, b"what time is it?")
        found = BrokerClock(address, queue).estimate()
        assert abs(found.offset - injected) <= found.bound
        assert found.samples % 25 == 0
    reference.join(60)
    lost = "the connection to the broker is lost: the connection was closed"
    assert ended == [lost] or "reset" in ended[0]
    with pytest.raises(Unavailable, match="the connection to the broker is lost"):
        BrokerClock(address, queue).estimate()


def test_nobody_answering_is_said_with_a_hint() -> None:
    with pytest.raises(Unavailable) as failed:
        UdpClock("127.0.0.1", 9, limit=0.3).estimate()
    assert failed.value.code == "clock"

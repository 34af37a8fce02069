"""A worker keeps its handlers busy while a broker is told, but only where that is safe."""

from __future__ import annotations

from dataclasses import replace
from threading import Event

import pytest

from tallystick import App
from tallystick.brokers.memory.transport import MemoryTransport, Space
from tallystick.core.frame import Frame
from tallystick.core.transport import Capabilities, Delivery
from tallystick.runtime.settlement import Plan
from tallystick.runtime.worker import Worker

PREFETCH = 10
ACK = Plan("ack", Delivery(Frame(b"{}"), "default"), "handled")
RETRY = Plan("replace", Delivery(Frame(b"{}"), "default"), "retried", "default", Frame(b"{}"))


def worker(*, buffered: bool) -> Worker:
    class Fake(MemoryTransport):
        capabilities: Capabilities = replace(MemoryTransport.capabilities, buffered=buffered)

    app = App("memory://", prefetch=PREFETCH)
    execution = app._worker("default")[0]._execution
    return Worker(Fake(Space()), "default", execution, Event())


@pytest.mark.parametrize(
    ("buffered", "plans", "rush"),
    [
        (True, [ACK] * (PREFETCH // 2), True),
        (True, [ACK] * (PREFETCH // 2 - 1), False),
        (False, [ACK] * PREFETCH, False),
        (True, [*[ACK] * PREFETCH, RETRY], False),
    ],
)
def test_more_is_taken_first_only_when_much_is_done_well_and_taking_costs_no_round_trip(
    buffered: bool, plans: list[Plan], rush: bool
) -> None:
    assert worker(buffered=buffered)._is_rush(plans) is rush

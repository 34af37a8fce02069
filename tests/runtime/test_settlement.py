"""How a delivery waits: here when it is in order, at the broker where that can, else held back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from tallystick.brokers.artemis.binding import BINDING
from tallystick.core.binding import project
from tallystick.core.envelope import make
from tallystick.core.frame import Frame
from tallystick.core.transport import Capabilities, Delivery
from tallystick.runtime.reading import Reading, reader
from tallystick.runtime.settings import Settings
from tallystick.runtime.settlement import Failure, Rules, plan_failure, plan_release

URN = "urn:babel:orders:created"
PLAIN = Capabilities(delays=False, headers=True, ordered=True, returns="connection", counts=False)
DELAYS = replace(PLAIN, delays=True)
WAITS = replace(DELAYS, waits=True)
NOW = 1_700_000_000.0
_read = reader(BINDING)


def rules(capabilities: Capabilities) -> Rules:
    return Rules(BINDING, capabilities, Settings(release_delay=3.0))


def reading(group: str = "", deliveries: int = 0) -> Reading:
    sent = make(URN, {"n": 1}, now_ms=1, new_id=lambda: str(uuid4()))
    frame = project(BINDING, sent, queue="orders")
    sections = {**frame.sections, "header": {"delivery-count": deliveries}}
    return _read(Delivery(Frame(frame.body, sections), "orders", group=group), 0)


@pytest.mark.parametrize(
    ("capabilities", "group", "expected"),
    [
        (PLAIN, "", ("release", 0.0, 3.0, False)),
        (WAITS, "", ("release", 3.0, 0.0, False)),
        (DELAYS, "", ("replace", 0.0, 0.0, False)),
        (PLAIN, "a", ("release", 0.0, 3.0, True)),
        (WAITS, "a", ("release", 0.0, 3.0, True)),
        (DELAYS, "a", ("release", 0.0, 3.0, True)),
    ],
)
def test_a_release_waits_where_it_can_and_in_a_group_where_it_is(
    capabilities: Capabilities, group: str, expected: tuple[Any, ...]
) -> None:
    plan = plan_release(rules(capabilities), reading(group), "later", now=NOW)
    assert (plan.move, plan.delay, plan.hold, plan.here) == expected


@pytest.mark.parametrize("count", [2**31 - 1, 2**31, 10**30, -1])
def test_a_poison_body_with_any_count_has_a_dead_letter(count: int) -> None:
    given = _read(Delivery(Frame(b'{"attempts":%d}' % count), "orders"), 0)
    assert (given.kind, given.attempts) == ("poison", min(max(count, 0), 2**31 - 1))
    plan = plan_failure(rules(PLAIN), given, Failure("poison", "no", final=True), now=NOW, chance=0)
    assert (plan.move, plan.outcome) == ("replace", "dead_lettered")


def test_a_copy_that_waits_keeps_the_attempts_that_the_broker_has_counted() -> None:
    given = reading(deliveries=2)
    plan = plan_release(rules(DELAYS), given, "later", now=NOW)
    assert plan.frame is not None
    assert plan.frame.get("annotations", "x-opt-delivery-time") == (NOW + 3) * 1000
    assert msgspec.json.decode(plan.frame.body)["attempts"] == 2
    again = Delivery(replace_count(plan.frame), "orders")
    assert _read(again, 0).attempts == given.attempts == 2


def replace_count(frame: Frame) -> Frame:
    """Give a frame as a broker hands it out that has never done so before."""
    return Frame(frame.body, {**frame.sections, "header": {"delivery-count": 0}})


def test_a_failure_in_a_group_is_run_again_here_and_elsewhere_sent_again() -> None:
    failure = Failure("failed", "no")
    here = plan_failure(rules(DELAYS), reading("a"), failure, now=NOW, chance=0.5)
    assert (here.move, here.outcome, here.here) == ("release", "retried", True)
    there = plan_failure(rules(DELAYS), reading(), failure, now=NOW, chance=0.5)
    assert (there.move, there.outcome, there.here) == ("replace", "retried", False)

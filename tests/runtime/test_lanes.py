"""Messages of one group are handled one after the other; others are not held up."""

from __future__ import annotations

from tallystick.core.frame import Frame
from tallystick.core.transport import Delivery
from tallystick.runtime.lanes import Lanes


def delivery(group: str) -> Delivery:
    return Delivery(Frame(b"{}"), "orders", group=group)


def test_those_without_a_group_never_wait() -> None:
    lanes = Lanes()
    assert lanes.enter(delivery(""))
    assert lanes.enter(delivery(""))
    assert lanes.leave(delivery("")) is None


def test_the_second_of_a_group_waits_for_the_first() -> None:
    lanes, first, second, third = Lanes(), delivery("a"), delivery("a"), delivery("a")
    assert lanes.enter(first)
    assert not lanes.enter(second)
    assert not lanes.enter(third)
    assert lanes.leave(first) is second
    assert lanes.leave(second) is third
    assert lanes.leave(third) is None
    assert lanes.enter(delivery("a"))


def test_groups_do_not_wait_for_each_other() -> None:
    lanes = Lanes()
    assert lanes.enter(delivery("a"))
    assert lanes.enter(delivery("b"))


def test_what_waits_can_be_taken_back_and_the_one_at_work_stays() -> None:
    lanes, first, second = Lanes(), delivery("a"), delivery("a")
    lanes.enter(first)
    lanes.enter(second)
    assert lanes.clear() == [second]
    assert lanes.leave(first) is None

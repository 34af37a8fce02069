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


def test_a_lane_is_stuck_from_its_stop_until_its_head_is_at_work_again_or_gone() -> None:
    lanes, first, second = Lanes(), delivery("a"), delivery("a")
    for one in (first, second, delivery("b"), delivery("b")):
        lanes.enter(one)
    assert lanes.stuck == 0
    lanes.stop(first)
    assert lanes.stuck == 1, "what waits in another lane is not stuck"
    lanes.resume(first)
    assert lanes.stuck == 0
    lanes.stop(first)
    assert lanes.leave(first) is second
    assert lanes.stuck == 0


def test_a_lane_that_is_emptied_ends_and_others_do_not() -> None:
    lanes, first, second, third = Lanes(), delivery("a"), delivery("a"), delivery("a")
    for one in (first, second, third, delivery("b")):
        lanes.enter(one)
    lanes.stop(first)
    assert lanes.empty(first) == [second, third]
    assert lanes.stuck == 0
    assert lanes.enter(delivery("a"))
    assert not lanes.enter(delivery("b"))

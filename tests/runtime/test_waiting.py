"""What waits in a worker comes out in the order of its time, and never takes all the memory."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.frame import Frame
from tallystick.core.transport import Delivery
from tallystick.runtime.settlement import Plan
from tallystick.runtime.waiting import Waiting


def plan(body: bytes = b"{}") -> Plan:
    return Plan("replace", Delivery(Frame(body), "orders"), "retried")


@given(st.lists(st.integers(0, 20)), st.integers(0, 20))
def test_what_is_due_comes_out_in_order_and_the_rest_stays(dues: list[int], now: int) -> None:
    waiting, plans = Waiting(), [(due, plan()) for due in dues]
    for due, one in plans:
        waiting.add(one, due)
    ordered = sorted(plans, key=lambda pair: pair[0])
    assert waiting.next == (min(dues) if dues else inf)
    assert waiting.take(now) == [one for due, one in ordered if due <= now]
    assert len(waiting) == len([due for due in dues if due > now])
    assert waiting.take(inf) == [one for due, one in ordered if due > now]


def test_what_is_dropped_does_not_come_out() -> None:
    waiting, first, second = Waiting(), plan(), plan()
    waiting.add(first, 1)
    waiting.add(second, 2)
    assert waiting.drop({id(first.delivery)}) == [first]
    assert waiting.drop({id(first.delivery)}) == []
    assert waiting.take(inf) == [second]


def test_there_is_room_for_so_many_and_for_so_many_bytes() -> None:
    waiting, big = Waiting(), plan(b"x" * (65 << 20))
    empty = waiting.room
    waiting.add(plan(), 1)
    assert waiting.room == empty - 1
    waiting.add(big, 2)
    assert waiting.room == 0
    waiting.drop({id(big.delivery)})
    assert waiting.room == empty - 1
    waiting.take(inf)
    assert waiting.room == empty

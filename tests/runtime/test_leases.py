"""Leases are renewed in time, not for ever, and what was not renewed is not ours."""

from __future__ import annotations

from tallystick.core.frame import Frame
from tallystick.core.transport import Delivery
from tallystick.runtime.leases import Leases


def delivery(lease: float | None) -> Delivery:
    return Delivery(Frame(b"{}"), "orders", lease=lease)


def test_a_lease_is_due_after_a_third_and_again_after_each_third() -> None:
    leases, one = Leases(1000), delivery(30)
    leases.begin(one, 100)
    assert leases.due(109.9) == []
    assert leases.due(110) == [one]
    assert leases.due(119.9) == []
    assert leases.due(120) == [one]


def test_a_delivery_without_a_lease_is_never_due_and_always_ours() -> None:
    leases, one = Leases(1000), delivery(None)
    leases.begin(one, 0)
    assert leases.due(10**9) == []
    assert leases.end(one, 10**9)


def test_each_lease_has_its_own_time() -> None:
    leases, short, long = Leases(1000), delivery(3), delivery(30)
    leases.begin(long, 0)
    leases.begin(short, 0)
    assert leases.due(1) == [short]
    assert leases.due(10) == [long, short]


def test_after_the_maximum_nothing_is_renewed_and_it_is_lost() -> None:
    leases, one = Leases(15), delivery(30)
    leases.begin(one, 0)
    assert leases.due(10) == [one]
    leases.renewed([one], 10)
    assert leases.due(20) == []
    assert leases.due(39) == []
    assert not leases.end(one, 40)


def test_only_a_renewal_that_succeeded_prolongs() -> None:
    leases, one, two = Leases(1000), delivery(30), delivery(30)
    leases.begin(one, 0)
    leases.begin(two, 0)
    assert leases.due(10) == [one, two]
    leases.renewed([one], 10)
    assert leases.end(one, 39.9)
    assert not leases.end(two, 30)


def test_what_is_settled_is_not_renewed() -> None:
    leases, one = Leases(1000), delivery(30)
    leases.begin(one, 0)
    assert leases.end(one, 5)
    assert leases.due(10) == []

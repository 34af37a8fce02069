"""What is Artemis's own: links that end, and objects that stay with their thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tallystick.brokers.artemis.transport import ArtemisTransport
from tallystick.core.errors import Unavailable
from tallystick.core.frame import Frame
from tallystick.core.transport import Address, Delivery
from tallystick.runtime.address import link_to


def refuse() -> Any:
    raise ConnectionRefusedError("nobody listens")


def test_a_delivery_of_a_link_that_is_gone_is_lost_also_while_the_broker_is_away() -> None:
    transport = ArtemisTransport(
        Address("artemis", "artemis"), refuse, timeout=1, credit=1, heartbeat=1
    )
    with pytest.raises(Unavailable) as told:
        transport.leave(Delivery(Frame(b"{}"), "orders", (0, 1)))
    assert told.value.code == "delivery_lost"


def test_no_object_of_the_client_leaves_with_a_delivery(broker_url: Callable[[str], str]) -> None:
    queue = f"own-{uuid4().hex}"
    transport = link_to(broker_url("artemis")).open()
    try:
        transport.send(queue, [Frame(b"{}")])
        (delivery,) = transport.receive(queue, 1, 60.0)
        assert [type(one) for one in delivery.handle] == [int, int]
        transport.ack([delivery])
        with pytest.raises(Unavailable) as told:
            transport.ack([delivery])  # it is no longer out
        assert told.value.code == "delivery_lost"
    finally:
        transport.close()

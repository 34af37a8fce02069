"""What is Artemis's own: what a link had out is lost with it, broker there or not."""

from __future__ import annotations

from typing import Any

import pytest

from tallystick.brokers.artemis.transport import ArtemisTransport
from tallystick.core.errors import Unavailable
from tallystick.core.frame import Frame
from tallystick.core.transport import Address, Delivery


def refuse() -> Any:
    raise ConnectionRefusedError("nobody listens")


def test_a_delivery_of_a_link_that_is_gone_is_lost_also_while_the_broker_is_away() -> None:
    transport = ArtemisTransport(
        Address("artemis", "artemis"), refuse, timeout=1, credit=1, heartbeat=1
    )
    with pytest.raises(Unavailable) as told:
        transport.leave(Delivery(Frame(b"{}"), "orders", (object(), object())))
    assert told.value.code == "delivery_lost"

"""Service Bus sends all of a batch, or refuses before it has sent any. No service is needed."""

from __future__ import annotations

from typing import Any, Self

import pytest
from azure.servicebus import ServiceBusMessageBatch

from tallystick.brokers.servicebus.transport import ServiceBusTransport
from tallystick.core.errors import Refused
from tallystick.core.frame import Frame
from tallystick.core.transport import Address

LARGEST = 2000


class Client:
    """The client library, with its own batches, and nobody at the other end."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def get_queue_sender(self, _queue: str) -> Client:
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def create_message_batch(self) -> Any:
        return ServiceBusMessageBatch(max_size_in_bytes=LARGEST)

    def send_messages(self, batch: Any) -> None:
        self.sent.append(len(batch))


def make_transport(client: Client) -> ServiceBusTransport:
    return ServiceBusTransport(Address("servicebus", "sb", "host"), lambda: client, 0)


def test_a_frame_that_fits_in_no_batch_is_refused_before_any_is_sent() -> None:
    client = Client()
    frames = [Frame(b"a" * 900), Frame(b"b" * 900), Frame(b"c" * 900), Frame(b"d" * LARGEST)]
    with pytest.raises(Refused) as caught:
        make_transport(client).send("orders", frames)
    assert (caught.value.code, client.sent) == ("too_large", [])


@pytest.mark.parametrize(("sizes", "sent"), [([], []), ([900] * 3, [2, 1]), ([500] * 5, [3, 2])])
def test_frames_that_fit_go_out_in_order_in_batches(sizes: list[int], sent: list[int]) -> None:
    client = Client()
    make_transport(client).send("orders", [Frame(b"x" * size) for size in sizes])
    assert client.sent == sent

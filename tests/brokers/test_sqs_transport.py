"""Requests to SQS go out together where order does not matter, and never many in vain."""

from __future__ import annotations

from contextlib import closing
from threading import Lock
from time import sleep
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError  # type: ignore[import-untyped]

from tallystick.brokers.sqs.transport import SqsTransport
from tallystick.core.errors import Unavailable
from tallystick.core.frame import Frame
from tallystick.core.transport import Address, Delivery


class Client:
    """As boto3's: has so many messages, fails at one send, and notes how many ask at once."""

    def __init__(self, messages: int = 0, fails_at: int = 0) -> None:
        self.asked: list[int] = []
        """Requests at once, for each request."""
        self.bodies: list[str] = []
        self._left = messages
        self._fails_at = fails_at
        self._at_once = 0
        self._lock = Lock()

    def get_queue_url(self, **_: Any) -> dict[str, str]:
        return {"QueueUrl": "here"}

    def get_queue_attributes(self, **_: Any) -> dict[str, Any]:
        return {"Attributes": {"VisibilityTimeout": "30"}}

    def receive_message(self, **asked: Any) -> dict[str, Any]:
        self._answer()
        with self._lock:
            count = min(self._left, asked["MaxNumberOfMessages"])
            self._left -= count
        return {"Messages": [{"Body": "{}", "ReceiptHandle": "r"} for _ in range(count)]}

    def send_message_batch(self, **asked: Any) -> dict[str, Any]:
        if self._answer() == self._fails_at:
            raise EndpointConnectionError(endpoint_url="cut")
        self.bodies += [entry["MessageBody"] for entry in asked["Entries"]]
        return {}

    def delete_message_batch(self, **_: Any) -> dict[str, Any]:
        self._answer()
        return {}

    def close(self) -> None:
        """Nothing is open."""

    def _answer(self) -> int:
        with self._lock:
            self._at_once += 1
            self.asked.append(self._at_once)
            number = len(self.asked)
        sleep(0.02)
        with self._lock:
            self._at_once -= 1
        return number


def open_transport(client: Client) -> SqsTransport:
    return SqsTransport(Address("sqs", "sqs", "eu"), client)


FRAMES = [Frame(b"%d" % n) for n in range(80)]


@pytest.mark.parametrize(("queue", "most"), [("orders", 4), ("orders.fifo", 1)])
def test_four_requests_are_under_way_at_most_and_one_where_order_is_kept(
    queue: str, most: int
) -> None:
    for verb in ("send", "ack", "receive"):
        client = Client(messages=80)
        with closing(open_transport(client)) as transport:
            if verb == "send":
                transport.send(queue, FRAMES)
                assert sorted(client.bodies, key=int) == [str(n) for n in range(80)]
            elif verb == "ack":
                transport.ack([Delivery(frame, queue, "r") for frame in FRAMES])
            else:
                assert len(transport.receive(queue, 80, 0)) == 80
        assert (verb, max(client.asked), len(client.asked)) == (verb, most, 8)


def test_a_fifo_queue_gets_messages_in_the_order_of_sending() -> None:
    client = Client()
    with closing(open_transport(client)) as transport:
        transport.send("orders.fifo", FRAMES)
    assert client.bodies == [str(n) for n in range(80)]


@pytest.mark.parametrize(("queue", "begun"), [("orders", 4), ("orders.fifo", 2)])
def test_when_a_request_fails_no_more_are_begun(queue: str, begun: int) -> None:
    client = Client(fails_at=2)
    with closing(open_transport(client)) as transport, pytest.raises(Unavailable):
        transport.send(queue, FRAMES)
    assert len(client.asked) == begun


@pytest.mark.parametrize(("there", "requests"), [(0, 1), (5, 1), (10, 2), (15, 2), (25, 4)])
def test_no_more_is_asked_for_together_than_came_already(there: int, requests: int) -> None:
    client = Client(messages=there)
    with closing(open_transport(client)) as transport:
        assert len(transport.receive("orders", 100, 0)) == there
    assert len(client.asked) == requests

"""Amazon SQS over boto3, and every server with the same API (`endpoint`).

URL: `sqs://[key:secret@]REGION`, with the options

    endpoint=http://host:port   another server than Amazon's
    prefix=                     prefix of every queue name
    fifo=1  group_id=NAME       ordered queues (also every name that ends in `.fifo`)
    visibility=30               seconds that a delivery stays hidden (default: the queue's own)
    timeout=30                  maximum seconds of any single call
    ca, verify                  certificates to trust over https (`brokers/tls.py`)

A retry changes the visibility and sends nothing. A body is text: bytes that are not UTF-8 are
refused. Without keys in the URL, boto3 finds them in its usual places.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from tallystick.brokers.sqs.binding import BINDING
from tallystick.brokers.sqs.lull import Lull
from tallystick.brokers.tls import TLS_OPTIONS, read_tls
from tallystick.core.errors import Refused, Unavailable
from tallystick.core.extras import importing
from tallystick.core.frame import Frame
from tallystick.core.names import is_fifo, name
from tallystick.core.transport import (
    Address,
    Capabilities,
    Delivery,
    check_options,
    is_on,
    lost,
    read_number,
    unreachable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SqsTransport", "connect"]

_OPTIONS: Final = (
    "endpoint", "prefix", "fifo", "group_id", "visibility", "timeout", "wait_time",
    *TLS_OPTIONS,
)  # fmt: skip
_BATCH: Final = 10
_BATCH_BYTES: Final = 250_000
_AT_ONCE: Final = 4
"""Maximum requests at the same time; a FIFO queue gets one, to keep its order."""
_LONGEST_POLL: Final = 20
_SHORT: Final = 0.5
_BUSY: Final = 0.02
"""Maximum wait of a worker with busy handlers; with a longer wait the worker is idle."""
_ATTRIBUTE_KEYS: Final = ("DataType", "StringValue", "BinaryValue")
_GONE: Final = ("ReceiptHandleIsInvalid", "InvalidParameterValue", "MessageNotInflight")
_NO_QUEUE: Final = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")


class SqsTransport:
    """One client; queues are found by name and remembered."""

    def __init__(self, address: Address, client: Any) -> None:
        self._fifo: Final = True if is_on(address, "fifo") else None
        self.capabilities: Final = Capabilities(
            delays=not self._fifo,
            waits=True,
            headers=True,
            ordered=bool(self._fifo),
            returns="deadline",
            counts=True,
            keyed=bool(self._fifo),
            options={"fifo": True, "group": address.options.get("group_id", "")}
            if self._fifo
            else {},
        )
        self._address: Final = address
        self._client: Final = client
        self._prefix: Final = address.options.get("prefix", "")
        visibility = address.options.get("visibility")
        seconds = int(read_number(address, "visibility", 0))
        self._visibility: Final = {} if visibility is None else {"VisibilityTimeout": seconds}
        self._urls: Final[dict[str, str]] = {}
        self._leases: Final[dict[str, int]] = {}
        self._lulls: Final[dict[str, Lull]] = {}
        self._crew: Final = ThreadPoolExecutor(_AT_ONCE, "tallystick-sqs")

    def ensure(self, queues: Sequence[str]) -> None:
        """Create the queues that do not exist."""
        with self._talking():
            for queue in queues:
                try:
                    self._url(queue)
                except self._client.exceptions.QueueDoesNotExist:
                    physical = self._name(queue)
                    attributes = {"FifoQueue": "true"} if physical.endswith(".fifo") else {}
                    self._client.create_queue(QueueName=physical, Attributes=attributes)

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Send in batches of ten."""
        batches = [*_batches([self._entry(queue, frame) for frame in frames])]
        with self._talking():
            for sent in self._ask(queue, partial(self._send, self._url(queue)), batches):
                sent.result()

    def _send(self, url: str, batch: list[dict[str, Any]]) -> None:
        answer = self._client.send_message_batch(
            QueueUrl=url, Entries=[{**entry, "Id": str(n)} for n, entry in enumerate(batch)]
        )
        for failed in answer.get("Failed", ()):
            raise Unavailable(
                f"{self._address}: {failed.get('Code')}: {failed.get('Message', '')}",
                code="broker",
            )

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Ask for ten at a time; a wait of half a second or more is a long poll.

        A request costs money. So the number of parallel requests is at most the number of full
        batches that came before. After an empty poll, a busy worker (which calls this fifty times
        a second) polls again with growing pauses.
        """
        poll = min(ceil(timeout), _LONGEST_POLL) if timeout >= _SHORT else 0
        lull = self._lulls.setdefault(queue, Lull())
        if 0 < timeout <= _BUSY and timeout < lull.left(time.monotonic()):
            time.sleep(timeout)
            return []
        taken = self._take(queue, poll, min(_BATCH, limit))
        more = len(taken) == _BATCH
        while more and (left := limit - len(taken)) > 0:
            tens = [min(_BATCH, left - n) for n in range(0, left, _BATCH)]
            asked = tens[: len(taken) // _BATCH]
            before = len(taken)
            for answer in self._ask(queue, partial(self._take, queue, 0), asked):
                with suppress(Unavailable):  # what came is ours; the next call says what is wrong
                    taken += answer.result()
            more = len(taken) - before == sum(asked)
        lull.note(len(taken), time.monotonic())
        if not taken and not poll:
            time.sleep(timeout)
        return taken

    def _take(self, queue: str, poll: int, most: int) -> list[Delivery]:
        with self._talking():
            lease = self._lease(queue)  # first: nothing may fail once messages are taken
            answer = self._client.receive_message(
                QueueUrl=self._url(queue),
                MaxNumberOfMessages=most,
                WaitTimeSeconds=poll,
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
                **self._visibility,
            )
        return [_delivery(queue, one, lease) for one in answer.get("Messages", ())]

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Delete; if a receipt is no longer valid, the message is delivered again."""
        stale = False
        with self._talking():
            for queue in dict.fromkeys(one.queue for one in deliveries):
                handles = [one.handle for one in deliveries if one.queue == queue]
                tens = [handles[n : n + _BATCH] for n in range(0, len(handles), _BATCH)]
                for done in self._ask(queue, partial(self._delete, self._url(queue)), tens):
                    stale |= done.result()
        if stale:
            raise lost()

    def _delete(self, url: str, handles: list[str]) -> bool:
        """Say whether a receipt was no longer valid."""
        entries = [{"Id": str(n), "ReceiptHandle": one} for n, one in enumerate(handles)]
        answer = self._client.delete_message_batch(QueueUrl=url, Entries=entries)
        return bool(answer.get("Failed"))

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:
        """Make it visible again after the delay."""
        with self._talking():
            self._client.change_message_visibility(
                QueueUrl=self._url(delivery.queue),
                ReceiptHandle=delivery.handle,
                VisibilityTimeout=ceil(delay),
            )

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Send, then delete."""
        self.send(queue, [frame])
        self.ack([delivery])

    def leave(self, delivery: Delivery) -> None:
        """Do nothing: after its visibility timeout the message is delivered again."""

    def give_up(self, delivery: Delivery, reason: str) -> None:
        """Do nothing: the queue's RedrivePolicy decides."""

    def backlog(self, queue: str) -> int:
        """Return the approximate number of visible messages."""
        with self._talking():
            answer = self._client.get_queue_attributes(
                QueueUrl=self._url(queue), AttributeNames=["ApproximateNumberOfMessages"]
            )
        return int(answer["Attributes"]["ApproximateNumberOfMessages"])

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Hide them for the same time again; a message that another consumer received is lost."""
        gone: list[Delivery] = []
        with self._talking():
            for queue in dict.fromkeys(one.queue for one in deliveries):
                mine = [one for one in deliveries if one.queue == queue]
                for start in range(0, len(mine), _BATCH):
                    gone += self._renew(queue, mine[start : start + _BATCH])
        return gone

    def _renew(self, queue: str, batch: list[Delivery]) -> list[Delivery]:
        answer = self._client.change_message_visibility_batch(
            QueueUrl=self._url(queue),
            Entries=[
                {
                    "Id": str(n),
                    "ReceiptHandle": one.handle,
                    "VisibilityTimeout": self._lease(queue),
                }
                for n, one in enumerate(batch)
            ],
        )
        return [batch[int(failed["Id"])] for failed in answer.get("Failed", ())]

    def _lease(self, queue: str) -> int:
        """Give the seconds that a delivery stays hidden: as the URL says, else the queue."""
        if self._visibility:
            return self._visibility["VisibilityTimeout"]
        if queue not in self._leases:
            answer = self._client.get_queue_attributes(
                QueueUrl=self._url(queue), AttributeNames=["VisibilityTimeout"]
            )
            self._leases[queue] = int(answer["Attributes"]["VisibilityTimeout"])
        return self._leases[queue]

    def close(self) -> None:
        """End the connections."""
        self._crew.shutdown()
        self._client.close()

    def _ask(
        self, queue: str, ask: Callable[[Any], Any], items: Sequence[Any]
    ) -> list[Future[Any]]:
        """Send each request, some in parallel; after an error no more are started."""
        at_once = 1 if is_fifo(BINDING.names, queue, self._fifo) else _AT_ONCE
        asked: list[Future[Any]] = []
        for start in range(0, len(items), at_once):
            some = [self._crew.submit(ask, item) for item in items[start : start + at_once]]
            wait(some)
            asked += some
            if any(one.exception() for one in some):
                break
        return asked

    def _name(self, queue: str) -> str:
        return self._prefix + name(BINDING.names, "work", queue, fifo=self._fifo)

    def _url(self, queue: str) -> str:
        if queue not in self._urls:
            answer = self._client.get_queue_url(QueueName=self._name(queue))
            self._urls[queue] = answer["QueueUrl"]
        return self._urls[queue]

    def _entry(self, queue: str, frame: Frame) -> dict[str, Any]:
        try:
            body = frame.body.decode()
        except UnicodeDecodeError as error:
            raise Refused(
                "SQS carries only text, and this body is not UTF-8",
                code="not_utf8",
                offset=error.start,
            ) from error
        attributes = {
            key: {part: value[part] for part in _ATTRIBUTE_KEYS if part in value}
            for key, value in frame.sections.get("message_attributes", {}).items()
        }
        entry = {"MessageBody": body, "MessageAttributes": attributes}
        parameters = dict(frame.sections.get("parameters", {}))
        if is_fifo(BINDING.names, queue, self._fifo) and "MessageDeduplicationId" not in parameters:
            unique = sha256(frame.body).hexdigest()
            parameters = {"MessageGroupId": queue, **parameters, "MessageDeduplicationId": unique}
        return {**entry, **parameters}

    @contextmanager
    def _talking(self) -> Iterator[None]:
        from botocore.exceptions import (  # type: ignore[import-untyped]  # noqa: PLC0415
            BotoCoreError,
            ClientError,
        )

        try:
            yield
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code", "")
            if code in _GONE:
                raise lost() from error
            if code in _NO_QUEUE:
                self._urls.clear()
            raise unreachable(self._address, error) from error
        except (BotoCoreError, OSError) as error:
            raise unreachable(self._address, error) from error


def _delivery(queue: str, message: dict[str, Any], lease: float) -> Delivery:
    sections = {
        "message_attributes": message.get("MessageAttributes", {}),
        "attributes": message.get("Attributes", {}),
    }
    frame = Frame(message["Body"].encode(), sections)
    group = sections["attributes"].get("MessageGroupId", "")
    return Delivery(frame, queue, message["ReceiptHandle"], lease=lease, group=group)


def _batches(entries: Sequence[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """Cut entries into batches of at most ten, and of a size that the service takes."""
    batch: list[dict[str, Any]] = []
    size = 0
    for entry in entries:
        more = len(entry["MessageBody"].encode()) + sum(
            len(key) + len(str(value)) for key, value in entry["MessageAttributes"].items()
        )
        if batch and (len(batch) == _BATCH or size + more > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += more
    if batch:
        yield batch


def connect(address: Address) -> Callable[[], SqsTransport]:
    """Give a way to open clients of the region or the endpoint that the address names."""
    check_options(address, _OPTIONS)
    timeout = read_number(address, "timeout", 30.0)
    with importing("sqs"):
        import boto3  # type: ignore[import-untyped]  # noqa: PLC0415
        from botocore.config import Config  # type: ignore[import-untyped]  # noqa: PLC0415
    endpoint = address.options.get("endpoint")
    secure = not (endpoint or "https://").startswith("http://")
    tls = read_tls(address, secure=secure, instead="endpoint=https://...")
    keys: dict[str, Any] = {}
    if address.user:
        keys = {"aws_access_key_id": address.user, "aws_secret_access_key": address.password}
    elif endpoint and boto3.Session().get_credentials() is None:
        keys = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
    settings = Config(
        connect_timeout=timeout,
        read_timeout=timeout + _LONGEST_POLL,
        retries={"max_attempts": 0},
    )

    def open_one() -> SqsTransport:
        client = boto3.Session().client(
            "sqs",
            region_name=address.host or "us-east-1",
            endpoint_url=endpoint,
            config=settings,
            verify=None if tls is None or (tls.verify and not tls.ca) else tls.verify and tls.ca,
            **keys,
        )
        return SqsTransport(address, client)

    return open_one

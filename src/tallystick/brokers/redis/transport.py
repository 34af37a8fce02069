"""Redis over redis-py: a queue in one of two layouts, settled by scripts that check first.

URL: `redis://[user:password@]host[:port][/db]`, `rediss://` for TLS, with the options

    laravel=1        Laravel's layout, with `prefix` (default `queues:`)
    retry_after=90   length of a reservation in seconds; `none` means for ever
    timeout=10       maximum seconds of any single call
    ca, verify       certificates to trust with `rediss://` (`brokers/tls.py`)

A consumer waits with a `BLMOVE` of the list onto itself, which removes nothing, and then reserves
with a script: a message is never between two keys. The client does not repeat a call on its own,
because after a lost reply the call may have succeeded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import contextmanager
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Final

from tallystick.brokers.redis.layouts import LaravelLayout, Layout, LegacyLayout
from tallystick.brokers.tls import TLS_OPTIONS, read_tls
from tallystick.core.errors import UsageError
from tallystick.core.extras import importing
from tallystick.core.frame import Frame
from tallystick.core.tap import Tap, Watch
from tallystick.core.transport import (
    Address,
    Capabilities,
    Delivery,
    check_options,
    is_on,
    read_number,
    unreachable,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["RedisTransport", "connect"]

_OPTIONS: Final = (
    "laravel", "prefix", "retry_after", "timeout", "migration_batch_size", *TLS_OPTIONS,
)  # fmt: skip
_LONGEST_WAIT: Final = 1.0
_TICK: Final = 0.01
_DEFAULT_PORT: Final = 6379


class RedisTransport:
    """One connection to Redis."""

    def __init__(
        self, address: Address, layout: Layout, client: Any, clock: Callable[[], float] = time
    ) -> None:
        laravel = isinstance(layout, LaravelLayout)
        self.capabilities: Final = Capabilities(
            delays=laravel,
            waits=laravel,
            headers=not laravel,
            ordered=True,
            returns="deadline",
            counts=laravel,
        )
        self._address: Final = address
        self._layout: Final = layout
        self._client: Final = client
        self._clock: Final = clock

    def ensure(self, queues: Sequence[str]) -> None:  # noqa: ARG002
        """Check that Redis answers; a list exists when something is in it."""
        with self._talking():
            self._client.ping()

    def send(self, queue: str, frames: Sequence[Frame]) -> None:
        """Add frames in order."""
        with self._talking():
            self._layout.push(self._client, queue, frames)

    def receive(self, queue: str, limit: int, timeout: float) -> list[Delivery]:
        """Reserve available elements, or wait for one; look for expired ones once a second."""
        end = monotonic() + timeout
        with self._talking():
            while True:
                taken = self._layout.reserve(self._client, queue, limit, self._clock())
                left = end - monotonic()
                if taken or left <= 0:
                    return taken
                key = self._layout.wait_key(queue)
                self._client.blmove(key, key, max(min(left, _LONGEST_WAIT), _TICK), "LEFT", "LEFT")

    def ack(self, deliveries: Sequence[Delivery]) -> None:
        """End reservations."""
        with self._talking():
            self._layout.ack(self._client, deliveries)

    def release(self, delivery: Delivery, delay: float = 0.0) -> None:
        """Put it back."""
        with self._talking():
            self._layout.release(self._client, delivery, delay, self._clock())

    def replace(self, delivery: Delivery, queue: str, frame: Frame) -> None:
        """Replace the delivery with a frame, in one step."""
        with self._talking():
            self._layout.replace(self._client, delivery, queue, frame, self._clock())

    def leave(self, delivery: Delivery) -> None:
        """Do nothing: after its deadline the element is delivered again."""

    def give_up(self, delivery: Delivery, reason: str) -> None:
        """Do nothing: Redis has no dead-letter policy; the deadline returns the element."""

    def renew(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Set new deadlines."""
        gone: list[Delivery] = []
        with self._talking():
            for queue in dict.fromkeys(one.queue for one in deliveries):
                mine = [one for one in deliveries if one.queue == queue]
                gone += self._layout.renew(self._client, mine, self._clock())
        return gone

    def close(self) -> None:
        """Close the connection; unsettled elements come back at their deadline."""
        self._client.close()

    def backlog(self, queue: str) -> int:
        """Count the waiting elements of the list."""
        with self._talking():
            return int(self._client.llen(self._layout.work_key(queue)))

    def tap(self, watch: Watch) -> Tap:
        """Read the waiting elements of a list."""
        from tallystick.brokers.redis.tap import RedisTap  # noqa: PLC0415

        key = self._layout.work_key(watch.queue)
        frame_of = self._layout.read
        return RedisTap(self._client, key, frame_of, self._talking, watch.start)

    @contextmanager
    def _talking(self) -> Iterator[None]:
        import redis  # noqa: PLC0415

        try:
            yield
        except (redis.RedisError, OSError) as error:
            raise unreachable(self._address, error) from error


def connect(address: Address) -> Callable[[], RedisTransport]:
    """Give a way to open connections to the Redis that the address names."""
    check_options(address, _OPTIONS)
    timeout = read_number(address, "timeout", 10.0)
    most = int(read_number(address, "migration_batch_size", -1))
    unlimited = address.options.get("retry_after") == "none"
    retry_after = None if unlimited else int(read_number(address, "retry_after", 90))
    if address.path and not address.path.isdigit():
        raise UsageError(
            f"{address}: the Redis database must be a number",
            code="url",
            hint="for example redis://127.0.0.1:6379/0",
        )
    tls = read_tls(address, secure=address.scheme == "rediss", instead="rediss://")
    layout: Layout = LegacyLayout(retry_after, most)
    if is_on(address, "laravel"):
        layout = LaravelLayout(retry_after, most, address.options.get("prefix"))
    with importing("redis"):
        import redis  # noqa: PLC0415
        from redis.backoff import NoBackoff  # noqa: PLC0415
        from redis.retry import Retry  # noqa: PLC0415

    def open_one() -> RedisTransport:
        client = redis.Redis(
            host=address.host or "127.0.0.1",
            port=address.port or _DEFAULT_PORT,
            db=int(address.path or 0),
            username=address.user or None,
            password=address.password or None,
            ssl=tls is not None,
            ssl_ca_certs=(tls and tls.ca) or None,
            ssl_cert_reqs="required" if tls is None or tls.verify else "none",
            ssl_check_hostname=tls is None or tls.verify,
            socket_timeout=timeout + _LONGEST_WAIT,
            socket_connect_timeout=timeout,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        return RedisTransport(address, layout, client)

    return open_one

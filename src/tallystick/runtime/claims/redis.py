"""Claims in Redis: one key per id, with an expiry time; each step is one script.

The key holds the token of the claim, or `done:` and the token of the worker that completed it. If
Redis loses its last second in a crash (`appendfsync everysec`), it forgets the marks of that
second, and those messages may run again. The client may repeat a step whose reply was lost:
claiming again with the same token succeeds, and so does completing again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from tallystick.core.extras import importing
from tallystick.runtime.claims import Claim, Terms
from tallystick.runtime.ids import new_uuid
from tallystick.runtime.store_url import StoreUrl, store_fault

__all__ = ["RedisClaims", "open_store"]

_TIMEOUT: Final = 10.0
_PREFIX: Final = "tallystick:claims:"
_DONE: Final = b"done"
_CLAIM: Final = """
local held = redis.call('GET', KEYS[1])
if held then return held end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return ARGV[1]
"""
_COMPLETE: Final = """
local held = redis.call('GET', KEYS[1])
local done = 'done:' .. ARGV[1]
if held and held ~= ARGV[1] and held ~= done then return 0 end
redis.call('SET', KEYS[1], done, 'PX', ARGV[2])
return 1
"""
_RELEASE: Final = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1
"""


class RedisClaims:
    """The keys of one scope."""

    def __init__(self, url: StoreUrl, terms: Terms, client: Any) -> None:
        self._url: Final = url
        self._terms: Final = terms
        self._client: Final = client
        self._claim: Final = client.register_script(_CLAIM)
        self._complete: Final = client.register_script(_COMPLETE)
        self._release: Final = client.register_script(_RELEASE)

    def claim(self, message_id: str) -> Claim:
        """Claim an id."""
        token = new_uuid()
        with self._guard():
            held = self._claim([self._key(message_id)], [token, _milliseconds(self._terms.lease)])
        if held == token.encode():
            return Claim("run", token)
        return Claim("done" if held.startswith(_DONE) else "held")

    def complete(self, message_id: str, token: str) -> bool:
        """Mark it as done."""
        with self._guard():
            key = self._key(message_id)
            return bool(self._complete([key], [token, _milliseconds(self._terms.keep)]))

    def release(self, message_id: str, token: str) -> None:
        """Give a claim back."""
        with self._guard():
            self._release([self._key(message_id)], [token])

    def forget(self, message_id: str) -> None:
        """Let the message run again."""
        with self._guard():
            self._client.delete(self._key(message_id))

    def close(self) -> None:
        """End all connections."""
        self._client.close()

    def _key(self, message_id: str) -> str:
        return f"{_PREFIX}{self._terms.scope}:{message_id}"

    @contextmanager
    def _guard(self) -> Iterator[None]:
        from redis import RedisError  # noqa: PLC0415 (loads only when it is used)

        try:
            yield
        except RedisError as error:
            raise store_fault(self._url, error) from None


def open_store(url: StoreUrl, terms: Terms, _clock: Callable[[], float]) -> RedisClaims:
    """Connect when the first claim is made."""
    with importing("redis"):
        from redis import Redis  # noqa: PLC0415 (loads only when it is used)
    client = Redis.from_url(url.target, socket_timeout=_TIMEOUT, socket_connect_timeout=_TIMEOUT)
    return RedisClaims(url, terms, client)


def _milliseconds(seconds: float) -> int:
    return max(int(seconds * 1000), 1)

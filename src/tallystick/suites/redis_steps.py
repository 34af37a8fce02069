"""The operation `redis_steps`: set up a queue, do the steps, report the state after each step.

Each case has its own queue with a unique name; its keys are deleted afterwards.
The steps are done by the layouts that the transport uses, with the clock of the case.
"""

from __future__ import annotations

from contextlib import closing
from math import inf
from typing import Any, Final
from uuid import uuid4

from tallystick.brokers.redis.binding import LAYOUTS
from tallystick.brokers.redis.layouts import LaravelLayout, LegacyLayout, Reserved
from tallystick.core import splice
from tallystick.core.binding import project
from tallystick.core.envelope import DeadLetter, decode
from tallystick.core.errors import Unavailable
from tallystick.core.extras import importing
from tallystick.core.frame import Frame
from tallystick.core.names import names
from tallystick.core.transport import Delivery
from tallystick.runtime.reading import reader

__all__ = ["generate", "redis_steps"]

_LISTS: Final = {"ready": "work", "processing": "processing"}
_SORTED: Final = ("delayed", "reserved", "deadlines")
_SECONDS: Final = 5.0


def redis_steps(given: dict[str, Any]) -> dict[str, Any]:
    """Do the steps of a case and give the state after each."""
    with importing("redis"):
        import redis  # noqa: PLC0415
    connection = redis.Redis.from_url(given["redis_url"], socket_timeout=_SECONDS, protocol=2)
    with closing(connection) as client:
        try:
            return {"steps": _on_a_bench(client, given)}
        except redis.RedisError as error:
            raise Unavailable(
                f"the Redis server of the suite failed: {error}", code="broker"
            ) from error


def _on_a_bench(client: Any, given: dict[str, Any]) -> list[dict[str, Any]]:
    bench = _Bench(client, given)
    try:
        bench.fill(given.get("state", {}))
        return [bench.do(step) for step in given["steps"]]
    finally:
        bench.clear()


class _Bench:
    """One queue of a live Redis, and the reservations that the steps made."""

    def __init__(self, client: Any, given: dict[str, Any]) -> None:
        self._client: Final = client
        self._queue: Final = f"tally-suite-{uuid4().hex}"
        retry_after, most = given["retry_after"], given["migration_batch_size"]
        zset = given["layout"] == "zset"
        self._binding: Final = LAYOUTS["laravel" if zset else "legacy"]
        self._read: Final = reader(self._binding)
        self._layout: Final = (LaravelLayout if zset else LegacyLayout)(retry_after, most)
        self._keys: Final = names(self._binding.names, self._queue)
        self._reserved: Final[dict[str, Delivery]] = {}

    def fill(self, state: dict[str, Any]) -> None:
        """Write the state that a case begins with."""
        for part, role in _LISTS.items():
            for member in _members(state, part):
                self._client.rpush(self._keys[role], member)
        for part in _SORTED:
            for entry in _members(state, part):
                score = entry["score"]
                self._client.zadd(
                    self._keys[part], {_member(entry): inf if score == "+inf" else score}
                )
        for _ in range(state.get("notify", 0)):
            self._client.rpush(self._keys["notify"], 1)

    def do(self, step: dict[str, Any]) -> dict[str, Any]:
        """Do one step; report its outcome and the content of the keys."""
        try:
            said = getattr(self, f"_{step['op']}")(step) or {}
        except Unavailable as error:
            if error.code != "delivery_lost":
                raise
            said = {"expired": True}
        return {**said, **self._observe()}

    def clear(self) -> None:
        """Delete every key of this case."""
        self._client.delete(*self._keys.values())

    def _observe(self) -> dict[str, Any]:
        client = self._client
        seen: dict[str, Any] = {}
        for part, role in _LISTS.items():
            if role in self._keys:
                seen[part] = [_text(one) for one in client.lrange(self._keys[role], 0, -1)]
        for part in _SORTED:
            if part in self._keys:
                pairs = client.zrange(self._keys[part], 0, -1, withscores=True)
                seen[part] = [{"member": _text(one), "score": _score(at)} for one, at in pairs]
        if "notify" in self._keys:
            seen["notify"] = client.llen(self._keys["notify"])
        seen["ready_count"] = client.llen(self._keys["work"])
        seen["dlq_count"] = client.llen(self._keys["dead_letter"])
        return seen

    def _push_delayed(self, step: dict[str, Any]) -> None:
        frame = project(
            self._binding, decode(step["body"].encode()), delay=step["delay"], now=step["now"]
        )
        self._layout.push(self._client, self._queue, [frame])

    def _migrate(self, step: dict[str, Any]) -> None:
        if isinstance(self._layout, LaravelLayout):
            self._layout.migrate(self._client, self._queue, step["now"])

    def _sweep(self, step: dict[str, Any]) -> None:
        if isinstance(self._layout, LegacyLayout):
            self._layout.sweep(self._client, self._queue, step["now"])

    def _reserve(self, step: dict[str, Any]) -> dict[str, Any]:
        taken = self._layout.reserve(self._client, self._queue, 1, step["now"])
        if not taken:
            return {"outcome": "empty"}
        (delivery,) = taken
        self._reserved[step.get("as", "")] = delivery
        reading = self._read(delivery, 0)
        return {
            "outcome": "poison" if reading.kind == "poison" else "delivered",
            "handler_body": _text(delivery.frame.body),
            "reported_attempts": reading.attempts + 1,
        }

    def _ack(self, step: dict[str, Any]) -> None:
        self._layout.ack(self._client, [self._find(step)])

    def _release(self, step: dict[str, Any]) -> None:
        delivery = self._find(step)
        counted = self._read(delivery, 0).attempts + 1
        waits = {"delay": step["delay"], "now": step["now"]} if step["delay"] else {}
        frame = project(self._binding, decode(splice.retry(delivery.frame.body, counted)), **waits)
        self._layout.replace(self._client, delivery, self._queue, frame, step["now"])

    def _dead_letter(self, step: dict[str, Any]) -> None:
        delivery = self._find(step)
        record = DeadLetter("failed", None, None, 0, self._queue, 1, "python")
        frame = Frame(splice.dead_letter(delivery.frame.body, record))
        self._layout.replace(self._client, delivery, f"{self._queue}.dlq", frame, step["now"])

    def _find(self, step: dict[str, Any]) -> Delivery:
        given = step["reservation"]
        if isinstance(given, str):
            return self._reserved[given]
        raw = given["raw"].encode()
        return Delivery(Frame(raw), self._queue, Reserved(given["token"].encode() + b":" + raw))


def generate(state: dict[str, Any], part: str) -> list[Any] | None:
    """Expand `<part>_generate`, a count and a pattern; None when the state has no such thing."""
    given = state.get(f"{part}_generate")
    if given is None:
        return None
    made = [given["member"] % index for index in range(given["count"])]
    if "score" not in given:
        return made
    return [{"member": member, "score": given["score"]} for member in made]


def _members(state: dict[str, Any], part: str) -> list[Any]:
    return state.get(part) or generate(state, part) or []


def _member(entry: dict[str, Any]) -> str:
    return entry["member"] if "member" in entry else f"{entry['token']}:{entry['raw']}"


def _text(member: bytes) -> str:
    return member.decode("utf-8", "backslashreplace")


def _score(score: float) -> int | float | str:
    if score == inf:
        return "+inf"
    return int(score) if score.is_integer() else score

"""The operations of `<entity>/$management` (brokers sheet, 10.8): one row each.

A row takes the space, the entity's path and the request's body, and gives a status code and the
reply's body. AMQP arrays and lists are different types, and the SDK for Go checks the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

from proton import UNDESCRIBED, Array, Data

from tallystick.brokers.servicebus.emulator.entity import Refusal
from tallystick.brokers.servicebus.emulator.outlet import encode_held, in_milliseconds
from tallystick.brokers.servicebus.emulator.sections import read_message
from tallystick.brokers.servicebus.emulator.space import Space

__all__ = ["answer"]

_OK: Final = 200
_NOTHING: Final = 204
_PREFIX: Final = "com.microsoft:"
_SCHEDULED: Final = "x-opt-scheduled-enqueue-time"

Body = Mapping[str, Any]
Reply = tuple[int, dict[str, Any]]


def answer(space: Space, path: str, operation: str | None, body: Body) -> Reply:
    """Perform one operation."""
    row = _OPERATIONS.get((operation or "").removeprefix(_PREFIX))
    if row is None:
        raise Refusal(
            "amqp:not-implemented",
            501,
            f"the emulator does not support the operation {operation!r}",
        )
    try:
        return row(space, path, body)
    except (KeyError, TypeError, ValueError) as error:
        text = f"{operation}: the request cannot be read ({type(error).__name__}: {error})"
        raise Refusal("com.microsoft:argument-error", 400, text) from error


def _array(kind: int, values: Iterable[Any]) -> Array:
    plain: Any = UNDESCRIBED
    return Array(plain, kind, *values)


def _renew_lock(space: Space, path: str, body: Body) -> Reply:
    entity = space.find(path)
    times = [in_milliseconds(entity.renew(UUID(str(one)))) for one in body["lock-tokens"]]
    return _OK, {"expirations": _array(Data.TIMESTAMP, times)}


def _schedule(space: Space, path: str, body: Body) -> Reply:
    numbers: list[int] = []
    for one in body["messages"]:
        message = read_message(bytes(one["message"]))
        due = message.annotations[_SCHEDULED] / 1000
        given = [entity.schedule(message, due) for entity in space.entities_of(path)]
        numbers += given[:1]
    return _OK, {"sequence-numbers": _array(Data.LONG, numbers)}


def _cancel(space: Space, path: str, body: Body) -> Reply:
    for entity in space.entities_of(path):
        entity.cancel(body["sequence-numbers"])
    return _OK, {}


def _peek(space: Space, path: str, body: Body) -> Reply:
    found = space.find(path).peek(
        body["from-sequence-number"], body["message-count"], body.get("session-id")
    )
    return _messages([{"message": encode_held(held, show_lock=False)} for held in found])


def _receive(space: Space, path: str, body: Body) -> Reply:
    entity = space.find(path)
    found = entity.take_deferred(body["sequence-numbers"])
    if body["receiver-settle-mode"] == 0:
        for held in found:
            entity.remove(held)
        return _messages([{"message": encode_held(held)} for held in found])
    session = body.get("session-id")
    until = None if session is None else space.sessions_of(entity).until(session)
    tokens = [entity.lock(held, until) for held in found]
    return _messages(
        [{"lock-token": token, "message": encode_held(held)}
         for token, held in zip(tokens, found, strict=True)]
    )  # fmt: skip


def _messages(found: list[dict[str, Any]]) -> Reply:
    return (_OK, {"messages": found}) if found else (_NOTHING, {})


def _dispose(space: Space, path: str, body: Body) -> Reply:
    entity = space.find(path)
    status = body["disposition-status"]
    changes = dict(body.get("properties-to-modify") or {})
    reasons = {
        "DeadLetterReason": body.get("deadletter-reason"),
        "DeadLetterErrorDescription": body.get("deadletter-description"),
    }
    told = {key: value for key, value in reasons.items() if value is not None}
    for token in (UUID(str(one)) for one in body["lock-tokens"]):
        if status == "completed":
            entity.complete(token)
        elif status == "abandoned":
            entity.abandon(token, changes)
        elif status == "defered":  # the protocol's own spelling
            entity.defer(token, changes)
        elif status == "suspended":
            entity.dead_letter(token, {**changes, **told})
        else:
            raise ValueError(f"disposition-status {status!r}")
    return _OK, {}


def _renew_session(space: Space, path: str, body: Body) -> Reply:
    until = space.sessions_of(space.find(path)).renew(body["session-id"])
    return _OK, {"expiration": in_milliseconds(until)}


def _get_state(space: Space, path: str, body: Body) -> Reply:
    return _OK, {
        "session-state": space.sessions_of(space.find(path)).read_state(body["session-id"])
    }


def _set_state(space: Space, path: str, body: Body) -> Reply:
    state = body["session-state"]
    kept = None if state is None else bytes(state)
    space.sessions_of(space.find(path)).write_state(body["session-id"], kept)
    return _OK, {}


def _list_sessions(space: Space, path: str, body: Body) -> Reply:
    names = space.sessions_of(space.find(path)).names()
    page = names[body["skip"] : body["skip"] + body["top"]]
    return (_OK, {"sessions-ids": _array(Data.STRING, page)}) if page else (_NOTHING, {})


_OPERATIONS: Final[Mapping[str, Callable[[Space, str, Body], Reply]]] = {
    "renew-lock": _renew_lock,
    "schedule-message": _schedule,
    "cancel-scheduled-message": _cancel,
    "peek-message": _peek,
    "receive-by-sequence-number": _receive,
    "update-disposition": _dispose,
    "renew-session-lock": _renew_session,
    "get-session-state": _get_state,
    "set-session-state": _set_state,
    "get-message-sessions": _list_sessions,
}

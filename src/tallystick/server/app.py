"""The ASGI application: the table of operations as Starlette routes.

Subjects are URNs, and a URN may hold any character, so routes match the path as it was sent
(percent-encoded) and each segment is decoded after. A method that a path does not have is 405
with `Allow`; a path that is not in the table is 404; both in Confluent's words.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from time import perf_counter
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from tallystick.server.answers import Answer, Fault, fault
from tallystick.server.checks import CHECKS
from tallystick.server.operations import OPERATIONS, Operation, read_query
from tallystick.server.pool import Pool
from tallystick.server.reads import READS, Call, Service
from tallystick.server.reload import Store, keep_fresh

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = ["MAX_BODY", "build_app"]

MAX_BODY: Final = 1024 * 1024
_DRAINED: Final = 16 * MAX_BODY
_log: Final = logging.getLogger("tallystick.server")


def build_app(store: Store, level: str, rules: str, *, reload_seconds: float = 1.0) -> ASGIApp:
    """Build the application; its workers and its file watch run as long as the application."""
    service = Service(store, Pool(), level, rules)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await service.pool.open()
        watch = asyncio.create_task(keep_fresh(store, reload_seconds)) if reload_seconds else None
        try:
            yield
        finally:
            if watch is not None:
                watch.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watch
            await service.pool.close()

    by_path: dict[str, dict[str, Operation]] = {}
    for operation in OPERATIONS:
        by_path.setdefault(operation.path, {})[operation.method] = operation
    routes = [Route(path, _Path(service, path, held)) for path, held in by_path.items()]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.router.redirect_slashes = False
    app.router.default = _NotFound(service)
    return _keep_encoded(app)


def _keep_encoded(app: ASGIApp) -> ASGIApp:
    """Route by the encoded path, so that %2F is not a separator."""

    async def wrapped(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "path": scope["raw_path"].decode("latin-1"), "root_path": ""}
        await app(scope, receive, send)

    return wrapped


class _Path:
    """One path of the table, with all its methods."""

    def __init__(self, service: Service, path: str, held: dict[str, Operation]) -> None:
        self.service = service
        self.path = path
        self.held = {**held, **({"HEAD": held["GET"]} if "GET" in held else {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        method = scope["method"]
        operation = self.held.get(method)
        if operation is None:
            allowed = {"allow": ", ".join(sorted(self.held))}
            method, answer = "other", _with_headers(fault(405), allowed)
        else:
            answer = await self._answer(operation, scope, receive)
        self.service.metrics.count(method, self.path, answer.status, perf_counter() - started)
        await _respond(answer)(scope, receive, send)

    async def _answer(self, operation: Operation, scope: Scope, receive: Receive) -> Answer:
        try:
            call = await _read_call(operation, scope, receive)
            if operation.name in CHECKS:
                return await CHECKS[operation.name](self.service, call)
            return READS[operation.name](self.service, call)
        except Fault as early:
            answer = fault(early.code, *early.parts)
            return _with_headers(answer, _EXTRA.get(early.code, {}))
        except Exception as error:  # noqa: BLE001 - the last resort: logged, told, not swallowed
            _log.exception("%s %s failed", operation.method, operation.path)
            return fault(50001, type(error).__name__)


_EXTRA: Final = {429: {"retry-after": "1"}, 42209: {"connection": "close"}}


class _NotFound:
    """The answer for every path that is not in the table."""

    def __init__(self, service: Service) -> None:
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.service.metrics.count("other", "other", 404, 0.0)
            await _respond(fault(404))(scope, receive, send)


async def _read_call(operation: Operation, scope: Scope, receive: Receive) -> Call:
    path = {name: unquote(text) for name, text in scope["path_params"].items()}
    given = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
    query = read_query(operation, given)
    headers = dict(scope["headers"])
    body = await _read_body(receive) if operation.body else b""
    return Call(path, query, body, headers.get(b"accept", b"").decode("latin-1"))


async def _read_body(receive: Receive) -> bytes:
    """Read at most `MAX_BODY` bytes.

    A little more is read and dropped, so that a client that is still sending can read the error.
    """
    parts: list[bytes] = []
    size = 0
    while size <= _DRAINED:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Fault(400, "The request body is incomplete")
        part = message.get("body", b"")
        size += len(part)
        if size <= MAX_BODY:
            parts.append(part)
        if not message.get("more_body"):
            break
    if size > MAX_BODY:
        raise Fault(42209, MAX_BODY)
    return b"".join(parts)


def _with_headers(answer: Answer, headers: dict[str, str]) -> Answer:
    return Answer(answer.status, answer.body, answer.type, headers)


def _respond(answer: Answer) -> Response:
    headers = {
        "content-type": answer.type,
        "x-content-type-options": "nosniff",
        "cache-control": "no-cache",
        **answer.headers,
    }
    return Response(answer.body, answer.status, headers)

"""Run the application on a socket until it is told to stop."""

from __future__ import annotations

import gc
import signal
import socket
import sys
from typing import TYPE_CHECKING

from tallystick.core.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tallystick.server.reload import Store

__all__ = ["listen", "serve"]


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket, so that a taken port is one clear line and not a traceback."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # The protocol must be named: only then does asyncio switch Nagle's algorithm off, which
        # would hold back the second packet of an answer for 40 ms.
        opened = socket.socket(family, kind, protocol)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
    except OSError as error:
        raise Unavailable(
            f"{host}:{port}: {error.strerror or error}",
            code="server.bind",
            hint="choose another --host or --port; port 0 takes any free one",
        ) from error
    return opened


def serve(
    store: Store,
    opened: socket.socket,
    level: str,
    rules: str,
    *,
    reload_seconds: float,
    ready: Callable[[], None],
) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is called once connections are answered."""
    import uvicorn  # noqa: PLC0415 - loads only when something is served

    from tallystick.server.app import build_app  # noqa: PLC0415 - loads starlette

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready()

    config = uvicorn.Config(
        build_app(store, level, rules, reload_seconds=reload_seconds),
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_graceful_shutdown=5,
    )
    server = Server(config)
    sys.setswitchinterval(0.0005)  # while the files are read again, requests wait this long at most
    gc.collect()
    gc.freeze()  # the registry stays: walking it in every full collection would stall requests

    def leave(*_: object) -> None:
        """Stop in good order; uvicorn sends itself the signal again when it has stopped."""
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)
    with opened:
        server.run(sockets=[opened])

"""TLS in front of a server that has none: what comes in is passed on in the clear, both ways."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from threading import Thread

from tests.brokers.authority import Authority

__all__ = ["fronted"]

_SIZE = 65536


@contextmanager
def fronted(own: Authority, port: int) -> Iterator[int]:
    """Give the port that speaks TLS for another port of this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own.certificate, own.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=_accept, args=(listener, context, port), daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def _accept(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError):  # the listener was closed: the end
        while True:
            plain, _ = listener.accept()
            Thread(target=_serve, args=(plain, context, port), daemon=True).start()


def _serve(plain: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError), closing(plain):  # a client that does not trust us hangs up
        near = context.wrap_socket(plain, server_side=True)
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            back = Thread(target=_pump, args=(far, near), daemon=True)
            back.start()
            _pump(near, far)
            back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(_SIZE):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)

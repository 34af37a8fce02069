"""The proxy forwards, resets, and leaves connections half open."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Thread

import pytest

from tallystick.suites.faults.proxy import Proxy

LIMIT = 60.0


@contextmanager
def echo() -> Iterator[int]:
    """Answer every connection with what it says."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            try:
                while True:
                    connection, _ = server.accept()
                    Thread(target=answer, args=(connection,), daemon=True).start()
            except OSError:
                return  # it was closed: the test is over

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join(LIMIT)


def answer(connection: socket.socket) -> None:
    with closing(connection):
        try:
            while data := connection.recv(100):
                connection.sendall(data)
        except ConnectionError:
            return  # it was cut: the test is about that


def dial(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=LIMIT)


def test_what_is_sent_comes_back() -> None:
    with echo() as port, Proxy(port) as proxy, dial(proxy) as client:
        client.sendall(b"hello")
        assert client.recv(100) == b"hello"
        assert proxy.carried == 1


def test_a_cut_resets_every_connection_and_the_next_is_forwarded() -> None:
    with echo() as port, Proxy(port) as proxy:
        with dial(proxy) as client:
            client.sendall(b"hello")
            assert client.recv(100) == b"hello"
            assert proxy.cut() == 1
            with pytest.raises(ConnectionError):
                client.recv(100)
        with dial(proxy) as client:
            client.sendall(b"again")
            assert client.recv(100) == b"again"


def test_while_it_hangs_connections_are_open_and_nothing_comes() -> None:
    with echo() as port, Proxy(port) as proxy, dial(proxy) as client:
        client.sendall(b"hello")
        assert client.recv(100) == b"hello"
        proxy.hang()
        client.settimeout(0.3)
        client.sendall(b"lost?")
        with pytest.raises(TimeoutError):
            client.recv(100)
        proxy.flow()
        client.settimeout(LIMIT)
        assert client.recv(100) == b"lost?"


def test_a_connection_to_a_broker_that_is_down_is_reset() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with Proxy(port) as proxy, dial(proxy) as client:
        assert _ended(client)


def _ended(client: socket.socket) -> bool:
    try:
        return client.recv(100) == b""
    except ConnectionError:
        return True

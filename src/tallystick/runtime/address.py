"""Read a broker URL or a broker name: find its binding, and open connections.

The URL scheme names the broker (`BROKERS`). The module of a transport is imported when its broker
is used. `redis://host?laravel=1` selects the Laravel layout. The password stays inside the address:
no text shows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from tallystick.brokers import BROKERS
from tallystick.brokers.servers import NAMES, STORES, resolve_url
from tallystick.core.binding import Binding
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.transport import Address, Transport, is_on

__all__ = ["Link", "link_to", "read_address"]

_SCHEMES: Final = {scheme: name for name, row in BROKERS.items() for scheme in row.schemes}


@dataclass(frozen=True, slots=True)
class Link:
    """A reachable broker: its address, its binding, and how to open a connection."""

    address: Address
    binding: Binding
    open: Callable[[], Transport]


def read_address(url: str) -> Address:
    """Read a URL; an error never quotes the URL.

    The name of a broker that `tally broker up` started stands for its URL.
    """
    hint = "for example redis://127.0.0.1:6379, amqp://user:password@host, memory://"
    url = resolve_url(url)
    scheme, separator, _ = url.partition("://")
    if not separator:
        names = ", ".join(name for name in NAMES if name not in STORES)
        raise UsageError(
            "this is neither a broker URL nor the name of a broker",
            code="url",
            hint=f"{hint}; the broker names are {names}",
        )
    if scheme not in _SCHEMES:
        known = ", ".join(_SCHEMES)
        raise UsageError(
            f"no broker uses the URL scheme {scheme!r}", code="url", hint=f"use one of {known}"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise UsageError(f"the {scheme} URL is not valid", code="url", hint=hint) from error
    return Address(
        _SCHEMES[scheme],
        scheme,
        parts.hostname or "",
        port,
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        unquote(parts.path.lstrip("/")),
        options,
        (parts.password, quote(unquote(parts.password), safe="")) if parts.password else (),
    )


def link_to(url: str) -> Link:
    """Find the broker that a URL names. Nothing is opened yet."""
    address = read_address(url)
    row = BROKERS[address.broker]
    module = f"tallystick.brokers.{address.broker}.transport"
    if find_spec(module) is None:
        raise Unavailable(
            f"there is no transport for {row.title} yet",
            code="no_transport",
            hint="docs/guides/runtime.md lists the transports that exist",
        )
    laravel = "laravel" in row.layouts and is_on(address, "laravel")
    binding = row.layouts["laravel"] if laravel else row.binding
    return Link(address, binding, import_module(module).connect(address))

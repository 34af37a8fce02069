"""Read the URL of a store: its kind, its address and its options.

    memory                                  this process only
    sqlite:///orders.db                     a file, from the current folder (four slashes: from /)
    redis://user:password@host:port/db      also rediss://
    postgresql://user:password@host/name    the rest of the query goes to libpq
    redis, postgresql                       a server started by `tally broker up`

Its text and its repr show no secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from tallystick.brokers.servers import resolve_url
from tallystick.core.errors import Unavailable, UsageError

__all__ = ["StoreUnavailable", "StoreUrl", "read_store_url", "store_fault"]

_KINDS: Final = {
    "memory": "memory",
    "sqlite": "sqlite",
    "redis": "redis",
    "rediss": "redis",
    "postgresql": "postgresql",
    "postgres": "postgresql",
}
_MOST: Final = 10**9
_HINT: Final = "for example memory, sqlite:///orders.db, redis://host, postgresql://user@host/name"


class StoreUnavailable(Unavailable):
    """A store failed to do an operation."""


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """The parts of a store URL: `target` is the address for its client library."""

    kind: str
    shown: str
    target: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.shown

    def number(self, name: str, default: float) -> float:
        """Return a numeric option in seconds: above 0 and at most about 30 years."""
        text = self.options.get(name)
        if text is None:
            return default
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number <= _MOST:
            raise UsageError(
                f"{name} must be a number above 0, up to {_MOST}, not {text!r}",
                code="store_url",
                hint=f"for example {name}={default:g}",
            )
        return number


def read_store_url(url: str, kinds: Sequence[str], ours: Sequence[str]) -> StoreUrl:
    """Read a store URL; `ours` are the options that do not go to the client library."""
    url = resolve_url(url)
    scheme = url.partition(":")[0]
    kind = _KINDS.get(scheme, "")
    if kind not in kinds or (kind != "memory" and "://" not in url):
        raise UsageError(
            f"this is not a store URL; supported stores: {', '.join(kinds)}",
            code="store_url",
            hint=_HINT,
        )
    try:
        parts = urlsplit(url)
        host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise UsageError(f"the {scheme} URL is not valid", code="store_url", hint=_HINT) from error
    options = {name: given.pop(name) for name in ours if name in given}
    if kind in ("memory", "sqlite") and given:
        raise UsageError(
            f"{kind} has no option {min(given)!r}",
            code="store_url",
            hint=f"use one of {list(ours)}",
        )
    if kind == "memory":
        return StoreUrl(kind, "memory", options=options)
    if kind == "sqlite":
        path = unquote(parts.path.removeprefix("/"))
        if parts.netloc or not path or path == ":memory:":
            raise UsageError(
                "sqlite needs the name of a file",
                code="store_url",
                hint="for example sqlite:///orders.db, or memory",
            )
        return StoreUrl(kind, f"sqlite:///{path}", path, options=options)
    login = f"{unquote(parts.username)}@" if parts.username else ""
    return StoreUrl(
        kind,
        f"{scheme}://{login}{host}{parts.path}",
        urlunsplit((scheme, parts.netloc, parts.path, urlencode(given), "")),
        unquote(parts.password or ""),
        options,
    )


def store_fault(url: StoreUrl, error: BaseException) -> StoreUnavailable:
    """Return the error of a store, without its secrets."""
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    if url.secret:
        text = text.replace(url.secret, "***")
    return StoreUnavailable(
        f"{url}: {text}",
        code="store",
        hint="check that the store is running, and its host, port and login",
    )

"""The URL of a store: which kind it is, where it is, and the options that are ours.

    memory                                  this process only
    sqlite:///orders.db                     a file, from the current folder (four slashes: from /)
    redis://user:password@host:port/db      also rediss://
    postgresql://user:password@host/name    the rest of the query goes to libpq

As text, and in a repr, it shows no secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

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
    """A store did not do what it was asked to."""


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A store's URL, taken apart: `target` is what its client library dials."""

    kind: str
    shown: str
    target: str = field(default="", repr=False)
    secret: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.shown

    def number(self, name: str, default: float) -> float:
        """Give an option that is a number above 0, up to some 30 years of seconds."""
        text = self.options.get(name)
        if text is None:
            return default
        try:
            number = float(text)
        except ValueError:
            number = 0.0
        if not 0 < number <= _MOST:
            raise UsageError(
                f"{name} is {text!r}, not a number above 0, up to {_MOST}",
                code="store_url",
                hint=f"for example {name}={default:g}",
            )
        return number


def read_store_url(url: str, kinds: Sequence[str], ours: Sequence[str]) -> StoreUrl:
    """Take a URL apart; `ours` are the options that do not go to the client library."""
    scheme = url.partition(":")[0]
    kind = _KINDS.get(scheme, "")
    if kind not in kinds or (kind != "memory" and "://" not in url):
        raise UsageError(
            f"this is not a URL of a store of the kind {', '.join(kinds)}",
            code="store_url",
            hint=_HINT,
        )
    try:
        parts = urlsplit(url)
        host = f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}"
        given = dict(parse_qsl(parts.query, keep_blank_values=True))
    except ValueError as error:
        raise UsageError(
            f"the {scheme} URL cannot be read", code="store_url", hint=_HINT
        ) from error
    options = {name: given.pop(name) for name in ours if name in given}
    if kind in ("memory", "sqlite") and given:
        raise UsageError(
            f"{kind} has no option {min(given)!r}", code="store_url", hint=f"one of {list(ours)}"
        )
    if kind == "memory":
        return StoreUrl(kind, "memory", options=options)
    if kind == "sqlite":
        path = unquote(parts.path.removeprefix("/"))
        if parts.netloc or not path or path == ":memory:":
            raise UsageError(
                "sqlite needs a file", code="store_url", hint="sqlite:///orders.db, or memory"
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
    """Say that a store did not do what it was asked to, without its secrets."""
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    if url.secret:
        text = text.replace(url.secret, "***")
    return StoreUnavailable(
        f"{url}: {text}", code="store", hint="is the store up? check the host, port and login"
    )

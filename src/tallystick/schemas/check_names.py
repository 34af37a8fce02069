"""The form of a URN, and every name that is derived from it.

A URN has the form of RFC 8141: `urn:<namespace>:<specific>`. The recommended form is lower-case
ASCII, `urn:babel:<bounded-context>:<event>`; other letters give a warning, not an error. Brokers
and catalogs allow fewer characters than a URN, so each has a derived name; two URNs may not share
one.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = [
    "NAMINGS",
    "collisions",
    "is_house_urn",
    "is_urn",
    "kafka_topic",
    "message_id",
    "sqs_queue",
]

_URN: Final = re.compile(
    r"urn:[a-z0-9][a-z0-9-]{0,30}[a-z0-9]:"
    r"(?:[a-z0-9._~!$&'()*+,;=:@/-]|%[0-9a-f]{2})+",
    re.IGNORECASE,
)
_HOUSE_URN: Final = re.compile(r"[a-z0-9:._-]+")
_SQS_LONGEST: Final = 80


def is_urn(text: str) -> bool:
    """Tell whether a text is a URN at all."""
    return _URN.fullmatch(text) is not None


def is_house_urn(text: str) -> bool:
    """Tell whether a URN has the recommended form, lower-case ASCII."""
    return _HOUSE_URN.fullmatch(text) is not None


def message_id(urn: str) -> str:
    """Give the key of its message in an AsyncAPI document."""
    return re.sub(r"[^A-Za-z0-9_]", "_", urn)


def kafka_topic(urn: str) -> str:
    """Give a valid topic name: a dot replaces every character that Kafka does not allow."""
    return re.sub(r"[^A-Za-z0-9._-]", ".", urn)


def sqs_queue(urn: str) -> str:
    """Give a valid queue name of at most 80 characters."""
    return re.sub(r"[^A-Za-z0-9_-]", "-", urn)[:_SQS_LONGEST]


NAMINGS: Final[dict[str, Callable[[str], str]]] = {
    "equal except for upper and lower case:": str.casefold,
    "both get the AsyncAPI message name": message_id,
    "both get the Kafka metric name": lambda urn: kafka_topic(urn).replace(".", "_"),
    "both get the SQS queue name": sqs_queue,
}
"""Kind of collision -> derived name. In Kafka's metric names a dot becomes an underscore."""


def collisions(urns: Iterable[str]) -> Iterator[tuple[str, str, str, str]]:
    """Give (later URN, earlier URN, which naming, the shared name), once for a pair."""
    seen: dict[tuple[str, str], str] = {}
    for urn in urns:
        for naming, derive in NAMINGS.items():
            name = derive(urn)
            earlier = seen.setdefault((naming, name), urn)
            if earlier != urn:
                yield urn, earlier, naming, name
                break

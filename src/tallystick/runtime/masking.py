"""Mask messages for log lines and dead letters: no marked value, and no body without a catalog.

The catalog masks a body in a log line; fields that it does not declare are masked too. The text of
an exception is searched for the values of the message. Values that must be masked are replaced: as
they are, in their escaped forms and word by word, in upper and lower case. Such a text is written
to dead letters, never to the log, because a value can be changed beyond recognition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from tallystick.core.errors import Rejected
from tallystick.runtime.contracts import Contracts
from tallystick.schemas.mask import mask_message, plan_payload
from tallystick.schemas.values import parse_json

__all__ = ["mask_text", "show_body"]

_STARS: Final = "***"
_SHORTEST_WORD: Final = 3


def show_body(contracts: Contracts | None, urn: str, body: bytes) -> str:
    """Give a body for a log line."""
    if contracts is None:
        return f"{len(body)} bytes"
    try:
        message = parse_json(body, "body")
    except Rejected:
        return f"{len(body)} bytes that are not JSON"
    return mask_message(body, message, contracts.schemas.get(urn, {})).decode()


def mask_text(contracts: Contracts | None, urn: str, data: Any, text: str) -> str:
    """Remove from a text the values of a message that a log must not show."""
    if contracts is None or data is None:
        return text
    forms: set[str] = set()
    for redaction in plan_payload(contracts.schemas.get(urn, {}), data):
        place = redaction.path
        found = [str(place[-1])] if redaction.is_name else _leaves(_at(data, place))
        for value in found:
            forms |= _forms(value)
    if not forms:
        return text
    longest_first = sorted(forms, key=len, reverse=True)
    return re.sub("|".join(map(re.escape, longest_first)), _STARS, text, flags=re.IGNORECASE)


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for step in place:
        value = value[step]
    return value


def _leaves(value: Any) -> Iterator[Any]:
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            pending += [*one.keys(), *one.values()]
        elif isinstance(one, list):
            pending += one
        elif one is not None and not isinstance(one, bool):
            yield one


def _forms(value: Any) -> set[str]:
    """Give the ways in which a value is likely to be written."""
    if not isinstance(value, str):
        return {str(value), json.dumps(value)}
    words = [word for word in re.split(r"\W+", value) if len(word) >= _SHORTEST_WORD]
    whole = {value, repr(value)[1:-1], json.dumps(value)[1:-1], quote(value), quote(value, safe="")}
    return {form for form in (*whole, *words) if form.strip()}

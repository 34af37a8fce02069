"""Schema ids: from 1, in lexical URN order (as in bqschema); `ids.lock` fixes them.

    {"ids": {"urn:babel:orders:created": 1, "urn:babel:users:registered": 2}}

Messages may carry an id for years, so a URN in the lock always keeps its id. URNs
that are not in the lock get the ids after the highest one, in lexical order. A URN
that left the registry stays in the lock: its id is never given to another.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import Rejected
from tallystick.schemas.values import escape, line_of, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["LOCK", "MAX_ID", "assign_ids", "parse_lock", "read_lock", "render_lock"]

LOCK: Final = "ids.lock"
"""The name of the lock; it is beside the manifest."""
MAX_ID: Final = 2**31 - 1


def parse_lock(raw: bytes, file: str = LOCK) -> dict[str, int]:
    """Read a lock, or raise the first fault, naming the line."""
    _, faults = read_lock(raw, file)
    if faults:
        raise faults[0]
    return dict(parse_json(raw, file)["ids"])


def read_lock(raw: bytes, file: str = LOCK) -> tuple[set[str], tuple[Rejected, ...]]:
    """Give the URNs of a lock and every fault; only invalid JSON raises an error."""
    value = parse_json(raw, file)
    text = raw.decode()

    def fault(pointer: str, message: str) -> Rejected:
        return Rejected(
            f"{file}:{line_of(text, pointer)}: {message}",
            code="ids.lock",
            pointer=pointer,
            hint="restore the file from git; `tally schema serve --write-ids-lock` writes it",
        )

    if not isinstance(value, dict) or value.keys() != {"ids"} or not isinstance(value["ids"], dict):
        return set(), (fault("", 'the file must have the form {"ids": {URN: id}}'),)
    holders: dict[int, str] = {}
    faults = []
    for urn, number in value["ids"].items():
        place = f"/ids/{escape(urn)}"
        if not _is_id(number):
            faults.append(fault(place, f"an id must be an integer from 1 to {MAX_ID}"))
        elif number in holders:
            faults.append(fault(place, f"the id {number} already belongs to {holders[number]}"))
        else:
            holders[number] = urn
    return set(value["ids"]), tuple(faults)


def _is_id(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= MAX_ID


def assign_ids(urns: Iterable[str], locked: Mapping[str, int]) -> dict[str, int]:
    """Give every URN its id, in lexical URN order."""
    following = max(locked.values(), default=0) + 1
    out = {}
    for urn in sorted(urns):
        if urn in locked:
            out[urn] = locked[urn]
        else:
            out[urn] = following
            following += 1
    return out


def render_lock(ids: Mapping[str, int]) -> str:
    """Write a lock, in the order of the ids, so that a new URN is a new line at the end."""
    ordered = dict(sorted(ids.items(), key=lambda item: item[1]))
    return json.dumps({"ids": ordered}, indent=2, ensure_ascii=False) + "\n"

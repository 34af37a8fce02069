"""The rule `redis_steps`: the state after each step, in the words of the suite's Redis cases.

Members are compared byte for byte, those under `member_json` and `body_json` as JSON. The token
`<any>` is any 32 lower-case hexadecimal digits. A key that a step does not name is not asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from tallystick.core.verdict import Difference
from tallystick.suites.compare import compare, parse
from tallystick.suites.redis_steps import generate

__all__ = ["redis_steps"]

_PLAIN: Final = (
    "outcome", "handler_body", "reported_attempts", "ready", "processing", "notify",
    "ready_count", "dlq_count",
)  # fmt: skip
_SORTED: Final = ("delayed", "reserved", "deadlines")
_TOKEN: Final = re.compile(r"[0-9a-f]{32}")
_GENERATED: Final = "ready_generate"


def redis_steps(want: list[dict[str, Any]], result: dict[str, Any]) -> Iterator[Difference]:
    """Ask that each step led to what the case says."""
    steps = result.get("steps", ...)
    if not isinstance(steps, list) or len(steps) != len(want):
        yield Difference("/steps", f"{len(want)} steps", steps)
        return
    for number, (expect, found) in enumerate(zip(want, steps, strict=True)):
        yield from _step(expect, found, f"/steps/{number}")


def _step(expect: dict[str, Any], found: dict[str, Any], at: str) -> Iterator[Difference]:
    for name, value in expect.items():
        if name in _PLAIN:
            yield from compare(value, found.get(name, ...), f"{at}/{name}")
        elif name == _GENERATED:
            yield from compare(generate(expect, "ready"), found.get("ready", ...), f"{at}/ready")
        elif name in _SORTED:
            yield from _sorted(value, found.get(name, ...), f"{at}/{name}")
        elif name == "tokens_distinct":
            yield from _distinct(found.get("deadlines", ...), f"{at}/deadlines")
        else:
            yield Difference(
                f"{at}/{name}", "an expectation that this version of Tallystick knows", name
            )


def _sorted(want: list[dict[str, Any]], found: Any, at: str) -> Iterator[Difference]:
    """Compare sets with scores: members of equal scores have no order that the suite pins."""
    if not isinstance(found, list):
        yield Difference(at, want, found)
        return
    rest = list(found)
    for index, entry in enumerate(want):
        match = next((one for one in rest if _fits(entry, one)), None)
        if match is None:
            yield Difference(f"{at}/{index}", entry, rest)
        else:
            rest.remove(match)
    for one in rest:
        yield Difference(at, ..., one)


def _fits(entry: dict[str, Any], found: dict[str, Any]) -> bool:
    if entry["score"] != found["score"]:
        return False
    member = found["member"]
    for name in ("member_json", "body_json"):
        if name in entry:
            return not list(compare(entry[name], _parsed(member)))
    if "member" in entry:
        return bool(entry["member"] == member)
    token, _, raw = member.partition(":")
    wanted = entry["token"]
    fits = _TOKEN.fullmatch(token) if wanted == "<any>" else token == wanted
    return bool(fits) and raw == entry["raw"]


def _parsed(member: str) -> Any:
    try:
        return parse(member)
    except ValueError:
        return ...


def _distinct(found: Any, at: str) -> Iterator[Difference]:
    tokens = [one["member"].partition(":")[0] for one in found] if isinstance(found, list) else []
    if len(set(tokens)) != len(tokens) or not tokens:
        yield Difference(at, "distinct tokens", tokens)

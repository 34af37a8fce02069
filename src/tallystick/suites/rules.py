"""The rules for expectations: each name in `Case.expect` is one function here.

A rule takes the expected value and the result of the implementation, and yields differences. An
answer that cannot be read (not base64, not JSON) is a difference too, not an error of the judge.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.verdict import Difference
from tallystick.events.official import EVENT_RULES
from tallystick.suites.compare import compare, contain, lookup, parse, same
from tallystick.suites.redis_rule import redis_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["RULES", "Unreadable"]

Result = dict[str, Any]
_WINDOW: Final = 60
_SHORT: Final = 300


class Unreadable(Exception):
    """A member of the result breaks the protocol; carries the difference."""

    def __init__(self, pointer: str, wanted: str, found: Any) -> None:
        super().__init__(pointer)
        self.difference: Final = Difference(pointer, wanted, found)


def _bytes(result: Result, member: str) -> bytes:
    text = result.get(member, ...)
    if isinstance(text, str):
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            pass
    raise Unreadable(f"/{member}", "standard padded base64", text)


def _document(result: Result, member: str) -> Any:
    body = _bytes(result, member)
    try:
        return parse(body)
    except ValueError as error:
        raise Unreadable(f"/{member}", f"JSON ({error})", show(body)) from error


def show(body: bytes, around: int | None = None) -> str:
    """Give bytes as text for people; long ones as a window around one offset."""
    if around is None or len(body) <= _SHORT:
        text = body.decode("utf-8", "backslashreplace")
        return text if len(text) <= 2000 else f"{text[:2000]}... ({len(body)} bytes)"
    start, end = max(0, around - _WINDOW), min(len(body), around + _WINDOW)
    inner = body[start:end].decode("utf-8", "backslashreplace")
    return f"{'...' if start else ''}{inner}{'...' if end < len(body) else ''}"


def _same_bytes(pointer: str, want: bytes, have: bytes) -> Iterator[Difference]:
    if want == have:
        return
    at = next(
        (n for n, pair in enumerate(zip(want, have, strict=False)) if pair[0] != pair[1]),
        min(len(want), len(have)),
    )
    yield Difference(
        pointer, f"[byte {at}] {show(want, around=at)}", f"[byte {at}] {show(have, around=at)}"
    )


def members(want: dict[str, Any], result: Result) -> Iterator[Difference]:
    """Ask that the result holds exactly these values under these names."""
    for name, value in want.items():
        yield from compare(value, result.get(name, ...), f"/{name}")


def contains(want: dict[str, Any], result: Result) -> Iterator[Difference]:
    """Ask the same, but allow more members inside the values."""
    for name, value in want.items():
        yield from contain(value, result.get(name, ...), f"/{name}")


def no_members(want: list[str], result: Result) -> Iterator[Difference]:
    """Ask that the result does not have these members."""
    for name in want:
        if name in result:
            yield Difference(f"/{name}", ..., result[name])


def nowhere(want: list[str], result: Result) -> Iterator[Difference]:
    """Ask that these pointers do not exist in the result."""
    for pointer in want:
        found = lookup(result, pointer)
        if found is not ...:
            yield Difference(pointer, ..., found)


def types(want: dict[str, str], result: Result) -> Iterator[Difference]:
    """Ask for native types, which JSON cannot show; a result without types never passes."""
    named = result.get("types", want)
    if not isinstance(named, dict):
        raise Unreadable("/types", "an object", named)
    for pointer, kind in want.items():
        yield from compare(kind, named.get(pointer, ...), f"/types{pointer}")


def exact_bytes(want: dict[str, str], result: Result) -> Iterator[Difference]:
    """Ask for these bytes (base64) under these names, byte for byte."""
    for name, text in want.items():
        yield from _same_bytes(f"/{name}", base64.b64decode(text), _bytes(result, name))


def matches(want: dict[str, str], result: Result) -> Iterator[Difference]:
    """Ask that the text carried under each name matches a pattern as a whole."""
    for name, pattern in want.items():
        text = _bytes(result, name).decode("utf-8", "backslashreplace")
        if not re.fullmatch(pattern, text):
            yield Difference(f"/{name}", f"a match of {pattern}", text)


def json_texts(want: dict[str, Any], result: Result) -> Iterator[Difference]:
    """Ask that the JSON text carried under each name has this value."""
    for name, value in want.items():
        yield from compare(value, _document(result, name), f"/{name}")


def json_contains(want: dict[str, Any], result: Result) -> Iterator[Difference]:
    """Ask the same, but allow more members."""
    for name, value in want.items():
        yield from contain(value, _document(result, name), f"/{name}")


def document(want: dict[str, Any], result: Result) -> Iterator[Difference]:
    """Ask for values at pointers of the message in `bytes_base64`."""
    written = _document(result, "bytes_base64")
    for pointer, value in want.items():
        yield from compare(value, lookup(written, pointer), pointer)


def absent(want: list[str], result: Result) -> Iterator[Difference]:
    """Ask that these pointers do not exist in the message in `bytes_base64`."""
    written = _document(result, "bytes_base64")
    for pointer in want:
        found = lookup(written, pointer)
        if found is not ...:
            yield Difference(pointer, ..., found)


_VERDICTS: Final = ("ok", "no_identity", "poison")


def _verdict(result: Result) -> str:
    verdict = result.get("verdict", ...)
    if verdict in _VERDICTS:
        return str(verdict)
    raise Unreadable("/verdict", " or ".join(_VERDICTS), verdict)


def decodes(want: bool, result: Result) -> Iterator[Difference]:
    """Ask whether decoding gave an envelope with an identity."""
    verdict = _verdict(result)
    if (verdict == "ok") is not want:
        yield Difference("/verdict", "ok" if want else "no_identity or poison", verdict)


def accepted(want: bool, result: Result) -> Iterator[Difference]:
    """Ask whether a consumer accepts the envelope."""
    if result.get("accepted", ...) is not want:
        yield Difference("/accepted", want, result.get("accepted", ...))


def valid(want: bool, result: Result) -> Iterator[Difference]:
    """Ask whether the message is decoded and accepted."""
    verdict = _verdict(result)
    if want:
        yield from decodes(want=True, result=result)
        yield from accepted(want=True, result=result)
    elif verdict == "ok" and result.get("accepted", ...) is not False:
        yield Difference("/accepted", want, result.get("accepted", ...))


def _warnings(result: Result) -> list[Any]:
    found = result.get("warnings", [])
    if isinstance(found, list) and all(isinstance(one, str) for one in found):
        return found
    raise Unreadable("/warnings", "a list of pointers", found)


def warned(want: bool, result: Result) -> Iterator[Difference]:
    """Ask whether there was any warning."""
    found = _warnings(result)
    if bool(found) is not want:
        yield Difference("/warnings", "a warning" if want else [], found)


def warnings(want: list[str], result: Result) -> Iterator[Difference]:
    """Ask for a warning that names each of these pointers."""
    found = _warnings(result)
    for pointer in want:
        if pointer not in found:
            yield Difference("/warnings", pointer, found)


def rejected(want: dict[str, str], result: Result) -> Iterator[Difference]:
    """Ask for a rejection; a code and a pointer are compared if the result has them.

    The reason is free text of the implementation and is not compared.
    """
    if "rejected" not in result:
        yield Difference("/rejected", "a rejection", result)
    for name, value in want.items():
        if name in result:
            yield from compare(value, result[name], f"/{name}")


def within(want: dict[str, float], result: Result) -> Iterator[Difference]:
    """Ask that `min` and `max` of the result lie in a range; here numbers compare as numbers."""
    low, high = result.get("min", ...), result.get("max", ...)
    for name, value in (("min", low), ("max", high)):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Unreadable(f"/{name}", "a number", value)
    if not want["min"] <= low <= high <= want["max"]:
        yield Difference("", {"min": want["min"], "max": want["max"]}, {"min": low, "max": high})


def poison_record(want: dict[str, Any], result: Result) -> Iterator[Difference]:
    """Ask for the dead-letter record of a poison body (ADR-0035): splice, or wrapper, or either."""
    text = _bytes(result, "bytes_base64")
    record = _document(result, "bytes_base64")
    if not isinstance(record, dict):
        yield Difference("", "an object", record)
        return
    yield from contain(want["dead_letter"], record.get("dead_letter", ...), "/dead_letter")
    rest = {name: value for name, value in record.items() if name != "dead_letter"}
    if want["shape"] == "splice_or_wrapper" and not same(want["record"], rest):
        for literal in want["splice_literals"]:
            if literal.encode() not in text:
                yield Difference("", f"the text {literal}", show(text))
        yield from compare(sorted(want["splice_keys"]), sorted(rest), "/splice_keys")
        return
    yield from compare(want["record"], rest)


RULES: Final[dict[str, Callable[[Any, Result], Iterable[Difference]]]] = {
    "members": members,
    "contains": contains,
    "no_members": no_members,
    "nowhere": nowhere,
    "types": types,
    "bytes": exact_bytes,
    "matches": matches,
    "json": json_texts,
    "json_contains": json_contains,
    "document": document,
    "absent": absent,
    "decodes": decodes,
    "accepted": accepted,
    "valid": valid,
    "warned": warned,
    "warnings": warnings,
    "rejected": rejected,
    "within": within,
    "poison_record": poison_record,
    **EVENT_RULES,
    "redis_steps": redis_steps,
}
"""Name in `expect` -> rule. A case with any other name is invalid."""

"""JSON read exactly: every integer keeps its digits, no member is dropped, errors have a line.

What ordinary parsers let pass is rejected here, because a registry that reads something other
than its neighbour is worthless: duplicate members (RFC 8259, section 4), `NaN` and infinities,
numbers beyond a double, lone surrogates, a byte-order mark, nesting past `MAX_DEPTH`.

`line_index` maps every RFC 6901 pointer of a text to the line its value begins on.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from math import isfinite
from typing import Any, Final

from tallystick.core.errors import Rejected

__all__ = [
    "MAX_DEPTH",
    "escape",
    "line_index",
    "line_of",
    "parse_json",
    "place_of",
    "pointer_of",
    "same",
]

MAX_DEPTH: Final = 400
"""How deep arrays and objects may nest in a manifest, a schema or a message."""

_HINTS: Final = {
    "json.encoding": "save the file as UTF-8; is this the right file?",
    "json.bom": "save the file as UTF-8 without a BOM",
    "json.syntax": "write one JSON value, without comments and trailing commas",
    "json.duplicate": "keep one of the two: JSON readers differ in which one they take",
    "json.number": "write a number that fits a double, so that every reader gets the same value",
    "json.depth": "nest the document less deep",
    "json.surrogate": "write both escapes of the pair, or the character itself",
}
"""What to do about text that is no exact JSON, by the code of the error."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def parse_json(raw: bytes, file: str) -> Any:
    """Read one JSON text exactly, or raise `Rejected` naming the file, the line and the place."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _reject(f"{file}:{line}: not UTF-8", "json.encoding", offset=error.start) from error
    if text.startswith("\ufeff"):
        raise _reject(f"{file}:1: begins with a byte-order mark", "json.bom", offset=0)
    _bound_depth(text, file)
    try:
        value = json.loads(
            text, object_pairs_hook=_members, parse_float=_float, parse_constant=_constant
        )
    except json.JSONDecodeError as error:
        raise _reject(
            f"{file}:{error.lineno}: {error.msg[0].lower()}{error.msg[1:]}",
            "json.syntax",
            offset=len(text[: error.pos].encode()),
        ) from error
    except _UnexactError as error:
        line = _line_of_fault(text, error)
        raise _reject(f"{file}:{line}: {error}", error.code) from error
    except ValueError as error:  # an integer beyond the interpreter's digit limit
        raise _reject(f"{file}: a number has too many digits", "json.number") from error
    if "\\u" in text:
        _refuse_surrogates(value, file, text)
    return value


def _reject(
    message: str, code: str, *, offset: int | None = None, pointer: str | None = None
) -> Rejected:
    return Rejected(message, code=code, offset=offset, pointer=pointer, hint=_HINTS[code])


class _UnexactError(Exception):
    """What the parser may not let pass; `fragment` is searched to name the line."""

    def __init__(self, message: str, *, code: str, fragment: str) -> None:
        super().__init__(message)
        self.code = code
        self.fragment = fragment


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        name = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _UnexactError(
            f"the member {json.dumps(name, ensure_ascii=False)} appears twice in one object",
            code="json.duplicate",
            fragment=name,
        )
    return value


def _float(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise _UnexactError(
            f"{digits} is too large for a double", code="json.number", fragment=digits
        )
    return value


def _constant(name: str) -> Any:
    raise _UnexactError(f"{name} is not a JSON value", code="json.number", fragment=name)


def _line_of_fault(text: str, fault: _UnexactError) -> int:
    """Name the line: of the second equal member in one object, else of the fragment."""
    stack: list[set[str]] = []
    tokens = list(_TOKEN.finditer(text))
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        word = token.group()
        if word in ("{", "["):
            stack.append(set())
        elif word in ("}", "]"):
            stack.pop()
        elif fault.code != "json.duplicate":
            if word == fault.fragment:
                return text.count("\n", 0, token.start()) + 1
        elif word[0] == '"' and following is not None and following.group() == ":":
            name = json.loads(word)
            if name == fault.fragment and name in stack[-1]:
                return text.count("\n", 0, token.start()) + 1
            stack[-1].add(name)
    return 1


def _bound_depth(text: str, file: str) -> None:
    if text.count("[") + text.count("{") <= MAX_DEPTH:
        return
    depth = 0
    for token in _TOKEN.finditer(text):
        word = token.group()
        if word in ("{", "["):
            depth += 1
            if depth > MAX_DEPTH:
                line = text.count("\n", 0, token.start()) + 1
                raise _reject(f"{file}:{line}: nested deeper than {MAX_DEPTH} levels", "json.depth")
        elif word in ("}", "]"):
            depth -= 1


def _refuse_surrogates(value: Any, file: str, text: str) -> None:
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        pointer, node = stack.pop()
        if isinstance(node, str):
            if _SURROGATE.search(node):
                line = line_of(text, pointer)
                raise _reject(
                    f"{file}:{line}: a lone surrogate is not a character",
                    "json.surrogate",
                    pointer=pointer,
                )
        elif isinstance(node, list):
            stack.extend((f"{pointer}/{at}", item) for at, item in enumerate(node))
        elif isinstance(node, dict):
            for key, item in node.items():
                stack.append((pointer, key))
                stack.append((f"{pointer}/{escape(key)}", item))


def escape(token: str) -> str:
    """Write one reference token of a JSON pointer (RFC 6901, section 3)."""
    return token.replace("~", "~0").replace("/", "~1")


def pointer_of(path: list[str | int]) -> str:
    """Write a path as a JSON pointer."""
    return "".join(f"/{escape(str(token))}" for token in path)


def line_index(text: str) -> dict[str, int]:
    """Map every pointer of a well-formed JSON text to the line its value begins on."""
    return {pointer: line for pointer, (line, _) in place_index(text).items()}


def place_index(text: str) -> dict[str, tuple[int, int]]:
    """Map every pointer of a well-formed JSON text to the line and column its value begins at."""
    places: dict[str, tuple[int, int]] = {}
    stack: list[list[Any]] = []  # [pointer, next index or None for an object, pending key]
    line, begin, seen = 1, 0, 0
    for token in _TOKEN.finditer(text):
        word, start = token.group(), token.start()
        if breaks := text.count("\n", seen, start):
            line, begin = line + breaks, text.rindex("\n", seen, start) + 1
        seen = start
        if word in "}]":
            stack.pop()
        elif word == ",":
            if stack[-1][1] is None:
                stack[-1][2] = None
            else:
                stack[-1][1] += 1
        elif word == ":":
            continue
        elif stack and stack[-1][1] is None and stack[-1][2] is None:
            stack[-1][2] = json.loads(word)
        else:
            pointer = _here(stack)
            places[pointer] = (line, start - begin + 1)
            if word in "{[":
                stack.append([pointer, None if word == "{" else 0, None])
    return places


def _here(stack: list[list[Any]]) -> str:
    if not stack:
        return ""
    parent, index, key = stack[-1]
    return f"{parent}/{escape(key) if index is None else index}"


def line_of(text: str, pointer: str) -> int:
    """Give the line of a pointer, or of its nearest ancestor that stands in the text."""
    return place_of(text, pointer)[0]


def place_of(text: str, pointer: str) -> tuple[int, int]:
    """Give line and column of a pointer, or of its nearest ancestor that stands in the text."""
    places = _places(text)
    while pointer not in places and pointer:
        pointer = pointer.rpartition("/")[0]
    return places.get(pointer, (1, 1))


_places = lru_cache(maxsize=4)(place_index)


def same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal as JSON Schema says: 1 is 1.0, 1 is not true."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return bool(left == right)

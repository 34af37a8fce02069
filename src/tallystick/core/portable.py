"""Find the parts of a message that a common JSON library changes when it reads and writes it.

Each `Library` is a row of small functions: how it writes a number, a string, an object. A row
stands for the library's generic value (map, object, JsonNode, array, Dictionary) with its default
settings. Go, JavaScript and Java were measured; PHP and .NET follow their documentation.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import copysign, isfinite
from typing import Final

from tallystick.core.canonical import number_text, pointer_to, string_text
from tallystick.core.scan import Place, scan, string_value, walk

__all__ = ["LIBRARIES", "Alteration", "Library", "find_alterations"]

_INT64: Final = 2**63
_SAFE: Final = 2**53
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,9}")
_MAX_INDEX: Final = 2**32 - 2


@dataclass(frozen=True, slots=True)
class Alteration:
    """One member that a library would change: its pointer, old and new text, and the reason."""

    pointer: str
    offset: int
    language: str
    library: str
    found: str
    becomes: str
    why: str


@dataclass(frozen=True, slots=True)
class Library:
    """How one library writes a value that it has read."""

    language: str
    name: str
    integer: Callable[[int], str]
    number: Callable[[float], str]
    escapes: Callable[[str], str]
    order: Callable[[tuple[str, ...]], tuple[str, ...]]
    depth: int
    overflow: str = "an error"
    negative_zero: str = "0"
    empty_object: str = "{}"


def find_alterations(body: bytes) -> Iterator[Alteration]:
    """List every alteration in a body, in document order per library; raise `Rejected` if broken.

    White space between tokens is not listed: every writer drops it.
    """
    scan(body, finite=False)
    for place in walk(body):
        for library in LIBRARIES:
            for found, becomes, why in _differences(place, library):
                yield Alteration(
                    pointer_to(place.trail),
                    place.offset,
                    library.language,
                    library.name,
                    found,
                    becomes,
                    why,
                )


def _differences(place: Place, library: Library) -> Iterator[tuple[str, str, str]]:
    found = place.text.decode()
    if place.kind == "number":
        becomes = _number(found, library)
        if becomes != found:
            yield found, becomes, _why_number(found, becomes)
    elif place.kind == "string":
        value = string_value(place.text, 0, ())
        becomes = library.escapes(string_text(value))
        if becomes != found:
            yield found, becomes, "it escapes different characters"
    elif place.kind == "object":
        yield from _object_differences(place, library)
    if place.kind in ("object", "array") and len(place.trail) == library.depth:
        yield place.kind, "an error", f"it reads at most {library.depth} levels of nesting"


def _object_differences(place: Place, library: Library) -> Iterator[tuple[str, str, str]]:
    last_wins = tuple(dict.fromkeys(place.names))
    if len(last_wins) < len(place.names):
        twice = sorted(name for name, times in Counter(place.names).items() if times > 1)
        yield ", ".join(twice), "the last one", "it keeps one of two members with the same name"
    written = library.order(last_wins)
    if written != last_wins:
        yield ", ".join(last_wins), ", ".join(written), "it writes the members in another order"
    if not place.names and place.trail and library.empty_object != "{}":
        yield "{}", library.empty_object, "it reads an empty object as an empty array"


def _number(literal: str, library: Library) -> str:
    if literal.lstrip("-").isdigit():
        if library.integer is not str and not isfinite(float(literal)):
            return library.overflow
        if literal == "-0":
            return library.negative_zero
        return library.integer(int(literal)) if len(literal) < 4000 else library.overflow
    value = float(literal)
    return library.number(value) if isfinite(value) else library.overflow


def _why_number(found: str, becomes: str) -> str:
    if becomes in ("an error", "null"):
        return "the number does not fit its type"
    if found.lstrip("-").isdigit() and float(found) != int(found):
        return "the integer does not fit a double"
    if found.lstrip("-").isdigit() and abs(int(found)) >= _SAFE:
        return "it reads the integer as a double"
    return "it writes the same number in another form"


def _double_of(integer: int, write: Callable[[float], str]) -> str:
    return write(float(integer))


def _go(value: float) -> str:
    return "-0" if value == 0 and copysign(1, value) < 0 else number_text(value)


def _digits(value: float) -> tuple[str, str, int]:
    """Give sign, shortest digits and the decimal exponent of the first digit."""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = len(whole) - 1 + int(exponent or 0)
    if whole == "0":
        power = -1 - (len(fraction) - len(fraction.lstrip("0"))) + int(exponent or 0)
    return ("-" if copysign(1, value) < 0 else ""), digits.rstrip("0") or "0", power


def _plain(sign: str, digits: str, power: int) -> str:
    if power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    whole = digits[: power + 1].ljust(power + 1, "0")
    fraction = digits[power + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def _java(value: float) -> str:
    if value == 0:
        return "-0.0" if copysign(1, value) < 0 else "0.0"
    sign, digits, power = _digits(value)
    if -3 <= power < 7:
        text = _plain(sign, digits, power)
        return text if "." in text else text + ".0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def _php(value: float) -> str:
    if value == 0:
        return "-0.0" if copysign(1, value) < 0 else "0.0"
    sign, digits, power = _digits(value)
    if -4 <= power <= 16:
        text = _plain(sign, digits, power)
        return text if "." in text else text + ".0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}e{power:+d}"


def _php_without_zero_fraction(value: float) -> str:
    return _php(value).removesuffix(".0")


def _dotnet(value: float) -> str:
    if value == 0:
        return "-0" if copysign(1, value) < 0 else "0"
    sign, digits, power = _digits(value)
    if -5 <= power < 15:
        return _plain(sign, digits, power)
    head = digits if len(digits) == 1 else f"{digits[0]}.{digits[1:]}"
    return f"{sign}{head}E{'-' if power < 0 else '+'}{abs(power):02d}"


def _escape_go(text: str) -> str:
    return re.sub("[<>&\u2028\u2029]", lambda m: f"\\u{ord(m[0]):04x}", text)


def _utf16_escapes(char: str, style: str) -> str:
    units = char.encode("utf-16-be")
    return "".join(
        "\\u" + format(int.from_bytes(units[i : i + 2]), style) for i in range(0, len(units), 2)
    )


def _escape_php(text: str) -> str:
    text = text.replace("/", "\\/")
    return re.sub(r"[^\x00-\x7f]", lambda m: _utf16_escapes(m[0], "04x"), text)


def _escape_dotnet(text: str) -> str:
    inner = text[1:-1].replace('\\"', "\\u0022")
    inner = re.sub(r"[^\x00-\x7e]|[<>&'+`\x7f]", lambda m: _utf16_escapes(m[0], "04X"), inner)
    return f'"{inner}"'


def _as_they_come(text: str) -> str:
    return text


def _keep_order(names: tuple[str, ...]) -> tuple[str, ...]:
    return names


def _integers_first(names: tuple[str, ...]) -> tuple[str, ...]:
    indexes = {n for n in names if _INDEX.fullmatch(n) and int(n) <= _MAX_INDEX}
    return (*sorted(indexes, key=int), *(n for n in names if n not in indexes))


LIBRARIES: Final = (
    Library(
        "go", "encoding/json",
        integer=lambda n: _double_of(n, _go),
        number=_go,
        escapes=_escape_go,
        order=lambda names: tuple(sorted(names, key=str.encode)),
        depth=10_000,
        negative_zero="-0",
    ),
    Library(
        "javascript", "JSON",
        integer=lambda n: _double_of(n, number_text),
        number=number_text,
        escapes=_as_they_come,
        order=_integers_first,
        depth=1_000_000,
        overflow="null",
    ),
    Library(
        "java", "jackson-databind",
        integer=str,
        number=_java,
        escapes=_as_they_come,
        order=_keep_order,
        depth=1_000,
    ),
    Library(
        "php", "ext-json",
        integer=lambda n: str(n) if -_INT64 <= n < _INT64 else _double_of(n, _php),
        number=_php_without_zero_fraction,
        escapes=_escape_php,
        order=_keep_order,
        depth=512,
        empty_object="[]",
    ),
    Library(
        "dotnet", "System.Text.Json",
        integer=lambda n: str(n) if -_INT64 <= n < _INT64 else _double_of(n, _dotnet),
        number=_dotnet,
        escapes=_escape_dotnet,
        order=_keep_order,
        depth=64,
    ),
)  # fmt: skip
"""The table: one row for each library."""

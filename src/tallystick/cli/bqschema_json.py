"""Read and write JSON like the reference tool, with the same error texts.

Reading: the first error has the text of Go's decoder; of two equal members the last counts; bytes
that are not UTF-8 become U+FFFD. Unlike Go, integers keep every digit, and nesting is limited to
`MAX_DEPTH`. Writing: two spaces, members sorted by their bytes, `<`, `>` and `&` escaped. `quote`
and `show` are the verbs `%q` and `%v`.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from decimal import Decimal
from math import isfinite
from typing import Any, Final

from tallystick.schemas.values import MAX_DEPTH

__all__ = ["DecodeError", "decode", "decode_object", "encode", "kind_of", "quote", "show"]

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_ESCAPES: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r",
                   "t": "\t"}  # fmt: skip
_WORDS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]+')
_STRAY: Final = re.compile(r"[\udc80-\udcff]")
_END: Final = "unexpected end of JSON input"
_EXACT: Final = 2**53


class DecodeError(Exception):
    """A text that is not JSON, or not the expected JSON; the message is Go's."""


def decode(raw: bytes) -> Any:
    """Read one JSON text or raise `DecodeError`; plain texts are read by the C parser."""
    if b"\\u" not in raw and raw.count(b"{") + raw.count(b"[") <= MAX_DEPTH:
        with suppress(ValueError):
            return json.loads(raw.decode(), parse_constant=_refuse, parse_float=_finite)
    return _Reader(raw.decode("latin-1")).document()


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _finite(digits: str) -> float:
    value = float(digits)
    return value if isfinite(value) else _refuse(digits)


def decode_object(raw: bytes) -> dict[str, Any] | None:
    """Read one object, or null."""
    value = decode(raw)
    if value is None or isinstance(value, dict):
        return value
    kind = "value of type map[string]interface {}"
    raise DecodeError(f"json: cannot unmarshal {kind_of(value)} into Go {kind}")


class _Reader:
    """One pass over a text, byte by byte; a stack of containers allows any depth."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.too_large = ""

    def fail(self, context: str, *, inside: bool = False) -> DecodeError:
        """Name the next character; at the end of the input, inside a token Go sees a space."""
        if self.at >= len(self.text) and not inside:
            return DecodeError(_END)
        byte = ord(self.text[self.at]) if self.at < len(self.text) else ord(" ")
        return DecodeError(f"invalid character {_character(byte)} {context}")

    def skip(self) -> str:
        found = _SPACE.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.text[self.at : self.at + 1]

    def document(self) -> Any:
        value = self.value()
        if self.skip():
            raise self.fail("after top-level value")
        if self.too_large:
            raise DecodeError(
                f"json: cannot unmarshal number {self.too_large} into Go value of type float64"
            )
        return value

    def value(self) -> Any:
        stack: list[tuple[Any, str]] = []  # open containers, and the name of the waiting member
        while True:
            value: Any = self.start()
            if isinstance(value, dict | list):
                if len(stack) >= MAX_DEPTH:
                    raise DecodeError("exceeded max depth")
                if self.skip() != ("}" if isinstance(value, dict) else "]"):
                    stack.append((value, self.name() if isinstance(value, dict) else ""))
                    continue
                self.at += 1
            while stack:  # put the finished value where it belongs, and see what follows
                holder, name = stack.pop()
                if isinstance(holder, dict):
                    holder[name] = value
                else:
                    holder.append(value)
                follows = self.skip()
                if follows == ",":
                    self.at += 1
                    stack.append((holder, self.name() if isinstance(holder, dict) else ""))
                    break
                if follows != ("}" if isinstance(holder, dict) else "]"):
                    kind = "object key:value pair" if isinstance(holder, dict) else "array element"
                    raise self.fail(f"after {kind}")
                self.at += 1
                value = holder
            else:
                return value

    def start(self) -> Any:
        """Read a scalar whole, or the bracket that opens a container."""
        first = self.skip()
        if first in ("{", "["):
            self.at += 1
            return {} if first == "{" else []
        if first == '"':
            return self.string()
        if first and first in "-0123456789":
            return self.number()
        if first and first in "tfn":
            return self.word({"t": "true", "f": "false", "n": "null"}[first])
        raise self.fail("looking for beginning of value")

    def name(self) -> str:
        if self.skip() != '"':
            raise self.fail("looking for beginning of object key string")
        name = self.string()
        if self.skip() != ":":
            raise self.fail("after object key")
        self.at += 1
        return name

    def word(self, word: str) -> Any:
        for letter in word:
            if self.text[self.at : self.at + 1] != letter:
                raise self.fail(
                    f"in literal {word} (expecting {_character(ord(letter))})", inside=True
                )
            self.at += 1
        return _WORDS[word]

    def number(self) -> Any:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            self.at += 1  # a lone minus
            raise self.fail("in numeric literal", inside=True)
        self.at = found.end()
        follows = self.text[self.at : self.at + 1]
        literal = found[0]
        if follows == "." and not set(literal) & set(".eE"):
            self.at += 1
            raise self.fail("after decimal point in numeric literal", inside=True)
        if follows in ("e", "E") and not set(literal) & set("eE"):
            self.at += 1
            self.at += self.text[self.at : self.at + 1] in ("+", "-")
            raise self.fail("in exponent of numeric literal", inside=True)
        if not isfinite(float(literal)):
            self.too_large = self.too_large or literal
            return 0
        whole = not set(literal) & set(".eE") and len(literal) < 4000
        return int(literal) if whole else float(literal)

    def string(self) -> str:
        self.at += 1
        units = bytearray()  # UTF-16, so that the halves of a pair may come as two escapes
        while True:
            run = _PLAIN.match(self.text, self.at)
            if run is not None:
                self.at = run.end()
                units += _clean(run[0]).encode("utf-16-le")
            letter = self.text[self.at : self.at + 1]
            if letter == '"':
                self.at += 1
                return units.decode("utf-16-le", "replace")
            if letter != "\\":
                raise self.fail("in string literal")
            self.at += 1
            units += self.escape().encode("utf-16-le", "surrogatepass")

    def escape(self) -> str:
        letter = self.text[self.at : self.at + 1]
        if letter in _ESCAPES:
            self.at += 1
            return _ESCAPES[letter]
        if letter != "u":
            raise self.fail("in string escape code", inside=True)
        self.at += 1
        start = self.at
        for _ in range(4):
            if self.text[self.at : self.at + 1] not in set("0123456789abcdefABCDEF"):
                raise self.fail("in \\u hexadecimal character escape", inside=True)
            self.at += 1
        return chr(int(self.text[start : self.at], 16))


def _clean(run: str) -> str:
    """Read bytes as UTF-8; each byte that is not becomes U+FFFD."""
    text = run.encode("latin-1").decode("utf-8", "surrogateescape")
    return text if text.isascii() else _STRAY.sub("\ufffd", text)


def _character(byte: int) -> str:
    letter = chr(byte)
    if letter == "'":
        return r"'\''"
    return "'\"'" if letter == '"' else f"'{quote(letter)[1:-1]}'"


def kind_of(value: Any) -> str:
    """Name the kind of a value as Go's decoder does."""
    if isinstance(value, bool):
        return "bool"
    names = {int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


_QUOTED: Final = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t",
                  "\v": r"\v", '"': r"\"", "\\": r"\\"}  # fmt: skip


def quote(text: str) -> str:
    """Write a text as `%q` does."""
    return f'"{"".join(map(_quoted, text))}"'


def _quoted(letter: str) -> str:
    if letter in _QUOTED:
        return _QUOTED[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def show(value: Any) -> str:
    """Write a value as `%v` does; an integer that a double would alter keeps its digits."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        if isinstance(value, int) and (abs(value) >= _EXACT and int(float(value)) != value):
            return str(value)
        return _short_float(float(value))
    if isinstance(value, list):
        return f"[{' '.join(map(show, value))}]"
    if isinstance(value, dict):
        rows = sorted(value.items(), key=lambda item: item[0].encode("utf-8", "surrogatepass"))
        return f"map[{' '.join(f'{key}:{show(item)}' for key, item in rows)}]"
    return str(value)


def _short_float(value: float) -> str:
    """Write the shortest digits as `%v` does: an exponent below -4 and from 6 on."""
    sign, digits, exponent = _digits(value)
    if -4 <= exponent < 6:
        return sign + _plain(digits, exponent)
    return sign + _scientific(digits, exponent, width=2)


def _digits(value: float) -> tuple[str, str, int]:
    """Give the sign, the shortest digits and the exponent of the first one."""
    sign, number, exponent = Decimal(repr(value)).as_tuple()
    if not value:
        return "-" * sign, "0", 0
    digits = "".join(map(str, number))
    return "-" * sign, digits.rstrip("0") or "0", len(digits) - 1 + int(exponent)


def _plain(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    return f"{whole}.{digits[exponent + 1 :]}" if len(digits) > exponent + 1 else whole


def _scientific(digits: str, exponent: int, width: int) -> str:
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{rest}e{'-' if exponent < 0 else '+'}{abs(exponent):0{width}d}"


_WRITTEN: Final = {'"': r"\"", "\\": r"\\", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r",
                   "\t": r"\t"}  # fmt: skip
_UNSAFE: Final = re.compile('["\\\\\x00-\x1f<>&\u2028\u2029]')


def encode(value: Any, indent: str = "") -> str:
    """Write a value as an indented document, without the line end behind it."""
    inner = f"{indent}  "
    if isinstance(value, dict) and value:
        rows = sorted(value.items(), key=lambda item: item[0].encode())
        body = ",\n".join(f"{inner}{_text(key)}: {encode(item, inner)}" for key, item in rows)
        return f"{{\n{body}\n{indent}}}"
    if isinstance(value, list) and value:
        body = ",\n".join(f"{inner}{encode(item, inner)}" for item in value)
        return f"[\n{body}\n{indent}]"
    if isinstance(value, str):
        return _text(value)
    return _number(value) if isinstance(value, float) else json.dumps(value)


def _number(value: float) -> str:
    sign, digits, exponent = _digits(value)
    if -7 < exponent < 21:
        return sign + _plain(digits, exponent)
    return sign + _scientific(digits, exponent, width=1)


def _text(value: str) -> str:
    return f'"{_UNSAFE.sub(_escaped, value)}"'


def _escaped(found: re.Match[str]) -> str:
    return _WRITTEN.get(found[0]) or f"\\u{ord(found[0]):04x}"

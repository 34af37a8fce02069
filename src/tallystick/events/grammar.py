"""The grammars that attribute values follow: RFC 3986 references and RFC 2046 media types.

All expressions are possessive, so that no input makes them step back. A URI here is an
`absolute-URI` (RFC 3986, 4.3: a scheme and no fragment), as the CloudEvents type system says; a
URI-reference is RFC 3986, 4.1. Both are ASCII: other characters come percent-encoded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import AddressValueError, IPv6Address
from typing import Final

__all__ = [
    "MediaType",
    "is_media_type",
    "is_name",
    "is_uri",
    "is_uri_reference",
    "parse_media_type",
]

_SAFE: Final = r"A-Za-z0-9\-._~!$&'()*+,;="
_PCT: Final = r"%[0-9A-Fa-f]{2}"
_PCHAR: Final = rf"(?:[{_SAFE}:@]|{_PCT})"
_HOST: Final = (
    rf"(?:\[(?:(?P<v6>[0-9A-Fa-f:.]++)|[vV][0-9A-Fa-f]++\.[{_SAFE}:]++)\]|(?:[{_SAFE}]|{_PCT})*+)"
)
_AUTHORITY: Final = rf"(?:(?:[{_SAFE}:]|{_PCT})*@)?{_HOST}(?::[0-9]*+)?"
_ROOTED: Final = rf"//{_AUTHORITY}(?:/{_PCHAR}*+)*+|/(?:{_PCHAR}++(?:/{_PCHAR}*+)*+)?+"
_ROOTLESS: Final = rf"{_PCHAR}++(?:/{_PCHAR}*+)*+"
_NOSCHEME: Final = rf"(?:[{_SAFE}@]|{_PCT})++(?:/{_PCHAR}*+)*+"
_TAIL: Final = rf"(?:{_PCHAR}|[/?])*+"
_QUERY: Final = rf"(?:\?{_TAIL})?+"
_FRAGMENT: Final = rf"(?:\#{_TAIL})?+"
_URI: Final = re.compile(rf"[A-Za-z][A-Za-z0-9+.\-]*+:(?:{_ROOTED}|{_ROOTLESS}|){_QUERY}").fullmatch
_FULL_URI: Final = re.compile(
    rf"[A-Za-z][A-Za-z0-9+.\-]*+:(?:{_ROOTED}|{_ROOTLESS}|){_QUERY}{_FRAGMENT}"
).fullmatch
_RELATIVE: Final = re.compile(rf"(?:{_ROOTED}|{_NOSCHEME}|){_QUERY}{_FRAGMENT}").fullmatch

_WORD: Final = r"[!#$%&'*+\-.0-9A-Z^_`a-z{|}~]++"
_PARAMETER: Final = re.compile(
    rf'[ \t]*+;[ \t]*+({_WORD})=(?:({_WORD})|"((?:[ !#-\[\]-~\t]|\\[ -~\t])*+)")'
)
_MEDIA: Final = re.compile(rf"({_WORD})/({_WORD})").match
_NAME: Final = re.compile(r"[a-z0-9]++").fullmatch
_UNQUOTE: Final = re.compile(r"\\(.)")
_CACHED_LENGTH: Final = 256


@dataclass(frozen=True, slots=True)
class MediaType:
    """A media type in lower case, with its parameters; parameter names are in lower case too."""

    type: str
    subtype: str
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def is_json(self) -> bool:
        """Tell whether the content is JSON: `*/json` or `*/*+json` (JSON format, 3.1.1)."""
        return self.subtype == "json" or self.subtype.endswith("+json")

    @property
    def is_xml(self) -> bool:
        """Tell whether the content is XML: `*/xml` or `*/*+xml` (RFC 7303)."""
        return self.subtype == "xml" or self.subtype.endswith("+xml")

    @property
    def is_text(self) -> bool:
        """Tell whether the content is text that a person reads: `text/*` or XML."""
        return self.type == "text" or self.is_xml

    @property
    def charset(self) -> str:
        """Give the declared character set in lower case; UTF-8 when none is declared."""
        return dict(self.parameters).get("charset", "utf-8").lower()


def is_name(text: str) -> bool:
    """Tell whether the text names an attribute: a to z and 0 to 9, and not `data`."""
    return _NAME(text) is not None and text != "data"


def is_uri(text: str) -> bool:
    """Tell whether the text is an absolute URI without a fragment (RFC 3986, 4.3)."""
    return _cached_uri(text) if len(text) <= _CACHED_LENGTH else _is_uri(text)


def is_uri_reference(text: str) -> bool:
    """Tell whether the text is a URI-reference (RFC 3986, 4.1); the empty one counts."""
    return _cached_reference(text) if len(text) <= _CACHED_LENGTH else _is_reference(text)


def parse_media_type(text: str) -> MediaType | None:
    """Read a media type (RFC 2046 with the RFC 2045 grammar); None when it is not one."""
    return _cached_media(text) if len(text) <= _CACHED_LENGTH else _parse_media(text)


def is_media_type(text: str) -> bool:
    """Tell whether the text is a media type."""
    return parse_media_type(text) is not None


def _address_holds(match: re.Match[str] | None) -> bool:
    if match is None:
        return False
    if match["v6"] is not None:
        try:
            IPv6Address(match["v6"])
        except AddressValueError:
            return False
    return True


def _is_uri(text: str) -> bool:
    return _address_holds(_URI(text))


def _is_reference(text: str) -> bool:
    return _address_holds(_FULL_URI(text) or _RELATIVE(text))


def _parse_media(text: str) -> MediaType | None:
    match = _MEDIA(text)
    if match is None:
        return None
    parameters: list[tuple[str, str]] = []
    position = match.end()
    while position < len(text):
        parameter = _PARAMETER.match(text, position)
        if parameter is None:
            return None
        name, token, quoted = parameter.groups()
        value = token if quoted is None else _UNQUOTE.sub(r"\1", quoted)
        parameters.append((name.lower(), value))
        position = parameter.end()
    return MediaType(match[1].lower(), match[2].lower(), tuple(parameters))


_cached_uri: Final = lru_cache(maxsize=1024)(_is_uri)
_cached_reference: Final = lru_cache(maxsize=4096)(_is_reference)
_cached_media: Final = lru_cache(maxsize=1024)(_parse_media)

"""Recognize personal data by its value, by a checksum or a strict form.

IBAN (ISO 13616, mod 97), payment cards (ISO/IEC 7812: a known issuer and the Luhn digit), TCKN (two
check digits), e-mail addresses and E.164 telephone numbers. One random number in a hundred passes
as a TCKN, so a path is judged by the share of its values that pass, never by one among many.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["contains_personal", "is_card", "is_iban", "is_tckn", "share_kind", "value_kind"]

_IBAN: Final = re.compile(r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}")
_ISSUER: Final = re.compile(r"4|5[1-5]|2[2-7]|3[04-8]|6(?:011|4|5)|9792")
_EMAIL: Final = re.compile(r"[^@\s<>\"'(),:;]{1,64}@[^@\s<>\"'(),:;.]+(?:\.[^@\s<>\"'(),:;.]+)+")
_PHONE: Final = re.compile(r"\+[1-9][0-9](?:[ ().-]{0,2}[0-9]){6,13}")
_BLOCKS: Final = re.compile(
    r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])"
    r"|(?<![A-Za-z0-9-])[0-9](?:[ -]?[0-9]){10,18}(?![A-Za-z0-9-])"
)
_SHARE: Final = 0.8


def is_iban(text: str) -> bool:
    """Check an IBAN: country, check digits, at most 34 characters, remainder 1."""
    plain = text.replace(" ", "").upper()
    if not plain.isascii() or not _IBAN.fullmatch(plain):
        return False
    return int("".join(str(int(one, 36)) for one in plain[4:] + plain[:4])) % 97 == 1


def is_card(text: str) -> bool:
    """Check a card number: 13 to 19 digits of a known issuer, and the Luhn digit."""
    plain = re.sub("[ -]", "", text)
    if not (13 <= len(plain) <= 19 and plain.isascii() and plain.isdecimal()):
        return False
    if not _ISSUER.match(plain):
        return False
    total = 0
    for place, digit in enumerate(map(int, reversed(plain))):
        doubled = digit * 2 if place % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0


def is_tckn(text: str) -> bool:
    """Check a Turkish identity number: eleven digits, the last two of them check digits."""
    if len(text) != 11 or not (text.isascii() and text.isdecimal()) or text[0] == "0":
        return False
    digits = [int(digit) for digit in text]
    tenth = (sum(digits[0:9:2]) * 7 - sum(digits[1:8:2])) % 10
    return digits[9] == tenth and digits[10] == sum(digits[:10]) % 10


_KINDS: Final[tuple[tuple[str, Callable[[str], object]], ...]] = (
    ("email", _EMAIL.fullmatch),
    ("bank_account", is_iban),
    ("card", is_card),
    ("national_id", is_tckn),
    ("phone", _PHONE.fullmatch),
)


def value_kind(value: Any) -> str:
    """Name the kind of personal data that one value is, or give an empty text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return ""
    text = str(value).strip() if isinstance(value, str) or abs(value) < 10**20 else ""
    return next((kind for kind, test in _KINDS if text and test(text)), "")


def share_kind(values: Sequence[Any]) -> tuple[str, int]:
    """Give the kind of most values of one path, and their number."""
    kinds = [value_kind(value) for value in values]
    for kind, _ in _KINDS:
        hits = kinds.count(kind)
        if hits and hits >= _SHARE * len(values):
            return kind, hits
    return "", 0


def contains_personal(text: str) -> bool:
    """Tell whether a text contains personal data."""
    if _EMAIL.search(text) or _PHONE.search(text):
        return True
    return any(
        is_iban(found[0]) or is_card(found[0]) or is_tckn(found[0])
        for found in _BLOCKS.finditer(text)
    )

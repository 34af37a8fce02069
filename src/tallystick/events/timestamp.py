"""A `Timestamp` is the text of an RFC 3339 date-time; it is compared by its instant.

The text is kept unchanged, with its offset and nanoseconds. Two are equal if they mean the
same millisecond: the conformance document ignores the offset and finer precision. A leap
second is allowed at 23:59:60 UTC and means the second after it. Lower-case `t` and `z` are
RFC 3339; a space, a comma, a missing colon or missing seconds are not.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Final, Self

from tallystick.core.errors import Refused

__all__ = ["Timestamp", "is_timestamp"]

_SHAPE: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]++))?+"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
).fullmatch
_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAYS_IN_400_YEARS: Final = 146_097
_BILLION: Final = 1_000_000_000
_FIRST_SECOND: Final = -62_167_219_200  # 0000-01-01T00:00:00Z
_LAST_SECOND: Final = 253_402_300_799  # 9999-12-31T23:59:59Z
_COMMON: Final = ("-T::.", "-T::Z")
_from_iso: Final = datetime.fromisoformat


def is_timestamp(text: str) -> bool:
    """Tell whether the text is an RFC 3339 date-time.

    The quick way is for UTC in the common spelling, to microseconds: there the separators and the
    fraction are looked at here, and the standard library checks the numbers between them.
    """
    if text[7:20:3] in _COMMON and text[-1] == "Z" and text.isascii():
        fraction = text[20:-1]
        if len(fraction) <= 6 and (fraction.isdigit() or len(text) == 20) and text[11:13] != "24":
            try:
                _from_iso(text)
            except ValueError:
                return _nanoseconds(text) is not None
            return True
    return _nanoseconds(text) is not None


def _nanoseconds(text: str) -> int | None:
    """Give the instant in nanoseconds since 1970, or None when the text is no date-time."""
    match = _SHAPE(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, offset_hour, offset_minute = match.groups()[6:]
    offset = 0
    if sign is not None:
        if int(offset_hour) > 23 or int(offset_minute) > 59:
            return None
        offset = int(offset_hour) * 60 + int(offset_minute)
        offset = -offset if sign == "-" else offset
    if hour > 23 or minute > 59 or second > 60:
        return None
    if second == 60 and (hour * 60 + minute - offset) % 1440 != 1439:
        return None
    try:
        ordinal = date(year or 400, month, day).toordinal()
    except ValueError:
        return None
    days = ordinal - _EPOCH - (0 if year else _DAYS_IN_400_YEARS)
    seconds = ((days * 24 + hour) * 60 + minute - offset) * 60 + second
    return seconds * _BILLION + int((fraction or "0")[:9].ljust(9, "0"))


class Timestamp(str):
    """An RFC 3339 date-time: a text that compares by the millisecond it means.

    Beside a plain text it compares as a text.
    """

    __slots__ = ()

    def __new__(cls, text: str) -> Self:
        """Judge the text; what is no RFC 3339 date-time is refused."""
        if not is_timestamp(text):
            raise Refused(f"{text!r:.60} is not an RFC 3339 timestamp", code="bad_timestamp")
        return str.__new__(cls, text)

    @classmethod
    def of_nanoseconds(cls, nanoseconds: int) -> Self:
        """Write an instant in UTC, with as few of 0, 3, 6 or 9 fraction digits as it needs."""
        seconds, rest = divmod(nanoseconds, _BILLION)
        if not _FIRST_SECOND <= seconds <= _LAST_SECOND:
            raise Refused(
                f"{seconds} seconds after 1970 is outside the years 0000 to 9999",
                code="bad_timestamp",
            )
        days, clock = divmod(seconds, 86_400)
        ordinal = days + _EPOCH
        day = date.fromordinal(ordinal if ordinal > 0 else ordinal + _DAYS_IN_400_YEARS)
        year = day.year if ordinal > 0 else day.year - 400
        digits = f"{rest:09d}"
        while digits.endswith("000"):
            digits = digits[:-3]
        text = (
            f"{year:04d}-{day.month:02d}-{day.day:02d}"
            f"T{clock // 3600:02d}:{clock // 60 % 60:02d}:{clock % 60:02d}"
        )
        return str.__new__(cls, f"{text}.{digits}Z" if digits else f"{text}Z")

    @classmethod
    def of_datetime(cls, moment: datetime) -> Self:
        """Convert a `datetime`; it must have an offset from UTC."""
        if moment.utcoffset() is None:
            raise Refused("the datetime needs an offset from UTC", code="bad_timestamp")
        text = moment.isoformat()
        return cls(f"{text[:-6]}Z" if text.endswith("+00:00") else text)

    @property
    def nanoseconds(self) -> int:
        """Give the instant in nanoseconds since 1970."""
        instant = _nanoseconds(str(self))
        if instant is None:
            raise Refused(f"{str(self)!r:.60} is not an RFC 3339 timestamp", code="bad_timestamp")
        return instant

    @property
    def milliseconds(self) -> int:
        """Give the instant in whole milliseconds since 1970; equality compares this."""
        return self.nanoseconds // 1_000_000

    def datetime(self) -> datetime:
        """Give the instant as a UTC `datetime`, cut to microseconds."""
        seconds, rest = divmod(self.nanoseconds, _BILLION)
        ordinal, clock = divmod(seconds, 86_400)
        if ordinal + _EPOCH < 1 or seconds > _LAST_SECOND:
            raise Refused(f"{self} is outside the range of a Python datetime", code="bad_timestamp")
        day = date.fromordinal(ordinal + _EPOCH)
        return datetime(
            day.year, day.month, day.day, clock // 3600, clock // 60 % 60, clock % 60,
            rest // 1000, tzinfo=UTC,
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"Timestamp({str.__repr__(self)})"

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Timestamp):
            return self.milliseconds == other.milliseconds
        return NotImplemented

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.milliseconds)

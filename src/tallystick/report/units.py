"""Format figures for people: counts, durations, sizes, shares and times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

__all__ = ["UNKNOWN", "count", "duration", "moment", "octets", "share"]

UNKNOWN: Final = "\N{EN DASH}"
_DURATIONS: Final = (
    (86_400_000_000_000, "d"), (3_600_000_000_000, "h"), (60_000_000_000, "min"),
    (1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"),
)  # fmt: skip
_OCTETS: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def count(value: float | None) -> str:
    """Format a count with separated thousands; an unknown count is a dash."""
    return UNKNOWN if value is None else f"{value:,}"


def duration(nanoseconds: int | None) -> str:
    """Give a duration in the unit that fits, to three digits."""
    if nanoseconds is None:
        return UNKNOWN
    size, unit = next((one for one in _DURATIONS if abs(nanoseconds) >= one[0]), (1, "ns"))
    return f"{nanoseconds / size:.3g} {unit}"


def octets(size: int) -> str:
    """Give a size in bytes."""
    step, unit = next((one for one in _OCTETS if size >= one[0]), (1, "B"))
    return f"{size / step:.3g} {unit}"


def share(part: int, whole: int) -> str:
    """Give a part in percent, never 100 or 0 unless it is all or nothing."""
    if not whole:
        return UNKNOWN
    percent = 100 * part / whole
    if 0 < part < whole:
        percent = min(max(percent, 0.01), 99.99)
    return f"{percent:.2f} %" if percent not in (0, 100) else f"{percent:.0f} %"


def moment(nanoseconds: int, step: int = 1_000_000) -> str:
    """Format a time in UTC, as fine as `step` needs; a time outside the calendar stays a number."""
    try:
        when = _EPOCH + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return f"{nanoseconds} ns"
    if step % 86_400_000_000_000 == 0:
        return f"{when:%Y-%m-%d}"
    form = "%Y-%m-%d %H:%M" if step % 60_000_000_000 == 0 else "%Y-%m-%d %H:%M:%S"
    fine = "" if step % 1_000_000_000 == 0 else f".{when.microsecond // 1000:03}"
    return f"{when:{form}}{fine}"

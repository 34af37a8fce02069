"""Read numbers on the command line: argparse reports a wrong one before anything is started.

Digits are ASCII. A whole number fits 64 bits. A wait is at most 2,000,000 seconds, about 23 days,
because the shortest limit of the system (`poll`, `epoll`) is 2^31 milliseconds. A rate is at least
one per 100,000 seconds. Each kind of number has one reader and one error text.
"""

from __future__ import annotations

import argparse
import re
from typing import Final

__all__ = [
    "above_zero", "from_zero", "per_second", "port", "seconds", "seed", "stamp", "wait", "whole",
    "whole_per_second", "whole_seconds",
]  # fmt: skip

_WHOLE: Final = re.compile(r"-?[0-9]{1,18}")
_DECIMAL: Final = re.compile(r"-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
_MOST: Final = 10**18
_LONGEST: Final = 2_000_000
_SLOWEST: Final = 0.00001
_FASTEST: Final = 10**9
_DAY: Final = 86_400
_LATEST: Final = 10**11
_PORTS: Final = 65536
_SHOWN: Final = 40


def above_zero(text: str) -> int:
    """Read a whole number above 0."""
    return _read_whole(text, range(1, _MOST), "a whole number above 0")


def from_zero(text: str) -> int:
    """Read a whole number that may be 0."""
    return _read_whole(text, range(_MOST), "a whole number, 0 or more")


def whole(text: str) -> int:
    """Read a whole number, also one below 0."""
    return _read_whole(text, range(1 - _MOST, _MOST), "a whole number")


def port(text: str) -> int:
    """Read the number of a port; 0 is any free one where one is taken."""
    return _read_whole(text, range(_PORTS), f"a port number from 0 to {_PORTS - 1}")


def seed(text: str) -> int:
    """Read a seed of the lab."""
    from tallystick.lab.parameters import SEEDS  # noqa: PLC0415 (not every number is the lab's)

    return _read_whole(text, SEEDS, f"a seed from 0 to {SEEDS[-1]}")


def seconds(text: str) -> float:
    """Read a time above 0."""
    return _read_decimal(text, _LONGEST, f"a time above 0, up to {_LONGEST} seconds")


def wait(text: str) -> float:
    """Read a time that may be 0."""
    return _read_decimal(text, _LONGEST, f"a time from 0 to {_LONGEST} seconds", zero=True)


def stamp(text: str) -> float:
    """Read a number of seconds for a message or an age, up to the year 5000, not for a wait."""
    return _read_decimal(text, _LATEST, f"a number of seconds from 0 to {_LATEST}", zero=True)


def per_second(text: str) -> float:
    """Read a rate: one in 100,000 seconds at least."""
    meaning = f"a rate from {_SLOWEST:.5f} to {_FASTEST} per second"
    return _read_decimal(text, _FASTEST, meaning, least=_SLOWEST)


def whole_per_second(text: str) -> int:
    """Read a rate that is a whole number."""
    return _read_whole(
        text, range(1, _FASTEST + 1), f"a whole rate from 1 to {_FASTEST} per second"
    )


def whole_seconds(text: str) -> int:
    """Read how long something lasts, in whole seconds: a day at most."""
    return _read_whole(text, range(1, _DAY + 1), f"a whole number of seconds from 1 to {_DAY}")


def _read_whole(text: str, allowed: range, meaning: str) -> int:
    if not _WHOLE.fullmatch(text) or int(text) not in allowed:
        raise _wrong(text, meaning)
    return int(text)


def _read_decimal(
    text: str, most: int, meaning: str, *, least: float = 0.0, zero: bool = False
) -> float:
    number = float(text) if _DECIMAL.fullmatch(text) else -1.0
    if not (least <= number <= most and (zero or number > 0)):
        raise _wrong(text, meaning)
    return number


def _wrong(text: str, meaning: str) -> argparse.ArgumentTypeError:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return argparse.ArgumentTypeError(f"{shown!r} is not {meaning}")

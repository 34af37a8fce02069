"""Numbers on a command line: argparse says what is wrong with one before anything is started."""

from __future__ import annotations

import argparse
from math import isfinite

from tallystick.lab.parameters import SEEDS

__all__ = ["above_zero", "port", "seconds", "seed"]

_PORTS = 65536


def above_zero(text: str) -> int:
    """Read a whole number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return number


def seconds(text: str) -> float:
    """Read a time above 0 that ends."""
    number = float(text)
    if not (isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text} is not a time above 0")
    return number


def port(text: str) -> int:
    """Read the number of a port; 0 is any free one where one is taken."""
    number = int(text)
    if not 0 <= number < _PORTS:
        raise argparse.ArgumentTypeError(f"{text} is no port: 0 to {_PORTS - 1}")
    return number


def seed(text: str) -> int:
    """Read a seed of the lab."""
    number = int(text)
    if number not in SEEDS:
        raise argparse.ArgumentTypeError(f"{text} is no seed: 0 to {SEEDS[-1]}")
    return number

"""Read what the user named: a file, or `-` for standard input."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["read_bytes"]


def read_bytes(name: str) -> bytes:
    """Give the bytes of a file, or of standard input when the name is `-`."""
    return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()

"""What the tests of claims share: a store that is closed again, and patience."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from tallystick.runtime.claims import Claims, open_claims

DATABASES = ["sqlite", "postgresql"]
PROGRAM = Path(__file__).with_name("claims_program.py")
URN = "urn:babel:orders:created"
PATIENCE = 60.0
StoreUrl = Callable[[str], str]


@contextmanager
def opened(url: str) -> Iterator[Claims]:
    with closing(open_claims(url)) as claims:
        yield claims


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"

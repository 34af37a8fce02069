"""Stop a process at an exact place, so that a test can kill it there: no sleeps, no luck.

    TALLY_HOLD = EVENT|PATTERN|NTH|FLAG

At the NTH audit event EVENT (`os.rename`, `open`, ...) of which an argument fits PATTERN, the first
process that gets there writes its id into the file FLAG and waits for ever; all others go on.
Python loads this file when its folder stands on PYTHONPATH.
"""

from __future__ import annotations

import os
import sys
import threading
from fnmatch import fnmatch
from typing import Any


def install(event: str, pattern: str, nth: int, flag: str) -> None:
    """Watch the events of this process."""
    seen = 0

    def look(name: str, args: tuple[Any, ...]) -> None:
        nonlocal seen
        if name != event or not any(fnmatch(str(one), pattern) for one in args[:2]):
            return
        seen += 1
        if seen == nth:
            try:
                place = os.open(flag, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            except FileExistsError:
                return
            os.write(place, str(os.getpid()).encode())
            os.close(place)
            threading.Event().wait()

    sys.addaudithook(look)


if "TALLY_HOLD" in os.environ:
    _event, _pattern, _nth, _flag = os.environ["TALLY_HOLD"].split("|")
    install(_event, _pattern, int(_nth), _flag)

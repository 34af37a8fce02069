"""What a step of the proof needs beyond Python and git, one row each, and the command to get it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tallystick.brokers.servers import find_server, is_fetched
from tallystick.brokers.servers.java import find_java
from tallystick.core.errors import Unavailable
from tallystick.core.extras import missing_modules

__all__ = ["JAVA", "SHELL_TOOLS", "SPARK_SHELL", "Need", "broker_client", "extra"]


@dataclass(frozen=True, slots=True)
class Need:
    """Something that may be missing: its name, how to look for it, and how to get it."""

    name: str
    is_here: Callable[[], bool]
    get: str


def extra(name: str) -> Need:
    """Need the optional libraries of an extra."""
    return Need(
        f"the extra `{name}`",
        lambda: not missing_modules(name),
        f"pip install 'tallystick[{name}]'",
    )


def broker_client(broker: str, programs: Sequence[str], title: str, get: str) -> Need:
    """Need the programs that fetch a broker, unless the broker was fetched before."""
    are_here = _programs(*programs)
    return Need(title, lambda: is_fetched(find_server(broker)) or are_here(), get)


def _programs(*names: str) -> Callable[[], bool]:
    return lambda: all(shutil.which(name) for name in names)


def _has_java() -> bool:
    try:
        find_java()
    except Unavailable:
        return False
    return True


JAVA: Final = Need("Java 17 or newer", _has_java, "apt-get install openjdk-17-jdk-headless")
SHELL_TOOLS: Final = Need("awk and grep", _programs("awk", "grep"), "apt-get install mawk grep")
"""The start scripts of the lab's clients use them."""
SPARK_SHELL: Final = Need("bash", _programs("bash"), "apt-get install bash")
"""Spark's own start script needs it."""

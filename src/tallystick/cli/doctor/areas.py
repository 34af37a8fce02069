"""What each task needs, and what else it uses where it is found.

An area is a task (`prove`, `lab`), a broker, an extra, or one tool. `needs` must be there for the
area to work at all; `uses` lets more of it take part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tallystick.brokers.servers import NAMES, find_server
from tallystick.brokers.servers.recipe import Debian, Here
from tallystick.cli.doctor.things import THINGS
from tallystick.core.extras import EXTRAS

__all__ = ["AREAS", "PROVE", "Area"]

PROVE: Final = "prove"


@dataclass(frozen=True, slots=True)
class Area:
    """The names of things that a task needs, and of things that it uses where they are found."""

    needs: tuple[str, ...]
    uses: tuple[str, ...] = ()


_FOUR: Final = ("python", "java", "git", "make")
_FETCHING: Final = ("mvn", "apt-get", "dpkg-deb")
_LANGUAGES: Final = ("java", "javac", "mvn", "go", "node", "npm", "cargo")
_ROOM: Final = ("machine", "disk", "memory")
_OTHERS: Final = tuple(name for name in THINGS if name not in _FOUR)

_TASKS: Final[Mapping[str, Area]] = {
    PROVE: Area(_FOUR, _OTHERS),
    "test": Area((*_FOUR, *_OTHERS)),
    "suite": Area(("python",), ("[events]", *_LANGUAGES)),
    "lab": Area(("[lab]", "awk", "grep"), ("[artemis]", *_LANGUAGES, "apt-get", "dpkg-deb")),
    "pipeline": Area(("[pipeline]", "java", "bash"), ("[kafka]", "disk", "memory")),
    "schemas": Area(("[schemas]",), ("git", "[server]")),
    "brokers": Area(("java", *_FETCHING, *_ROOM), ("[artemis]",)),
}


def _broker_tools(name: str) -> tuple[str, ...]:
    """Name what `tally broker up NAME` needs to fetch and start a broker."""
    server = find_server(name)
    if isinstance(server.fetch, Here):
        return (f"[{server.fetch.extra}]",) if server.fetch.extra else ()
    fetching = _FETCHING[1:] if isinstance(server.fetch, Debian) else _FETCHING[:1]
    return (*(("java",) if server.uses_java else ()), *fetching)


def _of_name(name: str) -> Area:
    """Give the area of an extra or broker: its library is needed, a server of our own is not."""
    tools = _broker_tools(name) if name in NAMES else ()
    return Area((f"[{name}]",), tools) if name in EXTRAS else Area(tools)


AREAS: Final[Mapping[str, Area]] = MappingProxyType(
    {
        **{name: Area((name,)) for name in THINGS if not name.startswith("[")},
        **{name: _of_name(name) for name in (*EXTRAS, *NAMES)},
        **_TASKS,
    }
)
"""By name: every task, every extra, every broker that can be started, every tool."""

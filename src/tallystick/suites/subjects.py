"""The subjects at hand: names, and how each is started.

`tallystick` runs inside this process. Every other named subject is a folder under `subjects/`
(`suites/shipped.py` finds it) with a script `start`, which builds what it needs on first use and
then speaks the protocol. Any other text is a command line, so an implementation anywhere can be put
under test.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import Unavailable, UsageError
from tallystick.suites.shipped import find_shipped, script_command
from tallystick.suites.subject import Deadlines, ProcessSubject, Subject
from tallystick.suites.tallystick_subject import TallystickSubject

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = ["NAMES", "OURS", "SUBJECTS", "for_suite", "open_subject", "subject_name"]

OURS: Final = "tallystick"
SUBJECTS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        OURS: ("standard", "cloudevents"),
        "babelqueue": ("standard",),
        "tallystick-go": ("standard",),
        "tallystick-node": ("standard",),
        "tallystick-java": ("standard",),
        "cloudevents-python": ("cloudevents",),
        "cloudevents-pydantic": ("cloudevents",),
        "cloudevents-node": ("cloudevents",),
        "cloudevents-go": ("cloudevents",),
        "cloudevents-java": ("cloudevents",),
    }
)
"""Every subject that ships with Tallystick, our own first, and the suites it is proved with."""
NAMES: Final = tuple(SUBJECTS)


def for_suite(suite: str, given: Iterable[str]) -> list[str]:
    """Choose the subjects that a suite is proved with; a command line may be any of them."""
    return [one for one in dict.fromkeys(given) if suite in SUBJECTS.get(one, (suite,))]


def subject_name(given: str) -> str:
    """Give the short name of a subject for journals and reports: its name, or its program's."""
    return given if given in NAMES else Path(_split(given)[0]).name


def open_subject(
    given: str, deadlines: Deadlines, talk: Callable[[bytes], None], folders: Path | None = None
) -> Subject:
    """Open a subject by its name or command line; nothing is started yet."""
    if given == OURS:
        return TallystickSubject()
    if given not in NAMES:
        return ProcessSubject(_found(_split(given)), deadlines, talk)
    start = (folders or find_shipped("subjects")) / given / "start"
    if not start.exists():
        raise Unavailable(
            f"the implementation {given} is missing: no file {start}",
            code="no_such_subject",
            hint="is the installation complete? pip install --force-reinstall tallystick",
        )
    return ProcessSubject(script_command(start), deadlines, talk)


def _split(given: str) -> list[str]:
    try:
        words = shlex.split(given)
    except ValueError as error:
        raise UsageError(f"cannot read {given!r}: {error}", code="bad_command") from error
    if not words:
        raise UsageError(
            "the name of the implementation is empty",
            code="bad_command",
            hint=f"use one of: {', '.join(NAMES)}",
        )
    return words


def _found(command: Sequence[str]) -> list[str]:
    if shutil.which(command[0]) is None:
        raise UsageError(
            f"no implementation and no program has the name {command[0]!r}",
            code="no_such_subject",
            hint=f"use one of: {', '.join(NAMES)}; or give a command line",
        )
    return list(command)

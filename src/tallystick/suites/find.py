"""Find the suites and load only those that the patterns select.

The default is our own standard. The public suite is fetched only when a pattern can
select from it (`public/**`), and the CloudEvents cases are read only for `cloudevents/**`. A folder
with a manifest of the same grammar is a suite too; one with the official CloudEvents files is
theirs. A folder whose manifest cannot be used is a mistake in the request, not a finding.
"""

from __future__ import annotations

from importlib.resources import files
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tallystick.core.errors import Rejected, Unavailable, UsageError
from tallystick.suites.cloudevents import NAME as CLOUDEVENTS
from tallystick.suites.cloudevents import conformance_in, load_cloudevents
from tallystick.suites.load import Suite, load
from tallystick.suites.public import NAME as PUBLIC
from tallystick.suites.public import load_public
from tallystick.suites.select import may_begin_with

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CLOUDEVENTS", "PUBLIC", "STANDARD", "find_suites", "load_folder", "load_standard"]

STANDARD: Final = "standard"


def find_suites(
    patterns: Sequence[str], folder: Path | None, say: Callable[[str], None]
) -> list[Suite]:
    """Load the suites that patterns can select from; a folder alone stands for all of it."""
    if folder is not None and conformance_in(folder):
        return [load_cloudevents(folder, say)]
    if folder is not None:
        return [load_folder(folder)]
    wanted = patterns or [f"{STANDARD}/**"]
    suites = []
    if any(may_begin_with(pattern, STANDARD) for pattern in wanted):
        suites.append(load_standard())
    if any(may_begin_with(pattern, PUBLIC) for pattern in wanted):
        suites.append(load_public(say))
    if any(may_begin_with(pattern, CLOUDEVENTS) for pattern in wanted):
        suites.append(load_cloudevents(None, say))
    return suites


def load_standard() -> Suite:
    """Load our own standard, which ships with the package."""
    root = files("tallystick").joinpath(STANDARD)
    return load(STANDARD, lambda path: root.joinpath(path).read_bytes())


def load_folder(folder: Path) -> Suite:
    """Load the suite in a folder; its name is the folder's."""
    try:
        return load(Path(realpath(folder)).name, lambda path: (folder / path).read_bytes())
    except OSError as error:
        raise Unavailable(
            f"cannot read {error.filename}: {error.strerror}",
            code="no_suite",
            hint="a suite is a folder with a manifest.json, or with the official CloudEvents files",
        ) from error
    except Rejected as rejection:
        raise UsageError(str(rejection), code=rejection.code, hint=rejection.hint) from rejection

"""What all tests share: real brokers, started once each, and generated tests without a clock.

A test run owns all that it starts (`tallystick.brokers.owner`): if pytest is killed, its processes
and its temporary files go with it. A run that leaves something behind at its end fails.
The summary says which official files took no part (`tests/official.py`).
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tallystick.brokers.owner import OWNER, scratch, tied
from tallystick.core.errors import UsageError
from tests.leavings import find_leavings
from tests.shared import end_shared, own, share

settings.register_profile(
    "tallystick",
    parent=settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tallystick")

for _forced in ("FORCE_COLOR", "CLICOLOR_FORCE"):
    os.environ.pop(_forced, None)  # tests compare plain text; the tests of colour set it themselves


def pytest_configure(config: pytest.Config) -> None:
    """Stop when `TALLY_OFFICIAL` is set and names no folder of official files.

    Tie all that this run starts to the life of this process; the workers of xdist inherit it.
    """
    try:
        from tests import official  # noqa: F401, PLC0415 (it reads the variable)
    except UsageError as error:
        raise pytest.UsageError(f"{error}\n{error.hint}") from None
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell starts background jobs so
        signal.signal(signal.SIGINT, signal.default_int_handler)  # children are to hear Ctrl-C
    if not hasattr(config, "workerinput"):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())  # `tmp_path` is kept
        os.environ.update(tied())
        os.environ["TALLY_TEST_RUN"] = os.environ["TMPDIR"] = tempfile.tempdir = str(scratch())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that are only about official files which are not here."""
    from tests.official import is_missing  # noqa: PLC0415 (after `pytest_configure`)

    left_out = [item for item in items if is_missing(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_missing(item)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say beside the verdict what was not run."""
    from tests.official import missing_lines  # noqa: PLC0415

    for line in missing_lines():
        terminalreporter.write_line(line)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Spread the tests by `tests/schedule.py`."""
    from tests.schedule import LongestFirst  # noqa: PLC0415 (xdist may be off)

    return LongestFirst(config, log)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the brokers of this run, and fail the run if something that it started is still there."""
    if hasattr(session.config, "workerinput"):
        return
    end_shared()
    leavings = find_leavings(os.environ[OWNER], scratch())
    if leavings:
        print("\nthis run left behind:", *leavings, sep="\n  ")  # noqa: T201
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def broker_url() -> Iterator[Callable[[str], str]]:
    """Start a broker when the first test asks for it; all are gone at the end."""
    started: dict[str, str] = {}
    with ExitStack() as stack:

        def start(name: str) -> str:
            if name not in started:
                started[name] = share(name) or stack.enter_context(own(name))
            return started[name]

        yield start

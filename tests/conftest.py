"""Real brokers for tests: each is started once, when the first test asks, and gone at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tallystick.brokers.servers import running


@pytest.fixture(scope="session")
def broker_url() -> Iterator[Callable[[str], str]]:
    started: dict[str, str] = {}
    with ExitStack() as stack:

        def start(name: str) -> str:
            if name not in started:
                started[name] = stack.enter_context(running(name)).url
            return started[name]

        yield start

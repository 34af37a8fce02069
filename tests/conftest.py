"""What all tests share: real brokers, started once each, and generated tests without a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings

from tallystick.brokers.servers import running

settings.register_profile(
    "tallystick",
    parent=settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tallystick")


@pytest.fixture(scope="session")
def broker_url() -> Iterator[Callable[[str], str]]:
    """Start a broker when the first test asks for it; all are gone at the end."""
    started: dict[str, str] = {}
    with ExitStack() as stack:

        def start(name: str) -> str:
            if name not in started:
                started[name] = stack.enter_context(running(name)).url
            return started[name]

        yield start

"""The public suite, fetched once and kept in the user's cache."""

from __future__ import annotations

import pytest

from tallystick.suites import redis_sections
from tallystick.suites.load import Suite
from tallystick.suites.public import load_public


@pytest.fixture(scope="session")
def public() -> Suite:
    """Give the suite as it is where no Redis is at hand."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(redis_sections, "find_redis", lambda: None)
        return load_public(lambda _: None)

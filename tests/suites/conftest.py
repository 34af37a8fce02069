"""The public suite, fetched once and kept in the user's cache."""

from __future__ import annotations

import pytest

from tallystick.suites.load import Suite
from tallystick.suites.public import load_public


@pytest.fixture(scope="session")
def public() -> Suite:
    return load_public(lambda _: None)

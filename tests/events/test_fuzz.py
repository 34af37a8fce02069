from __future__ import annotations

import pytest

from tallystick.events.formats import FORMATS
from tests.events.fuzz import fuzz


@pytest.mark.parametrize("name", FORMATS)
def test_fuzzed_input_is_read_or_rejected_and_nothing_else(name: str) -> None:
    read, rejected = fuzz(name, 3000, seed=7)
    assert read > 0
    assert rejected > 1000

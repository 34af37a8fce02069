"""What the runtime's tests share: a store of every kind, each with a name of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest


@pytest.fixture
def store_url(broker_url: Callable[[str], str], tmp_path: Path) -> Callable[[str], str]:
    """Give the URL of a store of a kind, empty for this test, to which options can be added."""

    def give(kind: str) -> str:
        if kind == "memory":
            return "memory:?"
        if kind == "sqlite":
            return f"sqlite:///{tmp_path}/store.db?"
        return f"{broker_url(kind)}?scope={uuid4().hex}&"

    return give

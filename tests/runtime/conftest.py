"""What the runtime's tests share: stores of every kind, each empty and a test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
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


@pytest.fixture(params=["sqlite", "postgresql"])
def store(
    request: pytest.FixtureRequest, broker_url: Callable[[str], str], tmp_path: Path
) -> Iterator[str]:
    """Give a database with an empty outbox."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/orders.db"
        return
    server, name = broker_url("postgresql"), f"outbox_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    yield f"{server.rpartition('/')[0]}/{name}"

"""What the tests of the servers share: a small broker in place of every other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.brokers.fake_server import FAKE, serve

from tallystick.brokers.servers import down
from tallystick.brokers.servers.process import find_marked


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Put the small broker in place of every other, and see that nothing of it is left."""
    serve(monkeypatch, FAKE)
    yield
    down("fake", home=tmp_path, limit=0)
    assert find_marked(str(tmp_path / "fake")) == []

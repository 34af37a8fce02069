"""One real server for each module that asks for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.serving import Served, start, stop, write_registry


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("registry") / "all"
    write_registry(folder)
    served = start(folder)
    yield served
    assert stop(served) == 0

"""One Spark session for all tests that need one, and planted traffic written as files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tallystick.pipeline.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with open_session(conf={"spark.sql.shuffle.partitions": "2"}, small=True) as session:
        yield session


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.pipeline.planted import write_registry  # noqa: PLC0415

    return write_registry(tmp_path_factory.mktemp("registry"))

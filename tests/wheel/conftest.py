"""The environments, made once for the module that asks for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wheel.environments import Environment, build_wheel, install, remove


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel; test processes that run side by side share it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base
    return build_wheel(shared / "wheel")


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """Give an environment with the wheel and no extra."""
    made = install(wheel, tmp_path_factory.mktemp("bare") / "venv", ())
    yield made
    remove(made)


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Environment]:
    """Give an environment with everything that needs no compiler, and Spark."""
    made = install(wheel, tmp_path_factory.mktemp("full") / "venv", ("all", "pipeline"))
    yield made
    remove(made)

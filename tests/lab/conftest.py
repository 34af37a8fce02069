"""What the tests of the lab share: a broker in this process, one for each module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tallystick.lab.vm_server import Vm, running_vm


@pytest.fixture(scope="module")
def vm() -> Iterator[Vm]:
    with running_vm() as running:
        yield running

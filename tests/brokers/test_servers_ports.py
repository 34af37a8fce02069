"""The ports of a broker: kept, replaced when taken, and refused when they are none."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tallystick.brokers.servers import down, up
from tallystick.brokers.servers.ports import choose_ports
from tallystick.brokers.servers.recipe import HOST
from tallystick.core.errors import Unavailable, UsageError

pytestmark = pytest.mark.usefixtures("fake")


def test_a_port_that_somebody_else_took_is_replaced(tmp_path: Path) -> None:
    first = up("fake", home=tmp_path)
    down("fake", home=tmp_path)
    with socket.create_server((HOST, first.ports["main"])):
        second = up("fake", home=tmp_path)
        assert second.ports["main"] != first.ports["main"]
        assert second.ports["other"] == first.ports["other"]


def test_a_port_that_was_asked_for_is_taken_or_refused(tmp_path: Path) -> None:
    wanted = choose_ports(("any",), {})["any"]
    with socket.create_server((HOST, wanted)), pytest.raises(Unavailable) as caught:
        up("fake", home=tmp_path, port=wanted)
    assert caught.value.code == "port_in_use"
    one = up("fake", home=tmp_path, port=wanted)
    assert one.ports["main"] == wanted
    assert up("fake", home=tmp_path, port=wanted).pid == one.pid
    with pytest.raises(Unavailable) as caught:
        up("fake", home=tmp_path, port=wanted + 1)
    assert caught.value.code == "runs_already"


@pytest.mark.parametrize("port", [0, -1, 65_536])
def test_a_number_that_is_no_port_is_refused(tmp_path: Path, port: int) -> None:
    with pytest.raises(UsageError) as caught:
        up("fake", home=tmp_path, port=port)
    assert caught.value.code == "port"


def test_ports_never_repeat_within_one_broker() -> None:
    names = tuple(f"p{number}" for number in range(50))
    assert len(set(choose_ports(names, dict.fromkeys(names, 21_000)).values())) == 50

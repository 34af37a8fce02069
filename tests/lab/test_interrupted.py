"""Laws of an interrupted run: it leaves no queue on a broker that is not ours, and no role held."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from time import monotonic, sleep
from typing import Any

import pytest

from tallystick.cli.progress import end_in_order, run_in_order
from tallystick.lab.control import Kind
from tallystick.lab.probe import Lane, declare
from tallystick.lab.raw import read_address
from tallystick.lab.shell import Place
from tallystick.lab.state import Drain, Prepare, Say
from tallystick.lab.vm_server import Vm, running_vm
from tests.lab.company import PATIENCE, client, company, fresh, run

Client: Any = client.Client


@pytest.fixture
def vm() -> Iterator[Vm]:
    with running_vm() as running:
        yield running


@pytest.mark.parametrize("moment", [Prepare, Drain])
@pytest.mark.parametrize("signal_of", [KeyboardInterrupt, SystemExit])
def test_a_coordinator_that_is_interrupted_deletes_its_queues(
    vm: Vm, moment: type, signal_of: type[BaseException]
) -> None:
    def interrupt(_state: object, action: object) -> None:
        if isinstance(action, moment) and action.queues:  # type: ignore[attr-defined]
            raise signal_of

    place, key = Place(vm.host, vm.port), f"iop.{fresh()}"
    with company(place, {"a": Client}, control_key=key):
        with pytest.raises(signal_of):
            run(place, ["a"], cases=["TC2*"], key=key, watch=interrupt)
        assert [name for name in vm.server.broker.queues if name.startswith("iop.")] == []
        assert len(run(place, ["a"], cases=["TC2*"], key=key).verdicts) == 1


def test_clients_of_an_interrupted_run_give_up_their_roles(vm: Vm) -> None:
    def interrupt(_state: object, action: object) -> None:
        if isinstance(action, Say) and action.control.kind is Kind.START:
            raise KeyboardInterrupt

    place, key = Place(vm.host, vm.port), f"iop.{fresh()}"
    with company(place, {"a": Client, "b": Client}, control_key=key):
        before = len(vm.server.broker.queues)
        with pytest.raises(KeyboardInterrupt):
            run(place, ["a", "b"], cases=["TC3*/a/b"], key=key, watch=interrupt)
        deadline = monotonic() + PATIENCE
        while len(vm.server.broker.queues) > before and monotonic() < deadline:
            sleep(0.01)
        assert len(vm.server.broker.queues) == before
        assert len(run(place, ["a", "b"], cases=["TC3*/a/b"], key=key).verdicts) == 1


async def _hold(vm: Vm, made: asyncio.Event | None = None) -> None:
    async with Lane(read_address(vm.url), "tally.held") as lane:
        channel = await lane.open("control")
        for _ in range(3):
            await channel.ask(declare(lane.fresh(), durable=False))
        kept = lane.fresh()
        await channel.ask(declare(kept, durable=False))
        lane.forget(kept)
        assert len(vm.server.broker.queues) == 4
        if made:
            made.set()
        else:
            signal.raise_signal(signal.SIGTERM)
        await asyncio.Event().wait()


def test_a_lane_that_is_cancelled_deletes_its_queues_and_no_other(vm: Vm) -> None:
    async def cancel() -> None:
        made = asyncio.Event()
        holding = asyncio.ensure_future(_hold(vm, made))
        await made.wait()
        holding.cancel()
        await asyncio.gather(holding, return_exceptions=True)

    asyncio.run(cancel())
    assert list(vm.server.broker.queues) == ["tally.held.3"]


def test_a_request_to_terminate_lets_a_lane_clear_up(vm: Vm) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, end_in_order():
        run_in_order(_hold(vm))
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is before
    assert list(vm.server.broker.queues) == ["tally.held.3"]


def test_a_lane_on_a_broker_that_is_gone_ends_all_the_same(vm: Vm) -> None:
    async def lose() -> None:
        async with Lane(read_address(vm.url), "tally.lost") as lane:
            channel = await lane.open("control")
            await channel.ask(declare(lane.fresh(), durable=False))
            await asyncio.to_thread(vm.server.stop)

    asyncio.run(lose())

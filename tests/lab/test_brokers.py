"""The test cases on real brokers, and what happens when a broker goes away."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pika  # type: ignore[import-untyped]
import pytest

from tallystick.brokers.servers import down, up
from tallystick.core.journal import read
from tallystick.core.verdict import Outcome
from tallystick.lab import shell
from tallystick.lab.cases import Settings, circuit_group, pair_groups
from tallystick.lab.clients import Client as Program
from tallystick.lab.clients import end_clients, start_client
from tallystick.lab.session import About, run_lab
from tallystick.lab.shell import Place
from tallystick.lab.state import Judged, Limits, Plan
from tallystick.lab.topology import Requested
from tallystick.lab.vm_server import running_vm
from tests.lab.company import INTEROP, PATIENCE, Guest, client, company, fresh, place_of, run

Client: Any = client.Client
START = INTEROP / "python" / "client" / "start"
SMALL = {"P2P_NUM_MESSAGES": 3, "PUBSUB_NUM_MESSAGES": 2, "PUBSUB_NUM_RECEIVERS": 2}


@pytest.mark.parametrize("broker", ["rabbitmq", "qpid"])
def test_every_case_passes_between_programs_on_a_real_broker(
    broker: str, broker_url: Callable[[str], str]
) -> None:
    """IOP-18, IOP-34, IOP-44, IOP-46, IOP-53, IOP-55, IOP-57, IOP-59: all 23, content checked."""
    place, key = place_of(broker_url(broker)), f"iop.{fresh()}"
    names = ("python", "python-two")
    given = {"control_key": key}
    started = [
        start_client(Program("python", START), place, {**given, "client_name": name})
        for name in names
    ]
    try:
        cases = ["TC*/python/python-two", "TC[123]*"]
        book = run(place, names, cases=cases, key=key, given=SMALL)
        assert end_clients(started, PATIENCE) == ()
    finally:
        end_clients(started, patience=0.0)
    assert {one.outcome for one in book.verdicts} == {Outcome.PASSED}, book.verdicts
    assert len(book.verdicts) == 23 + 3 * 3


def queues_of(url: str) -> list[str]:
    request = Request(f"{url.replace('guest:guest@', '')}/api/queues")
    request.add_header("Authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
    with urlopen(request, timeout=PATIENCE) as answer:
        return [part.split('"')[0] for part in answer.read().decode().split('"name":"')[1:]]


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Any]:
    yield up("rabbitmq", fresh=True, home=tmp_path)
    down("rabbitmq", wipe=True, home=tmp_path, limit=0.0)


def test_a_broker_killed_in_mid_run_ends_it_with_a_verdict_for_every_case(
    mortal: Any, tmp_path: Path
) -> None:
    """And the journal is complete, and the next run on the same broker is clean."""
    place = place_of(mortal.url)
    names = ("one", "two")
    settings = Settings(fresh(), "rabbitmq", given=SMALL)
    plan = Plan(settings.run, pair_groups(settings)[:5], names, Limits(PATIENCE, PATIENCE))
    journal = tmp_path / "journal.jsonl"
    judged: list[Judged] = []

    def kill_after_six(verdict: Any) -> None:
        judged.append(verdict)
        if len(judged) == 6:
            os.kill(mortal.pid, signal.SIGKILL)

    with company(place, dict.fromkeys(names, Client)) as guests, journal.open("w") as file:
        run_lab(plan, place, About("now", "rabbitmq"), write=file.write, advance=kill_after_six)
        assert [guest.join() for guest in guests.values()] == [1, 1], "clients end too (IOP-5)"
    with journal.open(encoding="utf-8", newline="\n") as lines:
        (found,) = read(lines)
    assert found.complete
    assert len(found.records) == 5 * 4
    outcomes = [record.verdict.outcome for record in found.records]
    first = outcomes.index(Outcome.ERRORED)
    assert first >= 6, "what was on its way when the broker died may still pass"
    assert set(outcomes[:first]) == {Outcome.PASSED}
    assert set(outcomes[first:]) == {Outcome.ERRORED}
    assert "the connection to the broker is lost" in found.records[-1].verdict.reason
    again = up("rabbitmq", home=tmp_path)
    place = place_of(again.url)
    with company(place, dict.fromkeys(names, Client)):
        book = run(place, names, cases=["TC[12]*"])
    assert {one.outcome for one in book.verdicts} == {Outcome.PASSED}
    assert [name for name in queues_of(again.admin) if name.startswith(f"iop.{settings.run}")] == []


def test_a_connection_that_has_nothing_to_do_for_long_is_kept(
    broker_url: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker drops a connection that misses its heartbeats: that is not the broker's end."""
    monkeypatch.setattr(shell, "_HEARTBEAT", 2)
    place, key, settings = (
        place_of(broker_url("rabbitmq")),
        f"iop.{fresh()}",
        Settings(fresh(), "b"),
    )
    alone, body = Requested(single_role=False), {"num_messages": 1, "outgoing_rate": 100}
    groups = [
        circuit_group(settings, "queue", alone, body),
        circuit_group(settings, "topic", alone, {**body, "pattern": "pubsub"}, duration=8.0),
        circuit_group(settings, "queue again", alone, body),
    ]
    with company(place, {"one": Client}, control_key=key):
        book = run(place, ["one"], groups=groups, key=key)
    assert [one.outcome for one in book.verdicts] == [Outcome.PASSED] * 3, book.verdicts


def test_a_virtual_host_is_the_default_one_unless_another_is_named(
    broker_url: Callable[[str], str],
) -> None:
    """IOP-6, IOP-20: without -v the client is on `/`."""
    place, key = place_of(broker_url("rabbitmq")), f"iop.{fresh()}"
    assert place.vhost == "/"
    guest = Guest(Client, Place(place.host, place.port, "/"), {"control_key": key})
    elsewhere = Guest(Client, Place(place.host, place.port, "no-such-vhost"), {})
    assert elsewhere.join() == 1
    connection = pika.BlockingConnection(place.parameters())
    properties = pika.BasicProperties(headers={"CONTROL_TYPE": "TERMINATE"})
    connection.channel().basic_publish("amq.topic", key, b"", properties)
    connection.close()
    assert guest.join() == 0


def test_several_receivers_are_several_connections() -> None:
    """IOP-43: test connections are opened when a role is assigned, one for each receiver."""
    with running_vm() as vm:
        place, most = Place(vm.host, vm.port), [0]
        with company(place, {"one": Client}):
            before = len(vm.server._links)

            def look(_state: object, _action: object) -> None:
                most[0] = max(most[0], len(vm.server._links))

            run(place, ["one"], cases=["TC3*"], given={"PUBSUB_NUM_RECEIVERS": 4}, watch=look)
        assert before == 1, "only its control connection"
        assert most[0] == 1 + 4 + 1 + 1, "one sender, four receivers, and the coordinator"

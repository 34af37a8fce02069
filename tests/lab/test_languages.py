"""Every language to every other one on a real broker: test cases, envelopes, a tier, latencies.

All clients must be here: one whose toolchain is missing fails these tests (IOP-22, 44 to 60). They
are started once and stay for all the runs of this file.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pika  # type: ignore[import-untyped]
import pytest

from tallystick.core.verdict import Outcome, Verdict
from tallystick.lab import vm_server
from tallystick.lab.cases import Settings, pair_groups
from tallystick.lab.clients import Started, end_clients, find_clients, start_client
from tallystick.lab.content import envelope_group
from tallystick.lab.control import Control, Kind
from tallystick.lab.instance import Group
from tallystick.lab.perf import Load, perf_groups
from tallystick.lab.profiles import find_profile
from tallystick.lab.raw import read_address
from tallystick.lab.session import choose
from tallystick.lab.shell import Place, conduct
from tallystick.lab.state import Action, Judged, Limits, Plan, State
from tallystick.lab.tier_clients import tier_groups
from tallystick.lab.tiers_broker import ask_version
from tallystick.lab.vm_server import Vm
from tests.lab.company import INTEROP, fresh, place_of
from tests.lab.test_client_alone import Line

LANGUAGES = ("go", "java", "node", "python", "rust")
PAIRS = tuple((one, other) for one in LANGUAGES for other in LANGUAGES)
PATIENCE = 120.0
FEW = {"P2P_NUM_MESSAGES": 10, "PUBSUB_NUM_MESSAGES": 4, "PUBSUB_NUM_RECEIVERS": 2}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_needs_no_environment_but_a_path_and_a_home(language: str) -> None:
    """IOP-8, IOP-17: once built it dials, and says in time that nobody answers.

    To build it the first time it may need more: a proxy, certificates.
    """
    start = str(INTEROP / language / "client" / "start")
    names = ("PATH", "HOME", "XDG_CACHE_HOME")
    kept = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    for command in ([start, "-p", "1"], ["env", "-i", *kept, start, "-p", "1"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
        assert done.returncode == 1
        assert "refused" in done.stderr.lower(), done.stderr


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_client_comes_to_the_place_and_as_who_it_was_told(
    language: str, vm: Vm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """IOP-19 to IOP-21: each library has its own way to read a URL."""
    told = list[Any]()
    answer = vm_server._Link._connection_method

    def note(self: Any, asked: Any) -> None:
        told.append(getattr(asked, "response", None) or getattr(asked, "virtual_host", None))
        answer(self, asked)

    monkeypatch.setattr(vm_server._Link, "_connection_method", note)
    client = find_clients(INTEROP)[language]
    place = Place(vm.host, vm.port, "v%2F ü@:?#")
    given = {"username": "u%41:ü", "password": "p%2F:@ '$x", "client_name": fresh()}
    started = start_client(client, place, given)
    end_clients([started], 0)
    said = [one.encode() if isinstance(one, str) else one for one in told if one]
    assert said == ["\0u%41:ü\0p%2F:@ '$x".encode(), "v%2F ü@:?#".encode()]


def test_the_go_client_tells_a_close_by_the_broker_from_an_error() -> None:
    """Once `start` has fetched its library: a channel is closed before the reason is known."""
    here = INTEROP / "go" / "client"
    subprocess.run([here / "start", "-p", "1"], capture_output=True, check=False, timeout=1200)
    environment = {**os.environ, "GOTOOLCHAIN": "local", "GOPROXY": "off", "CGO_ENABLED": "0"}
    done = subprocess.run(
        ["go", "test", "./..."], cwd=here, env=environment, capture_output=True, text=True,
        check=False, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


class Lab:
    """Clients of all languages that listen on one broker, under a control key of their own."""

    def __init__(self, url: str) -> None:
        self.place, self.key = place_of(url), f"iop.{fresh()}"
        self.version = asyncio.run(ask_version(read_address(url)))
        found = find_clients(INTEROP)
        given = {"control_key": self.key, "control_timeout": "1200"}
        self.started: list[Started] = []
        for name in LANGUAGES:
            self.started.append(start_client(found[name], self.place, given))

    def run(
        self, groups: Sequence[Group], *cases: str, parallel: int = 6, last: bool = False
    ) -> dict[str, Verdict]:
        """Run cases; give the verdicts by name, without the broker."""
        verdicts: dict[str, Verdict] = {}

        def take(_state: State, action: Action) -> None:
            if isinstance(action, Judged):
                verdicts[action.verdict.case.partition("/")[2]] = action.verdict

        chosen, _ = choose(groups, cases, LANGUAGES)
        limits = Limits(PATIENCE, PATIENCE, PATIENCE)
        plan = Plan(fresh(), chosen, LANGUAGES, limits, parallel, key=self.key, terminate=last)
        conduct(plan, self.place, take)
        return verdicts


@pytest.fixture(scope="module")
def lab(broker_url: Callable[[str], str]) -> Iterator[Lab]:
    lab = Lab(broker_url("rabbitmq"))
    try:
        yield lab
        lab.run(pair_groups(Settings(fresh(), "b"))[:1], last=True)
        assert end_clients(lab.started, PATIENCE) == (), "each client ends when it is told to"
    finally:
        end_clients(lab.started, patience=0.0)


def test_a_role_without_parameters_is_an_error_at_once_and_no_end(lab: Lab) -> None:
    """In every language: it is told in a report, and the client goes on."""
    line = Line(lab.place, lab.key)
    for name in LANGUAGES:
        headers = {"CONTROL_TYPE": "ASSIGN_ROLE", "ROLE": "RECEIVER"}
        properties = pika.BasicProperties(headers=headers, reply_to=line.to, correlation_id=name)
        begun = time.monotonic()
        line.channel.basic_publish("amq.topic", f"{lab.key}.{name}", b"", properties)
        said, body = line.hear()
        assert time.monotonic() - begun < 4, f"{name} waited for a reason of the broker"
        assert (said.headers["CONTROL_TYPE"], said.headers["CLIENT_NAME"]) == ("REPORT", name)
        assert json.loads(body)["error"]
        assert line.ask(Control(Kind.INVITE, {}, {}, "x"), name).kind is Kind.ENLIST
    line.close()


def test_a_role_that_is_called_off_at_once_is_accepted_first_and_over_then(lab: Lab) -> None:
    """In every language: what a role is asked is done in order, and no consumer is left behind."""
    line = Line(lab.place, lab.key)
    queue = line.channel.queue_declare("").method.queue
    body = {
        "destinations": [{"exchange": "", "key": queue, "queue": queue}],
        "consumers": [{"index": 0, "destination": 0}],
    }
    wait = {"WAIT_COUNT": 0, "WAIT_MS": 0, "FINAL": True}
    for name in LANGUAGES:
        for turn in range(5):
            role = f"{name} {turn}"
            line.say(Control(Kind.ASSIGN_ROLE, {"ROLE": "RECEIVER"}, body, role), name)
            line.say(Control(Kind.STATUS_REQUEST, wait, {}, role), name)
            said = [line.hear()[0].headers["CONTROL_TYPE"] for _ in range(2)]
            assert said == ["ACCEPT_ROLE", "REPORT"], name
    found = line.channel.queue_declare(queue, passive=True).method
    assert found.consumer_count == 0
    line.channel.queue_delete(queue)
    line.close()


@pytest.mark.parametrize("ack_mode", ["client", "dups_ok", "tx"])
def test_a_receiver_acknowledges_in_time_for_its_prefetch(lab: Lab, ack_mode: str) -> None:
    """Who acknowledges only after ten gets no more than three: the coordinator tells it to."""
    load = Load(messages=10, size=1, given={"prefetch_count": 3, "ack_mode": ack_mode})
    found = lab.run(perf_groups(Settings(fresh(), "b"), load), "Throughput/*/go/*")
    told = {one.outcome for one in found.values()}
    assert told <= {Outcome.PASSED, Outcome.UNSUPPORTED}, not_passed(found)
    assert Outcome.PASSED in told


def not_passed(verdicts: dict[str, Verdict]) -> list[Verdict]:
    return [one for one in verdicts.values() if one.outcome is not Outcome.PASSED]


def test_every_language_understands_every_other(lab: Lab) -> None:
    """IOP-22, IOP-44 to IOP-60: test cases 1 to 5 in all sizes, and envelopes, of all pairs.

    With fewer messages than Appendix D has; `make lab` sends them all.
    """
    settings = Settings(fresh(), "b", given=FEW)
    found = lab.run((*pair_groups(settings), envelope_group(settings)))
    assert not_passed(found) == []
    for test in ("TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "Envelope"):
        assert {f"{test}/{one}/{other}" for one, other in PAIRS} <= set(found)
    for test in ("TC4_P2PMessageSize", "TC5_PubSubMessageSize"):
        assert sum(name.startswith(f"{test}/") for name in found) == 10 * len(PAIRS)


def test_a_sample_of_the_pairwise_tier_is_as_the_profile_says_or_declined(lab: Lab) -> None:
    profile = find_profile("rabbitmq", lab.version)
    found = lab.run(tier_groups(Settings(fresh(), "b"), "pairwise", profile)[::3])
    assert len(found) == 6 * len(PAIRS)
    told = {one.outcome for one in found.values()}
    assert told == {Outcome.PASSED, Outcome.UNSUPPORTED}, not_passed(found)
    declined = [one for one in found.values() if one.outcome is Outcome.UNSUPPORTED]
    assert all("declined the role" in one.reason for one in declined)
    passed = {tuple(name.split("/")[-2:]) for name in found if found[name] not in declined}
    assert passed == set(PAIRS), "every pair passed something"


def test_latency_and_throughput_are_measured_between_all_languages(lab: Lab) -> None:
    load = Load(messages=50, rate=100, duration=1, size=64)
    found = lab.run(perf_groups(Settings(fresh(), "b"), load), "Latency/*")
    assert not_passed(found) == []
    assert len(found) == len(PAIRS)
    for name, verdict in found.items():
        sender, receiver = name.split("/")[-2:]
        assert (verdict.measured["error_ns"] == 0) == (sender == receiver)
        assert 0 < verdict.measured["sent_per_second"] < 1.2 * load.rate


def test_a_receiver_takes_no_more_than_its_inbound_rate(lab: Lab) -> None:
    load = Load(messages=10, size=1, given={"inbound_rate": 50})
    found = lab.run(perf_groups(Settings(fresh(), "b"), load), "Throughput/*/go/*")
    assert not_passed(found) == []
    for name, verdict in found.items():
        assert 0 < verdict.measured["received_per_second"] < 1.2 * 50, name

"""The thorough procedure on real brokers: a pairwise sample, crashes, field tables, the clock."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree  # type: ignore[import-untyped]

from tallystick.cli import main
from tallystick.core.verdict import Outcome, Verdict
from tallystick.lab.combinations import Parameters
from tallystick.lab.fields import TYPES, field_cases, headers_of, judge_field
from tallystick.lab.fields_types import type_cases
from tallystick.lab.profiles import find_profile
from tallystick.lab.raw import Address, Gone, Refusal, Wire, read_address
from tallystick.lab.tier_table import tier_cases
from tallystick.lab.tiers import run_tier
from tallystick.lab.tiers_broker import ask_version
from tests.report.junit_rules import check_junit

BROKERS = ("rabbitmq", "qpid")
Tally = Callable[..., tuple[int, str, str]]


@pytest.fixture
def tally(capsys: pytest.CaptureFixture[str]) -> Tally:
    def run(*argv: str) -> tuple[int, str, str]:
        code = main(list(argv))
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("broker", BROKERS)
def test_every_pair_of_parameters_is_as_the_profile_says(
    broker: str, broker_url: Callable[[str], str], tally: Tally, tmp_path: Path
) -> None:
    xml, journal = tmp_path / "junit.xml", tmp_path / "journal.jsonl"
    code, out, _ = tally(
        "lab", "run-tier", "pairwise", "--broker", broker, "--url", broker_url(broker), "--json",
        "--junit", str(xml), "--journal", str(journal),
    )  # fmt: skip
    found = json.loads(out)
    assert (code, found["passed"], found["not_passed"]["failed"]) == (0, 18, [])
    check_junit(etree.parse(xml).getroot())
    assert tally("journal", "show", str(journal))[0] == 0


@pytest.mark.parametrize("broker", BROKERS)
def test_acknowledge_modes_show_when_the_receiver_is_cut(
    broker: str, broker_url: Callable[[str], str], tally: Tally
) -> None:
    code, out, _ = tally(
        "lab", "run-tier", "crash", "--broker", broker, "--url", broker_url(broker), "--json",
        "--only", "/none",
    )  # fmt: skip
    assert (code, json.loads(out)["passed"]) == (0, 20)


@pytest.mark.parametrize("broker", BROKERS)
def test_no_local_shows_on_one_connection(
    broker: str, broker_url: Callable[[str], str], tally: Tally
) -> None:
    code, out, _ = tally(
        "lab", "run-tier", "local", "--broker", broker, "--url", broker_url(broker), "--json",
        "--only", "auto/one_body/bind_out_route+consumer_out_active+no_local",
    )  # fmt: skip
    assert (code, json.loads(out)["passed"]) == (0, 8)


@pytest.mark.parametrize("broker", BROKERS)
def test_every_field_type_comes_back_byte_for_byte_or_is_declared(
    broker: str, broker_url: Callable[[str], str], tally: Tally
) -> None:
    code, out, _ = tally(
        "lab", "fields", "0-9-1", "--broker", broker, "--url", broker_url(broker), "--json"
    )
    found = json.loads(out)
    assert code == 0, found["not_passed"]
    declared = {one.name for one in field_cases(broker) if not one.expected}
    assert set(found["not_passed"]["unsupported"]) == declared
    assert found["passed"] == len(list(field_cases(broker))) - len(declared)


def test_amqp_10_types_come_back_with_their_types(
    broker_url: Callable[[str], str], tally: Tally
) -> None:
    url = broker_url("qpid")
    code, out, _ = tally("lab", "fields", "1.0", "--broker", "qpid", "--url", url, "--json")
    found = json.loads(out)
    assert (code, found["passed"], found["failed"]) == (0, len(type_cases("qpid")), 0)


def test_amqp_10_types_come_back_over_artemis_too(
    broker_url: Callable[[str], str], tally: Tally
) -> None:
    url = broker_url("artemis").replace("artemis://", "amqp://admin:admin@")
    code, out, _ = tally("lab", "fields", "1.0", "--broker", "artemis", "--url", url, "--json")
    assert (code, json.loads(out)["passed"]) == (0, len(type_cases("artemis")))


def test_the_error_over_the_broker_lies_inside_the_bound(
    broker_url: Callable[[str], str], tally: Tally
) -> None:
    url = broker_url("rabbitmq")
    code, out, _ = tally("lab", "clock", "broker", "--url", url, "--rounds", "3", "--json")
    assert (code, json.loads(out)["inside"]) == (0, 3)


def test_a_wrong_profile_is_found_out_with_the_command_that_repeats_it(
    broker_url: Callable[[str], str], tally: Tally
) -> None:
    code, out, _ = tally(
        "lab", "run-tier", "full", "--broker", "vm", "--url", broker_url("rabbitmq"),
        "--only", "tier/full/vm/auto/one_body/bind_out_route+consumer_out_active+immediate",
    )  # fmt: skip
    assert code == 1
    assert "at /refused" in out
    assert 'found    "connection 540"' in out
    assert (
        "repeat with: tally lab run-tier full --broker vm --only tier/full/vm/auto/one_body/" in out
    )


class Cut:
    """A way to the broker that ends, for everybody, after so many verdicts."""

    def __init__(self, address: Address, after: int) -> None:
        self.address, self.left = address, after
        self.told: list[Verdict] = []
        self.server: asyncio.Server | None = None
        self.pipes: list[asyncio.StreamWriter] = []

    async def serve(self) -> Address:
        self.server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        return Address("127.0.0.1", port, "guest", "guest", self.address.vhost)

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(self.address.host, self.address.port)
        if self.left <= 0:  # the way ended while this connection was being made
            writer.transport.abort()
            back.transport.abort()
            return
        self.pipes += [writer, back]
        await asyncio.gather(self._copy(reader, back), self._copy(there, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        except ConnectionError:
            pass
        finally:
            writer.close()

    def tell(self, verdict: Verdict) -> None:
        self.told.append(verdict)
        self.left -= 1
        if not self.left and self.server:
            self.server.close()
            for pipe in self.pipes:
                pipe.transport.abort()


def test_a_broker_that_goes_in_mid_run_ends_it_and_the_next_run_is_clean(
    broker_url: Callable[[str], str], tally: Tally
) -> None:
    url = broker_url("rabbitmq")
    cut = Cut(read_address(url), after=5)
    cases = tier_cases("3way", "rabbitmq")

    async def work() -> None:
        address = await cut.serve()
        profile = find_profile("rabbitmq", "3.10.8")
        await run_tier(cases, address, profile, run="cut", tell=cut.tell, lanes=2)

    asyncio.run(work())
    outcomes = {verdict.case: verdict.outcome for verdict in cut.told}
    assert set(outcomes) == {case.name for case in cases}
    assert len(cut.told) == len(cases), "one verdict for each case"
    before = {verdict.case for verdict in cut.told[:5]}
    assert {outcomes[name] for name in before} == {Outcome.PASSED}
    # The other lane took one more case before the cut. It passed if all of its answers had come.
    (under_way,) = {case.name for case in cases[:6]} - before
    assert outcomes[under_way] in {Outcome.PASSED, Outcome.ERRORED}
    after = {case.name for case in cases[6:]}
    assert {outcomes[name] for name in after} == {Outcome.ERRORED}
    code, out, _ = tally("lab", "run-tier", "pairwise", "--broker", "rabbitmq", "--url", url)
    assert code == 0, out


def run_lost(address: Address, lanes: int = 2) -> list[Verdict]:
    told: list[Verdict] = []
    cases = tier_cases("pairwise", "rabbitmq")
    profile = find_profile("rabbitmq", "3.10.8")
    asyncio.run(run_tier(cases, address, profile, run="lost", tell=told.append, lanes=lanes))
    return told


def test_a_broker_that_is_gone_leaves_one_errored_verdict_for_each_circuit() -> None:
    told = run_lost(Address("127.0.0.1", 9, "guest", "guest", "/"))
    assert len({one.case for one in told}) == len(told) == 18
    assert {one.outcome for one in told} == {Outcome.ERRORED}
    assert sum("not run" in one.reason for one in told) >= 12


def test_a_wrong_password_is_told_by_the_broker(broker_url: Callable[[str], str]) -> None:
    address = read_address(broker_url("rabbitmq"))
    wrong = Address(address.host, address.port, "guest", "wrong", address.vhost)
    with pytest.raises((Refusal, Gone)):
        asyncio.run(_open(wrong))
    assert asyncio.run(ask_version(address)) == "3.10.8"


async def _open(address: Address) -> None:
    await (await Wire.open(address)).close()


def test_every_type_of_the_table_has_values_and_a_changed_one_is_noticed() -> None:
    assert {kind.tag for kind in TYPES} == set("tbBsuIilLfdDSATFVxUCz")
    case = next(iter(field_cases("rabbitmq")))
    assert judge_field(case, "identical").outcome is Outcome.PASSED
    for wrong in ("dropped", "connection 541", "00"):
        assert judge_field(case, wrong).outcome is Outcome.FAILED


def test_the_headers_table_is_found_behind_other_properties() -> None:
    start = bytes(12)
    table = b"\x00\x00\x00\x01t"
    assert headers_of(start + b"\x20\x00" + table) == table
    assert headers_of(start + b"\xe0\x00\x01a\x02bb" + table + b"\x01") == table
    assert headers_of(start + b"\x00\x00") == b""


def test_the_default_circuit_is_the_one_of_appendix_c() -> None:
    assert Parameters() in {one.parameters for one in tier_cases("full", "vm")}

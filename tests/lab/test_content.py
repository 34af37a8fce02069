"""Envelopes and header tables between clients, judged on what arrived."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tallystick.core.envelope import decode, encode
from tallystick.core.verdict import Outcome
from tallystick.lab.cases import Settings
from tallystick.lab.content import TABLES, envelope_group, field_groups, make_envelopes
from tallystick.lab.control import Control, Kind
from tallystick.lab.instance import Evidence
from tallystick.lab.shell import Place
from tallystick.lab.vm_server import running_vm
from tests.lab.company import Book, client, company, fresh, roles, run, wire

Client: Any = client.Client


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with running_vm() as vm:
        yield Place(vm.host, vm.port)


def envelopes(place: Place, kind: Any = Client) -> Book:
    with company(place, {"good": Client, "bad": kind}):
        groups = [envelope_group(Settings(fresh(), "vm"))]
        return run(place, ("good", "bad"), groups=groups)


def test_envelopes_are_canonical_and_no_two_cases_share_an_id() -> None:
    made = [*make_envelopes("a"), *make_envelopes("b")]
    assert [one for one in made if encode(decode(one)) != one] == [
        one for one in made if b'"urn"' in one
    ]
    read = [decode(one) for one in made]
    assert len({one.meta and one.meta.id for one in read}) == 14
    assert len({one.trace_id for one in read}) == 14


def test_some_envelopes_are_named_by_their_urn_beside_each_job_that_names_nothing() -> None:
    """The alias rule: a `job` that is no string, or blank, is as good as none."""
    aliased = [one for one in make_envelopes("a") if decode(one).urn == "urn:babel:lab:alias"]
    jobs = [json.loads(one)["job"] for one in aliased]
    assert jobs == ["", " \t", None, 5]


def test_an_envelope_arrives_byte_for_byte_also_when_it_is_redelivered(place: Place) -> None:
    book = envelopes(place)
    assert [one.outcome for one in book.verdicts] == [Outcome.PASSED] * 4, book.verdicts


class Reencodes(roles.Sender):  # type: ignore[misc]
    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        text = wire.json.dumps(wire.json.loads(body)).encode()
        super().publish(publisher, sequence, properties, text)


class CountsDeliveries(roles.Sender):  # type: ignore[misc]
    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        properties.headers["x-attempts"] += 1
        super().publish(publisher, sequence, properties, body)


class ForgetsTheUrn(roles.Sender):  # type: ignore[misc]
    def publish(self, publisher: int, sequence: int, properties: Any, body: bytes) -> None:
        properties.type = None
        super().publish(publisher, sequence, properties, body)


class DropsTheRedelivered(roles.Receiver):  # type: ignore[misc]
    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = super().report()
        report["messages"] = [one for one in report["messages"] if not one["redelivered"]]
        return report


@pytest.mark.parametrize(
    ("kind", "role", "reason"),
    [
        (Reencodes, "SENDER", "7 lost, 7 altered"),
        (CountsDeliveries, "SENDER", "headers"),
        (ForgetsTheUrn, "SENDER", "properties"),
        (DropsTheRedelivered, "RECEIVER", "redelivered"),
    ],
)
def test_what_happened_to_an_envelope_is_named(
    place: Place, kind: type[Any], role: str, reason: str
) -> None:
    class Impostor(Client):  # type: ignore[misc]
        roles = {**Client.roles, role: kind}  # noqa: RUF012 (as in the original)

    book = envelopes(place, Impostor)
    pair = "bad/good" if role == "SENDER" else "good/bad"
    (verdict,) = book.named(f"Envelope/{pair}")
    assert (verdict.outcome, verdict.reason) == (Outcome.FAILED, reason)


def test_every_type_of_a_header_value_is_judged_or_declined(place: Place) -> None:
    """Waiting room of the specification: full testing of field tables."""
    with company(place, {"one": Client}):
        book = run(place, ("one",), groups=field_groups(Settings(fresh(), "vm")))
    found = {one.case.split("/")[2]: one for one in book.verdicts}
    assert found.keys() == TABLES.keys()
    by_outcome: dict[Outcome, set[str]] = {}
    for name, verdict in found.items():
        by_outcome.setdefault(verdict.outcome, set()).add(name)
    assert by_outcome[Outcome.UNSUPPORTED] == {
        "int8", "uint8", "int16", "uint16", "uint32", "float", "double",
    }  # fmt: skip
    assert by_outcome.keys() == {Outcome.PASSED, Outcome.UNSUPPORTED}
    assert "type b" in found["int8"].reason, "declared, with the reason"


def test_a_value_that_changed_on_the_way_is_named() -> None:
    """As pika 1.4 does: it reads the double 1.5 as the integer 1."""
    group = field_groups(Settings("r", "vm"))[list(TABLES).index("double")]
    (case,) = group.make(["a"], ["b"])
    whole = {"closed": None, "error": ""}
    echo = [{"headers": {"value": ["*", "1"]}}]
    reports = {
        0: Control(Kind.REPORT, {}, whole),
        1: Control(Kind.REPORT, {}, {**whole, "echo": echo}),
    }
    finding = case.judge(case, Evidence(reports))
    assert (finding.outcome, finding.reason) == (Outcome.FAILED, "headers")
    for tag, text, same in [("d", "1.5", True), ("d", "1.50", True), ("f", "1.5", False),
                            ("d", "1.5000000000000002", False), ("d", "-1.5", False)]:  # fmt: skip
        echo[0]["headers"]["value"] = [tag, text]
        assert (case.judge(case, Evidence(reports)).outcome is Outcome.PASSED) == same


@pytest.mark.parametrize(
    ("found", "outcome"),
    [(["f", "1.5"], Outcome.PASSED), (["d", "1.5"], Outcome.PASSED),
     (["d", "1.5000000001"], Outcome.FAILED), (["f", "1e39"], Outcome.ERRORED)],
)  # fmt: skip
def test_a_float_may_be_told_as_the_double_it_widens_to(found: Any, outcome: Outcome) -> None:
    group = field_groups(Settings("r", "vm"))[list(TABLES).index("float")]
    (case,) = group.make(["a"], ["b"])
    whole = {"closed": None, "error": ""}
    reports = {
        0: Control(Kind.REPORT, {}, whole),
        1: Control(Kind.REPORT, {}, {**whole, "echo": [{"headers": {"value": found}}]}),
    }
    assert case.judge(case, Evidence(reports)).outcome is outcome

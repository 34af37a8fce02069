"""What envelope cases sent and received becomes captures: the pipeline's input."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tallystick.core.capture import Capture, read
from tallystick.core.envelope import decode
from tallystick.lab.captured import capture_case
from tallystick.lab.cases import Settings, pair_groups
from tallystick.lab.content import envelope_group, make_envelopes
from tallystick.lab.control import Control, Kind
from tallystick.lab.instance import Instance
from tallystick.lab.session import About, run_lab
from tallystick.lab.shell import Place
from tallystick.lab.state import Plan
from tallystick.lab.vm_server import running_vm
from tests.lab.company import client, company, fresh


def case() -> Instance:
    (made,) = envelope_group(Settings("r", "vm")).make(["one"], ["two"])
    return made


def delivery(body: str, *, redelivered: bool = False) -> dict[str, Any]:
    return {"consumer": 0, "body": body, "redelivered": redelivered,
            "properties": {"type": "t"}, "headers": {"x-attempts": ["I", "0"]}}  # fmt: skip


def reports(sent: str, echo: list[dict[str, Any]]) -> dict[int, Control]:
    told = {"sent": [sent], "started_ns": "1000", "ended_ns": "2001"}
    heard = {"echo": echo, "first_ns": "5000", "last_ns": "5000"}
    return {0: Control(Kind.REPORT, {}, told), 1: Control(Kind.REPORT, {}, heard)}


def test_what_was_put_back_counts_when_it_comes_again() -> None:
    texts = case().parts[0].body["envelopes"]
    echo = [delivery(one) for one in texts] + [delivery(texts[0], redelivered=True)]
    found = capture_case("vm", case(), reports(f"0-{len(texts) - 1}", echo))
    bodies = [base64.b64decode(one) for one in texts]
    assert [one.frame.body for one in found if one.direction == "sent"] == bodies
    kept = [one.frame.body for one in found if one.direction == "received"]
    assert kept == [*bodies[1:], bodies[0]]
    assert {one.node for one in found if one.direction == "sent"} == {"one"}
    assert {one.queue for one in found} == {"Envelope/one/two"}
    assert found[-1].frame.sections["headers"] == {"x-attempts": 0}


def test_a_time_is_the_middle_of_its_span_and_the_error_covers_all_of_it() -> None:
    first, *_, last = capture_case("vm", case(), reports("0", [delivery(""), delivery("")]))
    assert first.clock_error is not None
    assert first.at - first.clock_error <= 1000
    assert first.at + first.clock_error >= 2001
    assert (last.at, last.clock_error) == (5000, 0)


def test_what_was_not_sent_or_received_is_not_captured() -> None:
    assert capture_case("vm", case(), reports("", [])) == []
    assert capture_case("vm", case(), {}) == []
    (plain, *_) = pair_groups(Settings("r", "vm"))[0].make(["one"], ["two"])
    assert capture_case("vm", plain, reports("0", [])) == []


@pytest.fixture
def place() -> Any:
    with running_vm() as vm:
        yield Place(vm.host, vm.port)


def conduct(place: Place, kind: Any) -> tuple[list[Capture], tuple[str, ...]]:
    lines: list[bytes] = []
    with company(place, {"one": kind}):
        run = fresh()
        plan = Plan(run, (envelope_group(Settings(run, "vm")),), ("one",))
        journal = run_lab(plan, place, About("", "vm"), capture=lines.append)
    assert journal.foot is not None
    return [read(one) for one in lines], journal.foot.notes


class Silent(client.Client):  # type: ignore[misc]
    """A client whose reports tell no times."""

    def reply(self, properties: Any, kind: str, fields: Any, body: str = "") -> None:
        if "started_ns" in body:
            body = json.dumps({**json.loads(body), "started_ns": "soon"})
        super().reply(properties, kind, fields, body)


def test_a_run_writes_what_its_envelope_cases_moved(place: Place) -> None:
    captures, notes = conduct(place, client.Client)
    count = len(make_envelopes(""))
    assert [one.direction for one in captures] == ["sent"] * count + ["received"] * count
    sent, received = (
        {decode(one.frame.body).trace_id: one.frame for one in captures if one.direction == way}
        for way in ("sent", "received")
    )
    assert sent == received
    assert all(0 < (one.clock_error or 0) < 60_000_000_000 for one in captures[:count])
    assert notes == ()


def test_a_report_that_cannot_be_captured_is_noted(place: Place) -> None:
    captures, notes = conduct(place, Silent)
    assert captures == []
    assert any("could not be captured" in one for one in notes)

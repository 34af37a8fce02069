"""Any history ends in exactly one verdict for each case, and no run hangs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tallystick.core.verdict import Outcome, Verdict
from tallystick.lab.cases import Settings, circuit_group, pair_groups
from tallystick.lab.control import Control, Kind
from tallystick.lab.coordinator import UNKNOWN_TEST, begin, step
from tallystick.lab.payload import make_body
from tallystick.lab.perf import Load, perf_groups
from tallystick.lab.state import (
    Action,
    Drain,
    Drained,
    Ended,
    Event,
    Garbled,
    Heard,
    Judged,
    Limits,
    Lost,
    Note,
    Phase,
    Plan,
    Prepare,
    Prepared,
    Say,
    State,
    Ticked,
    Unrouted,
)  # fmt: skip
from tallystick.lab.topology import Requested

GIVEN = {"P2P_NUM_MESSAGES": 2, "PUBSUB_NUM_MESSAGES": 1, "PUBSUB_NUM_RECEIVERS": 1}
LIMITS = Limits(enlist=5, answer=5, settle=1, ping=2)
NAMES = ("a", "b")


def make_plan(names: tuple[str, ...] = NAMES, **more: Any) -> Plan:
    settings_ = Settings("r", "x", given=GIVEN)
    groups = pair_groups(settings_)[:3]
    body = {"num_messages": 2, "message_bytes": 3}
    batches = circuit_group(
        settings_, "batches", Requested(num_consumers=2, single_role=False), body, batches=2
    )
    timed, _ = perf_groups(settings_, Load(messages=2, size=3))
    return Plan("r", (*groups, batches, timed), names, LIMITS, **more)


def expected_names(plan: Plan, names: tuple[str, ...]) -> list[str]:
    return [one.name for group in plan.groups for one in group.make(names, names)]


class Honest:
    """A client that does everything right, as a function of what it is told."""

    def __init__(self, name: str, instance: str | None = None) -> None:
        self.name = name
        self.instance = instance or f"instance of {name}"
        self.roles: dict[str, Control] = {}

    def reply(self, asked: Control) -> Control | None:
        match asked.kind:
            case Kind.INVITE if asked.fields.get("TEST_NAME") == UNKNOWN_TEST:
                return self.say(Kind.DECLINE, asked, REASON="no such test")
            case Kind.INVITE:
                key = {"CLIENT_PRIVATE_CONTROL_KEY": f"iop.control.{self.name}"}
                return self.say(Kind.ENLIST, asked, **key)
            case Kind.ASSIGN_ROLE:
                self.roles[asked.assignment] = asked
                return self.say(Kind.ACCEPT_ROLE, asked, CORRELATION_ID=asked.assignment)
            case Kind.START | Kind.STATUS_REQUEST if asked.assignment in self.roles:
                return self.report(asked)
            case Kind.CLOCK_SYNCH:
                return self.say(Kind.CLOCK_SYNCH, asked, T1=0, T2=0, T3=0)
        return None

    def say(self, kind: Kind, asked: Control, **fields: Any) -> Control:
        about = {"CLIENT_NAME": self.name, "CLIENT_INSTANCE": self.instance}
        return Control(kind, {**about, **fields}, {}, asked.assignment)

    def report(self, asked: Control) -> Control:
        role = self.roles[asked.assignment]
        if role.fields["ROLE"] == "SENDER":
            first, count = asked.fields.get("FIRST", 0), asked.fields.get("MESSAGE_COUNT", 0)
            sent = [self.sent(role, number) for number in range(first, first + count)]
            return self.tell(asked, first + count, sent)
        return self.tell(asked, asked.fields["WAIT_COUNT"], [])

    def sent(self, role: Control, number: int) -> dict[str, Any]:
        body = make_body(role.body["seed"], number, role.body["message_bytes"])
        return {"publisher": 0, "sequence": number, "sha256": sha256(body).hexdigest()}

    def tell(self, asked: Control, count: int, messages: list[dict[str, Any]]) -> Control:
        said = self.say(Kind.REPORT, asked, MESSAGE_COUNT=count, CORRELATION_ID=asked.assignment)
        body = {"messages": messages, "started_ns": ["1"], "ended_ns": ["2"]}
        return Control(said.kind, said.fields, body, said.assignment)


class AnyHistory(RuleBasedStateMachine):
    """The coordinator, and a world that may do anything at any time."""

    @initialize(parallel=st.integers(1, 3), named=st.booleans())
    def start(self, parallel: int, named: bool) -> None:
        self.plan = make_plan(NAMES if named else (), parallel=parallel)
        self.now = 0.0
        self.verdicts: list[Verdict] = []
        self.ended = self.terminated = 0
        self.asked: list[tuple[str, Control]] = []
        self.broker: list[Event] = []
        self.people = {name: Honest(name) for name in (*NAMES, "stranger")}
        self.people["twin"] = Honest("a", "another instance")
        self.state, actions = begin(self.plan, self.now)
        self.take(actions)

    def take(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            match action:
                case Say(control, client):
                    self.terminated += control.kind is Kind.TERMINATE
                    self.asked += [
                        (person, control)
                        for person in self.people
                        if client in ("", self.people[person].name)
                    ]
                case Prepare(number, _):
                    self.broker.append(Prepared(self.now, number))
                case Drain(number, _):
                    self.broker.append(Drained(self.now, number))
                case Judged(verdict):
                    self.verdicts.append(verdict)
                case Ended():
                    self.ended += 1
                case Note():
                    pass

    def happen(self, event: Event) -> None:
        self.state, actions = step(self.state, event)
        self.take(actions)

    @rule(data=st.data(), honest=st.sampled_from(["a", "b", "a", "b", "stranger", "twin"]))
    def someone_answers(self, data: st.DataObject, honest: str) -> None:
        mine = [control for person, control in self.asked if person == honest]
        if mine:
            asked = data.draw(st.sampled_from(mine[-6:]))
            reply = self.people[honest].reply(asked)
            if reply:
                self.happen(Heard(self.now, reply))

    @rule()
    def everyone_honest_answers(self) -> None:
        asked, self.asked = self.asked, []
        for person, control in asked:
            reply = self.people[person].reply(control) if person in NAMES else None
            if reply:
                self.happen(Heard(self.now, reply))

    @rule(
        kind=st.sampled_from(
            [Kind.REPORT, Kind.ACCEPT_ROLE, Kind.DECLINE, Kind.ENLIST, Kind.CLOCK_SYNCH]
        ),
        name=st.sampled_from(["a", "b", "nobody"]),
        place=st.sampled_from(
            ["r/case/0/0", "r/case/1/1", "r/invite/0", "", "r/case/x/y", "r/clock/9", "r/clock/x"]
        ),
        count=st.integers(0, 5),
    )
    def someone_talks_nonsense(self, kind: Kind, name: str, place: str, count: int) -> None:
        fields = {"CLIENT_NAME": name, "CLIENT_INSTANCE": f"instance of {name}", "REASON": "",
                  "MESSAGE_COUNT": count, "CLIENT_PRIVATE_CONTROL_KEY": "wrong",
                  "T1": 9, "T2": count, "T3": 1}  # fmt: skip
        self.happen(Heard(self.now, Control(kind, fields, {"messages": 3}, place)))

    @rule()
    def the_broker_is_done(self) -> None:
        if self.broker:
            self.happen(self.broker.pop(0))

    @rule()
    def something_comes_that_is_no_message(self) -> None:
        self.happen(Garbled(self.now, "no JSON"))

    @rule(number=st.integers(0, 3))
    def the_broker_refuses(self, number: int) -> None:
        self.happen(Prepared(self.now, number, "refused"))

    @rule(seconds=st.floats(0.01, 9))
    def time_goes_by(self, seconds: float) -> None:
        self.now += seconds
        self.happen(Ticked(self.now))

    @rule(name=st.sampled_from(["a", "b", "nobody"]))
    def a_client_dies(self, name: str) -> None:
        self.happen(Unrouted(self.now, name))

    @rule(really=st.integers(0, 9))
    def the_broker_dies(self, really: int) -> None:
        if really == 0:
            self.happen(Lost(self.now, "killed"))

    @invariant()
    def no_case_has_two_verdicts(self) -> None:
        names = [one.case for one in self.verdicts]
        assert len(names) == len(set(names))

    @invariant()
    def it_ends_once(self) -> None:
        assert self.ended <= 1
        assert self.terminated <= self.ended

    def teardown(self) -> None:
        for _ in range(200):
            self.now += 11
            self.happen(Ticked(self.now))
        assert self.ended == 1, "time alone must end any run"
        assert self.state.phase is Phase.ENDED
        names = {one.case for one in self.verdicts}
        people = tuple(dict.fromkeys((*self.plan.names, *sorted(self.state.members))))
        assert names == set(expected_names(self.plan, people))


AnyHistory.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
test_any_history_ends_in_exactly_one_verdict_per_case = AnyHistory.TestCase


def run_to_the_end(
    state: State, actions: tuple[Action, ...], people: dict[str, Any]
) -> tuple[list[Control], list[Verdict]]:
    """Let people answer everything at once; give what was said and judged."""
    said: list[Control] = []
    verdicts: list[Verdict] = []
    events: list[Event] = []
    queue = list(actions)
    now = 0.0
    while state.phase is not Phase.ENDED:
        for action in queue:
            match action:
                case Say(control, client):
                    said.append(control)
                    asked = [one for one in people.values() if client in ("", one.name)]
                    replies = [one.reply(control) for one in asked]
                    events += [Heard(now, reply) for reply in replies if reply]
                case Prepare(number, _):
                    events.append(Prepared(now, number))
                case Drain(number, _):
                    events.append(Drained(now, number))
                case Judged(verdict):
                    verdicts.append(verdict)
        now += 0.0 if events else 1.0
        state, made = step(state, events.pop(0) if events else Ticked(now))
        queue = list(made)
    said += [action.control for action in queue if isinstance(action, Say)]
    verdicts += [action.verdict for action in queue if isinstance(action, Judged)]
    return said, verdicts


def order_of(kinds: Sequence[Kind]) -> list[Kind]:
    return list(dict.fromkeys(kinds))


def test_messages_go_out_in_the_order_of_use_case_5() -> None:
    """IOP-25, IOP-26, IOP-28, IOP-30, IOP-34, IOP-49: the receiver is asked last."""
    said, verdicts = run_to_the_end(*begin(make_plan(), 0.0), {n: Honest(n) for n in NAMES})
    kinds = [one.kind for one in said if one.kind is not Kind.CLOCK_SYNCH]
    assert order_of(kinds) == [
        Kind.INVITE, Kind.ASSIGN_ROLE, Kind.START, Kind.STATUS_REQUEST, Kind.TERMINATE,
    ]  # fmt: skip
    invites = [one for one in said if one.kind is Kind.INVITE]
    assert "TEST_NAME" not in invites[0].fields, "the compulsory invite has no such field"
    assert [one.fields["TEST_NAME"] for one in invites[1:4]] == [
        UNKNOWN_TEST, "TC1_DummyRun", "TC2_BasicP2P",
    ]  # fmt: skip
    dummy = [one for one in verdicts if "TC1" in one.case]
    assert [one.outcome for one in dummy] == [Outcome.PASSED] * 4, "IOP-50"
    assert said[-1].kind is Kind.TERMINATE


class Declining(Honest):
    def reply(self, asked: Control) -> Control | None:
        if asked.fields.get("TEST_NAME") == "TC2_BasicP2P" and asked.kind is Kind.INVITE:
            return self.say(Kind.DECLINE, asked, REASON="no queues")
        return super().reply(asked)


class Agreeable(Honest):
    def reply(self, asked: Control) -> Control | None:
        if asked.kind is Kind.INVITE:
            key = {"CLIENT_PRIVATE_CONTROL_KEY": f"iop.control.{self.name}"}
            return self.say(Kind.ENLIST, asked, **key)
        return super().reply(asked)


class Forgetful(Honest):
    def reply(self, asked: Control) -> Control | None:
        if asked.kind is Kind.INVITE and asked.fields.get("TEST_NAME") == "TC2_BasicP2P":
            return None
        return super().reply(asked)


def outcomes(people: dict[str, Any], part: str, **more: Any) -> dict[str, Outcome]:
    _, verdicts = run_to_the_end(*begin(make_plan(**more), 0.0), people)
    return {one.case: one.outcome for one in verdicts if part in one.case}


def test_a_client_that_declined_counts_as_the_plan_says() -> None:
    people = {"a": Honest("a"), "b": Declining("b")}
    found = outcomes(people, "TC2")
    assert found.pop("x/TC2_BasicP2P/a/a") is not Outcome.UNSUPPORTED
    assert set(found.values()) == {Outcome.UNSUPPORTED}
    people = {"a": Honest("a"), "b": Declining("b")}
    assert outcomes(people, "TC2_BasicP2P/b", opt_out=Outcome.FAILED) == {
        "x/TC2_BasicP2P/b/a": Outcome.FAILED,
        "x/TC2_BasicP2P/b/b": Outcome.FAILED,
    }


class Limited(Honest):
    """A client whose command line asks for what its library cannot express."""

    def say(self, kind: Kind, asked: Control, **fields: Any) -> Control:
        about = {"given": {"immediate": "true"}, "cannot": {"immediate": "no such argument"}}
        said = super().say(kind, asked, **fields)
        return replace(said, body=about) if kind is Kind.ENLIST else said


def test_what_a_client_cannot_do_is_not_asked_of_it_by_its_command_line() -> None:
    """IOP-21: the command line counts where the case says nothing."""
    found = outcomes({"a": Honest("a"), "b": Limited("b")}, "TC2_BasicP2P")
    declined = {case for case, outcome in found.items() if outcome is Outcome.UNSUPPORTED}
    assert declined == {"x/TC2_BasicP2P/b/a", "x/TC2_BasicP2P/b/b"}


def test_a_client_that_did_not_enlist_fails_every_combination_with_it() -> None:
    """Use case 5: failures are logged for combinations that were not tested (IOP-26)."""
    found = outcomes({"a": Honest("a")}, "TC1")
    assert found["x/TC1_DummyRun/a/a"] is Outcome.PASSED
    assert [found[f"x/TC1_DummyRun/{pair}"] for pair in ("a/b", "b/a", "b/b")] == [
        Outcome.FAILED
    ] * 3
    forgot = outcomes({"a": Honest("a"), "b": Forgetful("b")}, "TC2_BasicP2P/b")
    assert set(forgot.values()) == {Outcome.FAILED}


def test_who_enlists_for_a_test_that_does_not_exist_is_not_believed() -> None:
    found = outcomes({"a": Honest("a"), "b": Agreeable("b")}, "TC1")
    assert found["x/TC1_DummyRun/a/b"] is Outcome.ERRORED
    assert found["x/TC1_DummyRun/a/a"] is Outcome.PASSED


def test_who_speaks_another_protocol_is_told_and_takes_no_part() -> None:
    state, actions = begin(make_plan(), 0.0)
    (invite,) = [one.control for one in actions if isinstance(one, Say)]
    reply = Honest("old").reply(invite)
    assert reply is not None
    state, actions = step(state, Heard(0.0, replace(reply, body={**reply.body, "protocol": 2})))
    assert not state.members
    assert Note("old uses protocol 2, not 4, and does not take part") in actions


def test_who_enlists_late_is_told_and_takes_no_part() -> None:
    state, actions = begin(make_plan(), 0.0)
    (invite,) = [one.control for one in actions if isinstance(one, Say)]
    for name in (*NAMES, "stranger"):
        reply = Honest(name).reply(invite)
        assert reply is not None
        state, actions = step(state, Heard(0.0, reply))
    assert set(state.members) == set(NAMES)
    assert Note("stranger enlisted too late and does not take part") in actions


def test_two_clients_of_one_name_error_its_cases() -> None:
    """IOP-27, IOP-35: a name is one client's."""
    people = {"a": Honest("a"), "b": Honest("b"), "c": Honest("b", "another")}
    found = outcomes(people, "TC1")
    assert found["x/TC1_DummyRun/a/b"] is Outcome.ERRORED
    assert found["x/TC1_DummyRun/a/a"] is Outcome.PASSED


def test_a_wrong_private_key_is_an_error() -> None:
    """IOP-27, IOP-36."""
    plan = make_plan(("a",))
    state, _ = begin(plan, 0.0)
    fields = {"CLIENT_NAME": "a", "CLIENT_INSTANCE": "1", "CLIENT_PRIVATE_CONTROL_KEY": "mine"}
    state, _ = step(state, Heard(0.0, Control(Kind.ENLIST, fields, {}, "r/enlist")))
    assert "iop.control.a" in state.members["a"].trouble


def test_what_is_no_control_message_is_told_and_counted() -> None:
    state, _ = begin(make_plan(("a",)), 0.0)
    notes = []
    for number in range(30):
        state, actions = step(state, Garbled(0.0, f"fault {number}"))
        notes += [one.text for one in actions if isinstance(one, Note)]
    assert len(notes) == 20
    assert "fault 0" in notes[0]
    _, actions = step(state, Lost(1.0, "killed"))
    (total,) = [one.text for one in actions if isinstance(one, Note)]
    assert total.startswith("30 messages")

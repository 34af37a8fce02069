"""The coordinator as a pure function (specification, use case 5; IOP-22, 25 to 31, 34, 48, 49).

It sends the compulsory invite, then an invite to a test that does not exist, which every client
must decline. For each group of cases it then sends a named invite and runs the instances, several
at a time (`lab/stages.py`). At the end it sends TERMINATE (IOP-34). Every wait has a deadline. Each
instance always gets exactly one verdict: a client that is late, stopped or enlisted twice makes its
cases errored; a client that did not enlist makes them failed; a client that declined counts as the
plan says; a lost broker makes the remaining cases errored.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tallystick.core.verdict import Outcome
from tallystick.lab.assignment import complete, why_not
from tallystick.lab.control import Control, Kind, Role
from tallystick.lab.instance import Finding, Instance
from tallystick.lab.stages import drained, finish, give_up_on, give_verdict, prepared, talk, timed
from tallystick.lab.state import (
    Action,
    Drained,
    Ended,
    Event,
    Garbled,
    Heard,
    Live,
    Lost,
    Member,
    Note,
    Phase,
    Plan,
    Prepare,
    Prepared,
    Say,
    Stage,
    State,
    Ticked,
    Unrouted,
)  # fmt: skip

__all__ = ["UNKNOWN_TEST", "begin", "step"]

UNKNOWN_TEST: Final = "TC0_NoSuchTest"
PROTOCOL: Final = 4
"""The version of docs/reference/lab-protocol.md."""
_SILENT: Final = "did not answer in time"
_NOTED: Final = 20
"""Messages that broke the protocol are told one by one up to here, then only counted."""

Moved = tuple[State, tuple[Action, ...]]


def begin(plan: Plan, at: float) -> Moved:
    """Start a run with the compulsory invite: it has no TEST_NAME at all (IOP-26)."""
    state = State(plan, at, until=at + plan.limits.enlist, pinged=at)
    return state, (Say(Control(Kind.INVITE, assignment=f"{plan.run}/enlist")),)


def step(state: State, event: Event) -> Moved:
    """Handle one event; return the new state and the actions."""
    if state.phase is Phase.ENDED:
        return state, ()
    state = replace(state, at=max(state.at, event.at))
    actions: list[Action] = []
    match event:
        case Heard(_, control, stamp):
            state = _hear(state, control, stamp, actions)
        case Garbled(_, reason):
            state = replace(state, garbled=state.garbled + 1)
            if state.garbled <= _NOTED:
                actions.append(Note(f"a message to the coordinator was dropped: {reason}"))
        case Ticked():
            state = _tick(state, actions)
        case Prepared(_, number, refusal):
            state = prepared(state, number, refusal, actions)
        case Drained(_, number, left):
            state = drained(state, number, left, actions)
        case Unrouted(_, client):
            state = _trouble(state, client, "has stopped", actions)
        case Lost(_, reason):
            return _lose(state, reason)
    return _advance(state, actions), tuple(actions)


def _hear(state: State, control: Control, stamp: int, actions: list[Action]) -> State:
    name, instance = control.client, str(control.fields["CLIENT_INSTANCE"])
    known = state.members.get(name)
    if known and known.instance != instance:
        return _trouble(state, name, "enlisted twice under one name", actions)
    if control.kind is Kind.ENLIST and control.assignment == f"{state.plan.run}/enlist":
        return state if known else _enlist(state, name, instance, control, actions)
    if known is None:
        return state
    if control.kind in (Kind.ENLIST, Kind.DECLINE) and control.assignment == _invite_of(state):
        return _answer(state, name, control)
    if control.kind is Kind.CLOCK_SYNCH:
        return timed(state, control, stamp, actions)
    return talk(state, control, actions)


def _enlist(
    state: State, name: str, instance: str, control: Control, actions: list[Action]
) -> State:
    """Enlist a client; a late one takes no part, because earlier cases lack its verdict."""
    if state.phase is not Phase.ENLISTING:
        actions.append(Note(f"{name} enlisted too late and does not take part"))
        return state
    protocol = control.body.get("protocol", PROTOCOL)
    if protocol != PROTOCOL:
        actions.append(
            Note(f"{name} uses protocol {protocol}, not {PROTOCOL}, and does not take part")
        )
        return state
    key = f"{state.plan.key}.{name}"
    wrong = control.fields["CLIENT_PRIVATE_CONTROL_KEY"] != key
    member = Member(name, instance, control.body, f"has a key other than {key}" if wrong else "")
    return replace(state, members={**state.members, name: member})


def _invite_of(state: State) -> str:
    return f"{state.plan.run}/invite/{state.group}"


def _answer(state: State, name: str, control: Control) -> State:
    if control.kind is Kind.DECLINE:
        refusals = dict.fromkeys(Role, str(control.fields["REASON"]) or "no reason given")
    else:
        body = state.plan.groups[state.group].body if state.group >= 0 else {}
        about = state.members[name].about
        asked = complete(body, about)
        refusals = {role: why_not(role, asked, about) for role in Role}
    return replace(state, answers={**state.answers, name: refusals})


def _trouble(state: State, client: str, reason: str, actions: list[Action]) -> State:
    """Note that a client takes no further part, and end everything that waits for it."""
    member = state.members.get(client)
    if member is None or member.trouble:
        return state
    fallen = replace(member, trouble=reason)
    state = replace(state, members={**state.members, client: fallen})
    for number, live in list(state.live.items()):
        parts = live.instance.parts
        if live.stage is not Stage.DRAINING and any(
            parts[at].client == client for at in range(len(parts)) if at not in live.over
        ):
            finding = Finding(Outcome.ERRORED, f"{client} {reason}")
            state = give_up_on(state, number, finding, actions)
    return state


def _healthy(state: State) -> list[str]:
    return [name for name, member in state.members.items() if not member.trouble]


def _tick(state: State, actions: list[Action]) -> State:
    limits = state.plan.limits
    if state.phase is not Phase.ENLISTING and state.at >= state.pinged + limits.ping:
        state = replace(state, pinged=state.at)
        actions += [Say(Control(Kind.CLOCK_SYNCH, {"T1": 0}), name) for name in _healthy(state)]
    for number, live in list(state.live.items()):
        if number in state.live and state.at >= live.until:
            state = _overdue(state, number, state.live[number], actions)
    return state


def _advance(state: State, actions: list[Action]) -> State:
    """Go on to the next phase, and the next, as far as can be."""
    while True:
        before = state
        match state.phase:
            case Phase.ENLISTING:
                expected = state.plan.names
                if state.at >= state.until or (expected and set(expected) <= set(state.members)):
                    state = _invite(replace(state, phase=Phase.PROBING), UNKNOWN_TEST, actions)
            case Phase.PROBING:
                if _answered(state):
                    state = _next_group(_check_probe(state, actions), actions)
            case Phase.INVITING:
                if _answered(state):
                    state = replace(state, phase=Phase.RUNNING, waiting=_make(state))
            case Phase.RUNNING:
                state = _fill(state, actions)
                if not state.live and not state.waiting:
                    state = _next_group(state, actions)
            case Phase.ENDED:
                return state
        if state is before or (state.phase is Phase.RUNNING and before.phase is Phase.RUNNING):
            return state


def _invite(state: State, test: str, actions: list[Action]) -> State:
    state = replace(state, answers={}, until=state.at + state.plan.limits.answer)
    fields: dict[str, object] = {"TEST_NAME": test}
    body = {}
    if state.group >= 0:
        group = state.plan.groups[state.group]
        fields |= group.fields
        body = dict(group.body)
    actions.append(Say(Control(Kind.INVITE, fields, body, _invite_of(state))))
    return state


def _answered(state: State) -> bool:
    return state.at >= state.until or set(_healthy(state)) <= set(state.answers)


def _check_probe(state: State, actions: list[Action]) -> State:
    """Reject a client that enlists for a test that does not exist: it would accept any test."""
    for name in _healthy(state):
        refusals = state.answers.get(name)
        if refusals is None:
            state = _trouble(state, name, _SILENT, actions)
        elif not all(refusals.values()):
            state = _trouble(state, name, "enlisted for a test that does not exist", actions)
    return state


def _next_group(state: State, actions: list[Action]) -> State:
    state = replace(state, group=state.group + 1)
    if state.group < len(state.plan.groups):
        state = replace(state, phase=Phase.INVITING)
        return _invite(state, state.plan.groups[state.group].test, actions)
    if state.plan.terminate:
        actions.append(Say(Control(Kind.TERMINATE, assignment=f"{state.plan.run}/end")))
    return _end(state, actions)


def _end(state: State, actions: list[Action]) -> State:
    if state.garbled:
        actions.append(Note(f"{state.garbled} messages to the coordinator were dropped"))
    actions.append(Ended())
    return replace(state, phase=Phase.ENDED, live={}, waiting=())


def _make(state: State) -> tuple[Instance, ...]:
    group = state.plan.groups[state.group]
    everyone = list(dict.fromkeys((*state.plan.names, *sorted(state.members))))
    if group.everyone:
        return tuple(group.make(everyone, everyone))
    able = {
        role: [
            name
            for name in everyone
            if name in _healthy(state) and state.answers.get(name, {}).get(role) == ""
        ]
        for role in Role
    }
    return tuple(group.make(able[Role.SENDER], able[Role.RECEIVER]))


def _fill(state: State, actions: list[Action]) -> State:
    """Start instances while there is room; those with an obstacle get their verdict at once."""
    while state.waiting and len(state.live) < state.plan.parallel:
        instance, *rest = state.waiting
        state = replace(state, waiting=tuple(rest))
        obstacle = _obstacle(state, instance)
        if obstacle:
            actions.append(give_verdict(instance, obstacle, 0.0))
            continue
        number = state.started
        if instance.note:
            actions.append(Note(f"{instance.name}: {instance.note}"))
        until = state.at + state.plan.limits.answer
        live = Live(instance, Stage.PREPARING, state.at, until)
        state = replace(state, started=number + 1, live={**state.live, number: live})
        actions.append(Prepare(number, instance.queues))
    return state


def _obstacle(state: State, instance: Instance) -> Finding | None:
    if instance.fault:
        return Finding(Outcome.ERRORED, instance.fault)
    for part in instance.parts:
        member = state.members.get(part.client)
        if member is None:
            return Finding(Outcome.FAILED, f"{part.client} did not enlist")
        if member.trouble:
            return Finding(Outcome.ERRORED, f"{part.client} {member.trouble}")
        if part.client not in state.answers:
            return Finding(Outcome.FAILED, f"{part.client} did not enlist for {instance.test}")
        reason = state.answers[part.client][part.role]
        if reason:
            why = f"{part.client} declined the role {part.role.lower()}: {reason}"
            return Finding(state.plan.opt_out, why)
    return None


def _overdue(state: State, number: int, live: Live, actions: list[Action]) -> State:
    """End a stage that took too long: by the clients' fault, or by the broker's."""
    if live.stage in (Stage.PREPARING, Stage.DRAINING):
        why = f"the broker did not finish the stage {live.stage.name.lower()}"
        return finish(state, number, live.give_up or Finding(Outcome.ERRORED, why), actions)
    late = _names(live.instance.parts[at].client for at in live.pending)
    for name in late:
        state = _trouble(state, name, f"{_SILENT} ({live.stage.name.lower()})", actions)
    if number in state.live and state.live[number].stage is not Stage.DRAINING:
        finding = Finding(Outcome.ERRORED, f"{', '.join(late)} {_SILENT}")
        state = give_up_on(state, number, finding, actions)
    return state


def _names(names: Iterable[str]) -> list[str]:
    return sorted(set(names))


def _lose(state: State, reason: str) -> Moved:
    """Give a verdict to every case without one: the broker is lost."""
    finding = Finding(Outcome.ERRORED, f"the connection to the broker is lost: {reason}")
    actions: list[Action] = [
        give_verdict(live.instance, live.give_up or finding, state.at - live.began)
        for live in state.live.values()
    ]
    left = list(state.waiting)
    first = state.group + (state.phase is Phase.RUNNING)
    for group in range(max(0, first), len(state.plan.groups)):
        left += _make(replace(state, group=group))
    actions += [give_verdict(instance, finding, 0.0) for instance in left]
    state = _end(state, actions)
    return state, tuple(actions)

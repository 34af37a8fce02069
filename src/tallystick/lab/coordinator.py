"""The coordinator as a pure function (specification, use case 5; IOP-22, 25 to 31, 34, 48, 49).

Compulsory invite; an invite to a test that does not exist, which every client must decline; then
for each group of cases a named invite, and its instances, several at a time:

    PREPARING   the queues are made (IOP-44)
    ASSIGNING   ASSIGN_ROLE to every part, until all have accepted (IOP-28, 29)
    SENDING     START to every sender, until all have reported (IOP-30, 31)
    COLLECTING  STATUS_REQUEST to every receiver, until all have reported (IOP-49)
    DRAINING    the queues are deleted; then the judge speaks

and TERMINATE at the end (IOP-34). Every wait has a deadline. Whatever happens, each instance gets
exactly one verdict: a client that is late, dead or joined twice errors its cases, one that did not
enlist fails them, one that declined counts as the plan says, a lost broker errors what is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tallystick.core.verdict import Outcome, Verdict
from tallystick.lab.control import Control, Kind, Role
from tallystick.lab.instance import Evidence, Finding, Instance
from tallystick.lab.state import (
    Action, Drain, Drained, Ended, Event, Heard, Judged, Live, Lost, Member, Note, Phase, Plan,
    Prepare, Prepared, Say, Stage, State, Ticked, Unrouted,
)  # fmt: skip

__all__ = ["UNKNOWN_TEST", "begin", "step"]

UNKNOWN_TEST: Final = "TC0_NoSuchTest"
_ROLES: Final = frozenset(Role)
_POLL: Final = 100
_SILENT: Final = "did not answer in time"

Moved = tuple[State, tuple[Action, ...]]


def begin(plan: Plan, at: float) -> Moved:
    """Start a run with the compulsory invite: it has no TEST_NAME at all (IOP-26)."""
    state = State(plan, at, until=at + plan.limits.enlist, pinged=at)
    return state, (Say(Control(Kind.INVITE, assignment=f"{plan.run}/enlist")),)


def step(state: State, event: Event) -> Moved:
    """Take one event in; give the new state and what is to be done."""
    if state.phase is Phase.ENDED:
        return state, ()
    state = replace(state, at=max(state.at, event.at))
    actions: list[Action] = []
    match event:
        case Heard(_, control):
            state = _hear(state, control, actions)
        case Ticked():
            state = _tick(state, actions)
        case Prepared(_, number, refusal):
            state = _prepared(state, number, refusal, actions)
        case Drained(_, number, left):
            state = _drained(state, number, left, actions)
        case Unrouted(_, client):
            state = _trouble(state, client, "has gone", actions)
        case Lost(_, reason):
            return _lose(state, reason)
    return _advance(state, actions), tuple(actions)


# --- who is there ------------------------------------------------------------------------------


def _hear(state: State, control: Control, actions: list[Action]) -> State:
    name, instance = control.client, str(control.fields["CLIENT_INSTANCE"])
    known = state.members.get(name)
    if known and known.instance != instance:
        return _trouble(state, name, "joined twice under one name", actions)
    if control.kind is Kind.ENLIST and control.assignment == f"{state.plan.run}/enlist":
        return state if known else _enlist(state, name, instance, control)
    if known is None:
        return state
    if control.kind in (Kind.ENLIST, Kind.DECLINE) and control.assignment == _invite_of(state):
        return _answer(state, name, control)
    return _talk(state, control, actions)


def _enlist(state: State, name: str, instance: str, control: Control) -> State:
    key = f"{state.plan.key}.{name}"
    wrong = control.fields["CLIENT_PRIVATE_CONTROL_KEY"] != key
    member = Member(name, instance, control.body, f"has a key that is not {key}" if wrong else "")
    return replace(state, members={**state.members, name: member})


def _invite_of(state: State) -> str:
    return f"{state.plan.run}/invite/{state.group}"


def _answer(state: State, name: str, control: Control) -> State:
    reason = str(control.fields.get("REASON", ""))
    named = str(control.fields.get("ROLES", ",".join(_ROLES))).split(",")
    roles = frozenset(role for role in _ROLES if role in named)
    if control.kind is Kind.DECLINE:
        roles = frozenset()
    return replace(state, answers={**state.answers, name: (roles, reason)})


def _trouble(state: State, client: str, reason: str, actions: list[Action]) -> State:
    """Note that a client can play no part any more, and end what waits for it."""
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
            state = _give_up(state, number, finding, actions)
    return state


def _healthy(state: State) -> list[str]:
    return [name for name, member in state.members.items() if not member.trouble]


# --- phases ------------------------------------------------------------------------------------


def _tick(state: State, actions: list[Action]) -> State:
    limits = state.plan.limits
    if state.phase is not Phase.ENLISTING and state.at >= state.pinged + limits.ping:
        state = replace(state, pinged=state.at)
        stamp = {"T1": int(state.at * 1e9)}
        actions += [Say(Control(Kind.CLOCK_SYNCH, stamp), name) for name in _healthy(state)]
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
    """Who takes part in a test that does not exist would take part in anything."""
    for name in _healthy(state):
        roles, _ = state.answers.get(name, (None, ""))
        if roles is None:
            state = _trouble(state, name, _SILENT, actions)
        elif roles:
            state = _trouble(state, name, "enlisted for a test that does not exist", actions)
    return state


def _next_group(state: State, actions: list[Action]) -> State:
    state = replace(state, group=state.group + 1)
    if state.group < len(state.plan.groups):
        state = replace(state, phase=Phase.INVITING)
        return _invite(state, state.plan.groups[state.group].test, actions)
    if state.plan.terminate:
        actions.append(Say(Control(Kind.TERMINATE, assignment=f"{state.plan.run}/end")))
    actions.append(Ended())
    return replace(state, phase=Phase.ENDED)


def _make(state: State) -> tuple[Instance, ...]:
    group = state.plan.groups[state.group]
    everyone = list(dict.fromkeys((*state.plan.names, *sorted(state.members))))
    if group.everyone:
        return tuple(group.make(everyone, everyone))
    able = {
        role: [
            name
            for name in everyone
            if name in _healthy(state) and role in state.answers.get(name, ((), ""))[0]
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
            actions.append(_verdict(instance, obstacle, 0.0))
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
        roles, reason = state.answers[part.client]
        if part.role not in roles:
            why = f"{part.client} declined to be {part.role.lower()}: {reason}"
            return Finding(state.plan.opt_out, why)
    return None


# --- one instance ------------------------------------------------------------------------------


def _verdict(instance: Instance, finding: Finding, seconds: float) -> Judged:
    return Judged(
        Verdict(
            instance.name, finding.outcome, finding.reason, finding.differences, seconds * 1000
        )
    )


def _keep(state: State, number: int, live: Live) -> State:
    return replace(state, live={**state.live, number: live})


def _assignment(state: State, number: int, part: int) -> str:
    return f"{state.plan.run}/case/{number}/{part}"


def _prepared(state: State, number: int, refusal: str, actions: list[Action]) -> State:
    live = state.live.get(number)
    if live is None or live.stage is not Stage.PREPARING:
        return state
    if refusal:
        return _give_up(state, number, Finding(Outcome.ERRORED, refusal), actions)
    parts = live.instance.parts
    for at, part in enumerate(parts):
        fields = {"TEST_NAME": live.instance.test, "ROLE": part.role.value, **part.fields}
        control = Control(Kind.ASSIGN_ROLE, fields, part.body, _assignment(state, number, at))
        actions.append(Say(control, part.client))
    until = state.at + state.plan.limits.answer
    live = replace(live, stage=Stage.ASSIGNING, pending=frozenset(range(len(parts))), until=until)
    return _keep(state, number, live)


def _talk(state: State, control: Control, actions: list[Action]) -> State:
    """Take in what a client says about an instance; what is out of turn is of no account."""
    run, _, rest = control.assignment.partition("/case/")
    number_text, _, part_text = rest.partition("/")
    if run != state.plan.run or not (number_text.isdecimal() and part_text.isdecimal()):
        return state
    number, part = int(number_text), int(part_text)
    live = state.live.get(number)
    if live is None or part not in live.pending:
        return state
    if live.instance.parts[part].client != control.client:
        return state
    match live.stage, control.kind:
        case Stage.ASSIGNING, Kind.ACCEPT_ROLE:
            live = replace(live, reports={**live.reports, part: control})
        case Stage.ASSIGNING, Kind.DECLINE:
            why = f"{control.client} declined: {control.fields['REASON']}"
            return _give_up(state, number, Finding(state.plan.opt_out, why), actions)
        case Stage.ASSIGNING, Kind.REPORT:
            reports = {**live.reports, part: control}
            live = replace(live, reports=reports, over=live.over | {part})
        case (Stage.SENDING | Stage.COLLECTING), Kind.REPORT:
            over = live.over | {part} if live.final else live.over
            live = replace(live, reports={**live.reports, part: control}, over=over)
        case _:
            return state
    live = replace(live, pending=live.pending - {part})
    state = _keep(state, number, live)
    return state if live.pending else _go_on(state, number, live, actions)


def _go_on(state: State, number: int, live: Live, actions: list[Action]) -> State:
    """Take the next stage once nothing is pending in this one."""
    match live.stage:
        case Stage.ASSIGNING if not live.over:
            return _start(state, number, replace(live, sending_since=state.at), actions)
        case Stage.ASSIGNING:
            return _collect(state, number, live, actions, final=True)
        case Stage.SENDING:
            return _collect(state, number, live, actions, final=_last(state, live) and not _open(live))
        case Stage.COLLECTING if live.final:
            return _drain(state, number, live, actions)
        case Stage.COLLECTING if _open(live) and not _all_there(live) and state.at < live.until:
            return _collect(state, number, live, actions, final=False)
        case Stage.COLLECTING if _last(state, live):
            return _collect(state, number, live, actions, final=True)
    return _start(state, number, replace(live, batch=live.batch + 1), actions)


def _open(live: Live) -> bool:
    """Say whether receivers compete, so that only their sum is known."""
    return any(part.share is None for part in live.instance.parts)


def _all_there(live: Live) -> bool:
    received = sum(
        int(live.reports[at].fields["MESSAGE_COUNT"])
        for at, part in enumerate(live.instance.parts)
        if part.role is Role.RECEIVER
    )
    return received >= live.instance.total * (live.batch + 1)


def _last(state: State, live: Live) -> bool:
    if live.instance.duration:
        return state.at >= live.sending_since + live.instance.duration
    return live.batch + 1 >= live.instance.batches


def _start(state: State, number: int, live: Live, actions: list[Action]) -> State:
    instance = live.instance
    final = instance.batches == 1 and not instance.duration
    senders = [at for at, part in enumerate(instance.parts) if part.role is Role.SENDER]
    for at in senders:
        fields = {"FIRST": live.batch * instance.messages, "MESSAGE_COUNT": instance.messages,
                  "FINAL": final}  # fmt: skip
        control = Control(Kind.START, fields, {}, _assignment(state, number, at))
        actions.append(Say(control, instance.parts[at].client))
    live = replace(
        live, stage=Stage.SENDING, pending=frozenset(senders), final=final,
        until=state.at + state.plan.limits.answer,
    )  # fmt: skip
    return _keep(state, number, live)


def _collect(
    state: State, number: int, live: Live, actions: list[Action], *, final: bool
) -> State:
    """Ask for reports: of receivers after a batch, of all that still hold a role at the end."""
    parts = live.instance.parts
    asked = [
        at for at, part in enumerate(parts)
        if at not in live.over and (final or part.role is Role.RECEIVER)
    ]  # fmt: skip
    settle = int(state.plan.limits.settle * 1000)
    for at in asked:
        share = parts[at].share
        fields = {"WAIT_COUNT": (share or 0) * (live.batch + 1), "FINAL": final,
                  "WAIT_MS": _POLL if share is None else settle}  # fmt: skip
        if share is None and not final:
            fields["WAIT_COUNT"] = live.instance.total * (live.batch + 1)
        control = Control(Kind.STATUS_REQUEST, fields, {}, _assignment(state, number, at))
        actions.append(Say(control, parts[at].client))
    again = live.stage is Stage.COLLECTING and not final
    until = state.at + state.plan.limits.answer + state.plan.limits.settle
    live = replace(
        live, stage=Stage.COLLECTING, pending=frozenset(asked), final=final,
        until=live.until if again else until,
    )  # fmt: skip
    state = _keep(state, number, live)
    return state if asked else _go_on(state, number, live, actions)


def _drain(state: State, number: int, live: Live, actions: list[Action]) -> State:
    actions.append(Drain(number, live.instance.queues))
    until = state.at + state.plan.limits.answer
    return _keep(state, number, replace(live, stage=Stage.DRAINING, pending=frozenset(), until=until))


def _drained(state: State, number: int, left: int, actions: list[Action]) -> State:
    live = state.live.get(number)
    if live is None or live.stage is not Stage.DRAINING:
        return state
    finding = live.give_up or live.instance.judge(
        live.instance, Evidence(live.reports, left, live.batch + 1)
    )
    if finding.note:
        actions.append(Note(f"{live.instance.name}: {finding.note}"))
    return _finish(state, number, finding, actions)


def _finish(state: State, number: int, finding: Finding, actions: list[Action]) -> State:
    live = state.live[number]
    actions.append(_verdict(live.instance, finding, state.at - live.began))
    return replace(state, live={at: one for at, one in state.live.items() if at != number})


def _give_up(state: State, number: int, finding: Finding, actions: list[Action]) -> State:
    """Call off what still holds a role, and clear up."""
    live = state.live[number]
    for at, part in enumerate(live.instance.parts):
        if live.stage is not Stage.PREPARING and at not in live.over:
            if not state.members[part.client].trouble:
                fields = {"WAIT_COUNT": 0, "WAIT_MS": 0, "FINAL": True}
                control = Control(Kind.STATUS_REQUEST, fields, {}, _assignment(state, number, at))
                actions.append(Say(control, part.client))
    return _drain(state, number, replace(live, give_up=live.give_up or finding), actions)


def _overdue(state: State, number: int, live: Live, actions: list[Action]) -> State:
    """End a stage that took too long: by the clients' fault, or by the broker's."""
    if live.stage in (Stage.PREPARING, Stage.DRAINING):
        why = f"the broker did not finish {live.stage.name.lower()}"
        return _finish(state, number, live.give_up or Finding(Outcome.ERRORED, why), actions)
    late = _names(live.instance.parts[at].client for at in live.pending)
    for name in late:
        state = _trouble(state, name, f"{_SILENT} ({live.stage.name.lower()})", actions)
    if number in state.live and state.live[number].stage is not Stage.DRAINING:
        finding = Finding(Outcome.ERRORED, f"{', '.join(late)} {_SILENT}")
        state = _give_up(state, number, finding, actions)
    return state


def _names(names: Iterable[str]) -> list[str]:
    return sorted(set(names))


def _lose(state: State, reason: str) -> Moved:
    """Give every case that has no verdict one: the broker is gone."""
    finding = Finding(Outcome.ERRORED, f"the broker is gone: {reason}")
    actions: list[Action] = [
        _verdict(live.instance, live.give_up or finding, state.at - live.began)
        for live in state.live.values()
    ]
    left = list(state.waiting)
    first = state.group + (state.phase is Phase.RUNNING)
    for group in range(max(0, first), len(state.plan.groups)):
        left += _make(replace(state, group=group))
    actions += [_verdict(instance, finding, 0.0) for instance in left]
    actions.append(Ended())
    return replace(state, phase=Phase.ENDED, live={}, waiting=()), tuple(actions)

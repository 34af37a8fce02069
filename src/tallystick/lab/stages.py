"""Move one instance from stage to stage: pure functions of the coordinator's state.

    PREPARING   the queues are made (IOP-44)
    TIMING      of a timed one: the clocks are asked, before and after (`lab/timing.py`)
    ASSIGNING   ASSIGN_ROLE to every part, until all have accepted (IOP-28, 29)
    SENDING     START to every sender, until all have reported (IOP-30, 31)
    COLLECTING  STATUS_REQUEST to every receiver, until all have reported (IOP-49)
    DRAINING    the queues are deleted; then the judge decides

A circuit with batches goes from COLLECTING back to SENDING. Receivers that share a queue are asked
until their sum is right. A message of a client at the wrong stage is ignored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tallystick.core.verdict import Outcome, Verdict
from tallystick.lab.assignment import instruct
from tallystick.lab.control import Control, Kind, Role
from tallystick.lab.instance import BROKEN, Evidence, Finding, Instance, broken_by
from tallystick.lab.reports import join_reports, tally_report
from tallystick.lab.state import Action, Drain, Judged, Live, Note, Say, Stage, State
from tallystick.lab.timing import hear_clock, shift_of, start_timing

__all__ = [
    "call_off", "drained", "finish", "give_up_on", "give_verdict", "prepared", "talk", "timed",
]  # fmt: skip

_POLL: Final = 100


def give_verdict(instance: Instance, finding: Finding, seconds: float) -> Judged:
    """Make a finding the verdict on an instance."""
    return Judged(
        Verdict(
            instance.name,
            finding.outcome,
            finding.reason,
            finding.differences,
            seconds * 1000,
            finding.measured,
        )
    )


def _keep(state: State, number: int, live: Live) -> State:
    return replace(state, live={**state.live, number: live})


def _assignment(state: State, number: int, part: int) -> str:
    return f"{state.plan.run}/case/{number}/{part}"


def prepared(state: State, number: int, refusal: str, actions: list[Action]) -> State:
    """Ask the clocks or assign the roles once the queues are there."""
    live = state.live.get(number)
    if live is None or live.stage is not Stage.PREPARING:
        return state
    if refusal:
        due = live.instance.refusal
        right = due and refusal.startswith(due)
        outcome = Outcome.PASSED if right else Outcome.ERRORED
        return give_up_on(
            state, number, Finding(outcome, f"the broker rejected a queue: {refusal}"), actions
        )
    if live.instance.timed:
        return _time(state, number, live, actions)
    return _assign(state, number, live, actions)


def _time(state: State, number: int, live: Live, actions: list[Action]) -> State:
    state = start_timing(state, number, live, actions)
    live = state.live[number]
    return state if live.pending else _go_on(state, number, live, actions)


def timed(state: State, control: Control, stamp: int, actions: list[Action]) -> State:
    """Record the time of a client; continue when all have answered."""
    state, done = hear_clock(state, control, stamp, actions)
    return state if done is None else _go_on(state, done, state.live[done], actions)


def _assign(state: State, number: int, live: Live, actions: list[Action]) -> State:
    parts = live.instance.parts
    for at, part in enumerate(parts):
        fields = {"TEST_NAME": live.instance.test, "ROLE": part.role.value, **part.fields}
        body = instruct(part.role, part.body, state.members[part.client].about)
        control = Control(Kind.ASSIGN_ROLE, fields, body, _assignment(state, number, at))
        actions.append(Say(control, part.client))
    until = state.at + state.plan.limits.answer
    live = replace(live, stage=Stage.ASSIGNING, pending=frozenset(range(len(parts))), until=until)
    return _keep(state, number, live)


def talk(state: State, control: Control, actions: list[Action]) -> State:
    """Handle a message about an instance; a message at the wrong stage is ignored."""
    run, _, rest = control.assignment.partition("/case/")
    number_text, _, part_text = rest.partition("/")
    if run != state.plan.run or not (number_text.isdecimal() and part_text.isdecimal()):
        return state
    number, part = int(number_text), int(part_text)
    live = state.live.get(number)
    if live is None or part not in live.pending:
        return state
    parts = live.instance.parts
    if parts[part].client != control.client:
        return state
    match live.stage, control.kind:
        case Stage.ASSIGNING, Kind.ACCEPT_ROLE if parts[part].role is Role.SENDER:
            fresh = str(control.fields.get("CORRELATION_ID", ""))
            if not fresh or fresh in state.correlations:
                why = f"{control.client} used the correlation id {fresh!r} before"
                return give_up_on(state, number, Finding(Outcome.FAILED, why), actions)
            state = replace(state, correlations=state.correlations | {fresh})
        case Stage.ASSIGNING, Kind.ACCEPT_ROLE:
            pass
        case Stage.ASSIGNING, Kind.DECLINE:
            why = f"{control.client} declined: {control.fields['REASON']}"
            return give_up_on(state, number, Finding(state.plan.opt_out, why), actions)
        case ((Stage.ASSIGNING | Stage.SENDING | Stage.COLLECTING), Kind.REPORT):
            ends = live.stage is Stage.ASSIGNING or live.final
            try:
                about = state.members[control.client].about
                told = join_reports(parts[part].role, live.reports.get(part), control, about)
            except BROKEN as error:
                return give_up_on(state, number, broken_by(error), actions)
            over = live.over | {part} if ends else live.over
            live = replace(live, reports={**live.reports, part: told}, over=over)
        case _:
            return state
    live = replace(live, pending=live.pending - {part})
    state = _keep(state, number, live)
    return state if live.pending else _go_on(state, number, live, actions)


def _go_on(state: State, number: int, live: Live, actions: list[Action]) -> State:
    """Take the next stage once nothing is pending in this one."""
    match live.stage:
        case Stage.TIMING if live.give_up:
            return give_up_on(state, number, live.give_up, actions)
        case Stage.TIMING if len(live.clocks) == 1:
            return _assign(state, number, live, actions)
        case Stage.TIMING:
            return _drain(state, number, live, actions)
        case Stage.ASSIGNING if not live.over:
            return _start(state, number, replace(live, sending_since=state.at), actions)
        case Stage.ASSIGNING:
            return _collect(state, number, live, actions, final=True)
        case Stage.SENDING:
            return _collect(
                state, number, live, actions, final=_last(state, live) and not _open(live)
            )
        case Stage.COLLECTING if live.final and live.clocks:
            return _time(state, number, live, actions)
        case Stage.COLLECTING if live.final:
            return _drain(state, number, live, actions)
        case Stage.COLLECTING if _open(live) and not _all_there(live) and state.at < live.settled:
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


def _collect(state: State, number: int, live: Live, actions: list[Action], *, final: bool) -> State:
    """Ask for reports: of receivers after a batch, of all that still hold a role at the end."""
    parts = live.instance.parts
    asked = [
        at for at, part in enumerate(parts)
        if at not in live.over and (final or part.role is Role.RECEIVER)
    ]  # fmt: skip
    settle = int(state.plan.limits.settle * 1000)
    for at in asked:
        share = parts[at].share
        due = max(0, (share or 0) * (live.batch + 1) - _returned(live))
        fields = {"WAIT_COUNT": due, "FINAL": final,
                  "WAIT_MS": _POLL if share is None else settle}  # fmt: skip
        if share is None and not final:
            fields["WAIT_COUNT"] = live.instance.total * (live.batch + 1)
        control = Control(Kind.STATUS_REQUEST, fields, {}, _assignment(state, number, at))
        actions.append(Say(control, parts[at].client))
    again = live.stage is Stage.COLLECTING
    limits = state.plan.limits
    live = replace(
        live, stage=Stage.COLLECTING, pending=frozenset(asked), final=final,
        until=state.at + limits.answer + limits.settle,
        settled=live.settled if again else state.at + limits.settle,
    )  # fmt: skip
    state = _keep(state, number, live)
    return state if asked else _go_on(state, number, live, actions)


def _returned(live: Live) -> int:
    """Count the messages returned to the senders."""
    lists = [report.body.get("returned") for report in live.reports.values()]
    return sum(len(one) for one in lists if isinstance(one, list))


def _drain(state: State, number: int, live: Live, actions: list[Action]) -> State:
    actions.append(Drain(number, live.instance.queues))
    until = state.at + state.plan.limits.answer
    return _keep(
        state, number, replace(live, stage=Stage.DRAINING, pending=frozenset(), until=until)
    )


def drained(state: State, number: int, left: int, actions: list[Action]) -> State:
    """Call the judge when the queues are deleted."""
    live = state.live.get(number)
    if live is None or live.stage is not Stage.DRAINING:
        return state
    try:
        live = replace(live, reports=_tally(live))
    except BROKEN as error:
        live = replace(live, give_up=live.give_up or broken_by(error))
    state = _keep(state, number, live)
    finding = live.give_up or live.instance.judge(
        live.instance, Evidence(live.reports, left, live.batch + 1, live.clocks)
    )
    if finding.note:
        actions.append(Note(f"{live.instance.name}: {finding.note}"))
    return finish(state, number, finding, actions)


def _tally(live: Live) -> dict[int, Control]:
    """Add up the reports; the clocks of a timed instance correct the latencies of its sender."""
    parts, burst = live.instance.parts, live.clocks[0] if live.clocks else {}
    sender = next((part.client for part in parts if part.role is Role.SENDER), "")
    return {
        at: tally_report(parts[at], told, shift_of(burst, sender, parts[at].client))
        for at, told in live.reports.items()
    }


def finish(state: State, number: int, finding: Finding, actions: list[Action]) -> State:
    """Give an instance its one verdict and forget it."""
    live = state.live[number]
    judged = give_verdict(live.instance, finding, state.at - live.began)
    actions.append(replace(judged, live=live))
    return replace(state, live={at: one for at, one in state.live.items() if at != number})


def call_off(state: State, number: int) -> list[Say]:
    """End every role that is still held: a last request, which waits for nothing."""
    live = state.live[number]
    fields = {"WAIT_COUNT": 0, "WAIT_MS": 0, "FINAL": True}
    return [
        Say(Control(Kind.STATUS_REQUEST, fields, {}, _assignment(state, number, at)), part.client)
        for at, part in enumerate(live.instance.parts)
        if live.stage is not Stage.PREPARING
        and at not in live.over
        and not state.members[part.client].trouble
    ]


def give_up_on(state: State, number: int, finding: Finding, actions: list[Action]) -> State:
    """Cancel the remaining roles, and clean up."""
    live = state.live[number]
    actions += call_off(state, number)
    return _drain(state, number, replace(live, give_up=live.give_up or finding), actions)

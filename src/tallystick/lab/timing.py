"""Measure the clocks of an instance's clients over the broker, before and after it (Appendix E).

    TIMING      CLOCK_SYNCH to one client after the other, without pauses, until its clock is known
                well enough (`clocks.wants_more`); contradicting answers fail the case

The offset of a client is its clock minus the coordinator's. The sender's offset minus the
receiver's is the shift that turns `arrival - SENT_NS` into a latency. The burst after the traffic
shows the drift of each clock: at a steady rate its error is largest at one of the two ends. A
client that sends to itself has one clock: shift and error are zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tallystick.core.errors import Unavailable
from tallystick.core.verdict import Outcome
from tallystick.lab.clocks import ZERO, Estimate, Sample, intersect, wants_more
from tallystick.lab.control import Control, Kind
from tallystick.lab.instance import Finding
from tallystick.lab.state import Action, Live, Say, Stage, State

__all__ = ["error_of", "hear_clock", "shift_of", "start_timing"]

Burst = Mapping[str, Estimate]


def start_timing(state: State, number: int, live: Live, actions: list[Action]) -> State:
    """Begin a burst; with one client only there is nothing to ask."""
    parts = live.instance.parts
    names = {part.client for part in parts}
    pending = frozenset(range(len(parts))) if len(names) > 1 else frozenset[int]()
    until = state.at + state.plan.limits.answer
    live = replace(live, stage=Stage.TIMING, pending=pending, until=until, samples=())
    if pending:
        _ask(state, number, live, actions)
    else:
        live = replace(live, clocks=(*live.clocks, {}))
    return replace(state, live={**state.live, number: live})


def _asked(live: Live) -> str:
    """Return the client to ask next."""
    return live.instance.parts[min(live.pending)].client


def _ask(state: State, number: int, live: Live, actions: list[Action]) -> None:
    """Ask the time; the shell stamps T1 when it sends."""
    assignment = f"{state.plan.run}/clock/{number}"
    actions.append(Say(Control(Kind.CLOCK_SYNCH, {"T1": 0}, assignment=assignment), _asked(live)))


def hear_clock(
    state: State, control: Control, stamp: int, actions: list[Action]
) -> tuple[State, int | None]:
    """Record an answer; return the number of the instance whose timing is complete, if any."""
    run, _, text = control.assignment.partition("/clock/")
    number = int(text) if run == state.plan.run and text.isdecimal() else -1
    live = state.live.get(number)
    if live is None or live.stage is not Stage.TIMING or control.client != _asked(live):
        return state, None
    sent, there, answered = (control.fields[name] for name in ("T1", "T2", "T3"))
    samples = (*live.samples, Sample(sent, there, answered, stamp))
    live = replace(live, samples=samples, until=state.at + state.plan.limits.answer)
    try:
        if not wants_more(samples):
            live = _next_client(live, control.client)
    except Unavailable as failure:
        finding = Finding(Outcome.FAILED, f"{control.client}: {failure}")
        live = replace(live, pending=frozenset(), give_up=finding)
    if live.pending:
        _ask(state, number, live, actions)
    return replace(state, live={**state.live, number: live}), None if live.pending else number


def _next_client(live: Live, client: str) -> Live:
    parts = live.instance.parts
    first = len({parts[at].client for at in live.pending}) == len({part.client for part in parts})
    earlier, burst = (live.clocks, {}) if first else (live.clocks[:-1], live.clocks[-1])
    return replace(
        live,
        samples=(),
        pending=frozenset(at for at in live.pending if parts[at].client != client),
        clocks=(*earlier, {**burst, client: intersect(live.samples)}),
    )


def shift_of(burst: Burst, sender: str, receiver: str) -> int:
    """Return the shift to add to `arrival - SENT_NS`, in nanoseconds."""
    return round(burst.get(sender, ZERO).offset - burst.get(receiver, ZERO).offset)


def error_of(bursts: Sequence[Burst], sender: str, receiver: str) -> float:
    """Give how far off a latency can be, when it was shifted by what the first burst says.

    Each clock has its own worst end: the two are not asked at one time, and a message is stamped
    by them at two times. Stamps and shifts are whole nanoseconds: that is one more for each clock.
    """
    clocks = [name for name in (sender, receiver) if name in bursts[0]]
    return sum(_strayed([burst[name] for burst in bursts]) + 1.0 for name in clocks)


def _strayed(ends: Sequence[Estimate]) -> float:
    """Return the maximum drift of a clock from its first burst."""
    return max(abs(end.offset - ends[0].offset) + end.bound for end in ends)

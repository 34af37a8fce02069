"""Run the tiers of the thorough procedure on a broker, and judge each circuit.

`lab/tier_table.py` lists the circuits of a tier. Many circuits run in parallel, each on its own
lane. Every case gets exactly one verdict: if the broker dies, its cases are errored, and when it no
longer answers at all, the rest is not tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Final

from tallystick.core.verdict import Difference, Outcome, Verdict
from tallystick.lab.combinations import (
    BODY_SIZES,
    Parameters,
)
from tallystick.lab.expected import (
    CRASH_MESSAGES,
    Observation,
    compare,
    decide,
    expected_crash,
    expected_restart,
    expected_results,
)
from tallystick.lab.probe import Lane, probe
from tallystick.lab.probe_crash import Kept, look_after_restart, probe_crash, put_in_safety
from tallystick.lab.probe_vm import probe_vm
from tallystick.lab.profiles import Profile
from tallystick.lab.raw import Address, Gone, Refusal
from tallystick.lab.tier_table import DEPARTS, LANES, TierCase, summarize_result

__all__ = ["judge", "judge_refusal", "run_here", "run_restart", "run_tier"]

_NO_PROCESS: Final = "the in-process broker has no connection to cut and no process to restart"


async def run_tier(
    cases: Sequence[TierCase],
    address: Address,
    profile: Profile,
    *,
    run: str,
    tell: Callable[[Verdict], None],
    lanes: int = LANES,
    limit: float = 30.0,
) -> None:
    """Run circuits side by side on a broker; tell each verdict as it comes."""
    waiting = iter(cases)
    patience = _Patience(2 * lanes)

    async def work(number: int) -> None:
        async with Lane(address, f"tally.{run}.{number}") as lane:
            for case in waiting:
                if patience.lost:
                    tell(Verdict(case.name, Outcome.ERRORED, f"not run: {patience.lost}"))
                    continue
                verdict = await _judge(lane, case, profile, limit)
                patience.note(verdict)
                tell(verdict)

    async with asyncio.TaskGroup() as group:
        for number in range(min(lanes, len(cases))):
            group.create_task(work(number))


class _Patience:
    """Ends the waiting when nothing but errors has come for a while."""

    def __init__(self, errors: int) -> None:
        self._limit: Final = errors
        self._errors = 0
        self.lost = ""

    def note(self, verdict: Verdict) -> None:
        self._errors = self._errors + 1 if verdict.outcome is Outcome.ERRORED else 0
        if self._errors >= self._limit:
            self.lost = f"the last {self._errors} circuits got no answer ({verdict.reason})"


async def _judge(lane: Lane, case: TierCase, profile: Profile, limit: float) -> Verdict:
    began = perf_counter()
    try:
        async with asyncio.timeout(limit):
            found = await _see(lane, case)
    except Refusal as refusal:
        await lane.discard()
        verdict = judge_refusal(case, profile, refusal)
    except TimeoutError:
        await lane.discard()
        verdict = Verdict(case.name, Outcome.ERRORED, f"no answer within {limit:g} s")
    except (Gone, OSError) as error:
        await lane.discard()
        verdict = Verdict(case.name, Outcome.ERRORED, str(error) or type(error).__name__)
    else:
        verdict = judge(case, profile, found)
    return replace(verdict, milliseconds=(perf_counter() - began) * 1000)


async def _see(lane: Lane, case: TierCase) -> Observation | Kept:
    if case.cut:
        given = case.parameters
        return await probe_crash(lane, case.cut, durable=given.durable, persistent=given.persistent)
    return await probe(lane, case.parameters, local=case.tier == "local")


def judge(case: TierCase, profile: Profile, found: Observation | Kept) -> Verdict:
    """Compare the observations with the profile."""
    if isinstance(found, Kept):
        wanted, why = _expected_kept(case, profile)
        return _verdict(case, _kept_differences(wanted, found), f"{len(wanted.left)} left", why)
    expected = expected_results(case.parameters, profile, local=case.tier == "local")
    return _verdict(
        case, compare(expected, found), summarize_result(expected, found), expected.departs
    )


def judge_refusal(case: TierCase, profile: Profile, refusal: Refusal) -> Verdict:
    """Judge a circuit that could not even be laid: right only where the profile says so."""
    row = decide(case.parameters, profile, local=case.tier == "local")
    wanted = f"{row.result.level} {row.result.code}" if row.result.at == "declare" else ""
    if wanted == refusal.word:
        return _verdict(case, (), f"refused {refusal.word}", row.departs)
    return _verdict(case, (Difference("/refused", wanted, str(refusal)),), "refused", "")


def _verdict(
    case: TierCase, differences: tuple[Difference, ...], summary: str, departs: str
) -> Verdict:
    reason = f"{summary}; {DEPARTS}{departs}" if departs else summary
    outcome = Outcome.FAILED if differences else Outcome.PASSED
    return Verdict(case.name, outcome, reason, differences)


def _expected_kept(case: TierCase, profile: Profile) -> tuple[Kept, str]:
    given = case.parameters
    if case.cut:
        (left, redelivered), why = expected_crash(case.cut, profile)
        numbers = tuple(range(CRASH_MESSAGES - left, CRASH_MESSAGES))
        return Kept(left=numbers, redelivered=redelivered), why
    there, left = expected_restart(durable=given.durable, persistent=given.persistent)
    return Kept(there=there, left=tuple(range(left))), ""


def _kept_differences(wanted: Kept, found: Kept) -> tuple[Difference, ...]:
    pairs = {
        "there": (wanted.there, found.there),
        "left": (list(wanted.left), list(found.left)),
        "redelivered": (wanted.redelivered, found.redelivered),
        "altered": (list(wanted.altered), list(found.altered)),
    }
    return tuple(Difference(f"/{name}", a, b) for name, (a, b) in pairs.items() if a != b)


async def run_restart(
    cases: Sequence[TierCase],
    address: Address,
    profile: Profile,
    restart: Callable[[], Awaitable[Address]],
    *,
    run: str,
    tell: Callable[[Verdict], None],
    limit: float = 30.0,
) -> None:
    """Put the messages of every case in safety, restart the broker once, and look."""
    safe: dict[str, str] = {}

    async def put(lane: Lane, case: TierCase) -> None:
        safe[case.name] = await _put(lane, case.parameters)
        lane.forget(safe[case.name])

    async def look(lane: Lane, case: TierCase) -> None:
        size = BODY_SIZES[case.parameters.message_size]
        found = await look_after_restart(lane, safe[case.name], size)
        # what comes back may be marked as redelivered, or not: AMQP leaves that open
        tell(judge(case, profile, replace(found, redelivered=0)))

    async with Lane(address, f"tally.{run}.restart") as lane:
        for case in cases:
            await _trying(lane, case, put, profile, tell, limit)
    async with Lane(await restart(), f"tally.{run}.after") as lane:
        for case in cases:
            if case.name in safe:
                await _trying(lane, case, look, profile, tell, limit)


async def _put(lane: Lane, given: Parameters) -> str:
    return await put_in_safety(
        lane,
        durable=given.durable,
        persistent=given.persistent,
        transactional=given.transactional,
        size=BODY_SIZES[given.message_size],
    )


async def _trying(
    lane: Lane,
    case: TierCase,
    do: Callable[[Lane, TierCase], Awaitable[None]],
    profile: Profile,
    tell: Callable[[Verdict], None],
    limit: float,
) -> None:
    """Do one step; an error is the verdict of the case."""
    try:
        async with asyncio.timeout(limit):
            await do(lane, case)
    except Refusal as refusal:
        await lane.discard()
        tell(judge_refusal(case, profile, refusal))
    except (Gone, OSError, TimeoutError) as error:
        await lane.discard()
        tell(Verdict(case.name, Outcome.ERRORED, str(error) or f"no answer within {limit:g} s"))


def run_here(cases: Sequence[TierCase], profile: Profile, tell: Callable[[Verdict], None]) -> None:
    """Run circuits on the in-process broker."""
    for case in cases:
        if case.tier in {"crash", "restart"}:
            tell(Verdict(case.name, Outcome.UNSUPPORTED, _NO_PROCESS))
            continue
        began = perf_counter()
        found = probe_vm(case.parameters, local=case.tier == "local")
        verdict = judge(case, profile, found)
        tell(replace(verdict, milliseconds=(perf_counter() - began) * 1000))

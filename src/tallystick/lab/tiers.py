"""The tiers of the thorough procedure: which circuits, on which broker, and the verdict on each.

`full` is all 9216 sets, `pairwise`, `3way` and `4way` are covering arrays of them, `local` puts
both ends on one connection, `crash` cuts receivers and `restart` stops and starts the broker. Many
circuits run side by side, each on a lane of its own. Every case ends in exactly one verdict: a
broker that dies leaves errored ones, and when it answers nobody any more the rest is not tried.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Final

from tallystick.core.errors import UsageError
from tallystick.core.verdict import Difference, Outcome, Verdict
from tallystick.lab.combinations import (
    BODY_SIZES,
    Parameters,
    all_combinations,
    local_combinations,
    name_of,
)
from tallystick.lab.covering import cover
from tallystick.lab.expected import (
    CRASH_MESSAGES,
    Expectation,
    Observation,
    compare,
    crash_cuts,
    decide,
    expected_crash,
    expected_restart,
    expected_results,
)
from tallystick.lab.probe import Lane, probe
from tallystick.lab.probe_crash import Kept, look_after_restart, probe_crash, put_in_safety
from tallystick.lab.probe_vm import probe_vm
from tallystick.lab.profiles import Kind, Profile
from tallystick.lab.raw import Address, Gone, Refusal

__all__ = [
    "DEPARTS", "LANES", "TIERS", "VM", "TierCase", "judge", "judge_refusal", "run_here",
    "run_restart", "run_tier", "summarize_result", "tier_cases",
]  # fmt: skip

LANES: Final = 8
VM: Final = "vm"
DEPARTS: Final = "departs from AMQP: "
"""Stands in the reason of a verdict before the reason of its profile."""
_BOTH: Final = (False, True)
_NO_PROCESS: Final = "the in-process broker has no socket to cut and no process to restart"


@dataclass(frozen=True, slots=True)
class TierCase:
    """One circuit of a tier; `name` is `tier/<tier>/<broker>/<set>`. `cut` is for crashes only."""

    name: str
    tier: str
    parameters: Parameters
    cut: str = ""


TIERS: Final[Mapping[str, Callable[[], Sequence[Parameters]]]] = {
    "full": all_combinations,
    "pairwise": partial(cover, 2),
    "3way": partial(cover, 3),
    "4way": partial(cover, 4),
    "local": local_combinations,
    "crash": lambda: [Parameters(durable=d, persistent=p) for d in _BOTH for p in _BOTH],
    "restart": lambda: [
        Parameters(durable=d, persistent=p, transactional=t, message_size=size)
        for d in _BOTH
        for p in _BOTH
        for t in _BOTH
        for size in BODY_SIZES
    ],
}
"""Every tier, and the parameter sets it runs."""


def tier_cases(tier: str, broker: str, only: str = "") -> tuple[TierCase, ...]:
    """Give the circuits of a tier; `only` is a name, or a part of several."""
    if tier not in TIERS:
        raise UsageError(
            f"there is no tier {tier!r}", code="tier", hint=f"one of {', '.join(TIERS)}"
        )
    every = tuple(_cases(tier, broker))
    chosen = tuple(one for one in every if only == one.name) or tuple(
        one for one in every if only in one.name
    )
    if not chosen:
        raise UsageError(
            f"no circuit of {tier} has {only!r} in its name",
            code="no_case",
            hint=f"tally lab combinations {tier}",
        )
    return chosen


def _cases(tier: str, broker: str) -> Iterator[TierCase]:
    for parameters in TIERS[tier]():
        if tier == "crash":
            for cut in crash_cuts():
                about = replace(parameters, ack_mode=cut.partition("/")[0])
                yield TierCase(f"tier/crash/{broker}/{cut}/{_safety(about)}", tier, about, cut)
        else:
            yield TierCase(f"tier/{tier}/{broker}/{name_of(parameters)}", tier, parameters)


def _safety(parameters: Parameters) -> str:
    on = [flag for flag in ("persistent", "durable") if getattr(parameters, flag)]
    return "+".join(on) or "none"


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
        verdict = Verdict(case.name, Outcome.ERRORED, f"no answer in {limit:g} s")
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
    """Compare what was seen with what the profile says."""
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


def summarize_result(expected: Expectation, found: Observation) -> str:
    """Say in words what the profile expects, or how a race came out."""
    result = expected.result
    if result.kind is Kind.NONDETERMINISTIC:
        return f"a race: {len(found.received)} received, {len(found.returned)} returned"
    return " ".join(filter(None, (result.kind, result.level, str(result.code or ""))))


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
    """Do one step; what goes wrong is the case's verdict."""
    try:
        async with asyncio.timeout(limit):
            await do(lane, case)
    except Refusal as refusal:
        await lane.discard()
        tell(judge_refusal(case, profile, refusal))
    except (Gone, OSError, TimeoutError) as error:
        await lane.discard()
        tell(Verdict(case.name, Outcome.ERRORED, str(error) or f"no answer in {limit:g} s"))


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

"""The tiers of the thorough procedure between language clients, for every ordered pair of them.

The parameter sets and profiles are those of the raw tiers (`lab/tier_table.py`); the ends are the
libraries of the clients. A client declines a role that its library does not support, with the
reason. The receiver reports each whole message, so bodies, delivery mode and order are checked; the
digest of the sender shows that it sent them all. Only the raw tiers check what a library does not
show: body frames, a second consumer, and messages visible before a commit.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from tallystick.core.verdict import Difference, Outcome
from tallystick.lab.cases import Settings
from tallystick.lab.combinations import BODY_SIZES, Parameters, as_mapping, name_of
from tallystick.lab.expected import (
    MESSAGES,
    Expectation,
    Observation,
    compare,
    expected_results,
)
from tallystick.lab.instance import Evidence, Finding, Group, Instance
from tallystick.lab.judge import judge_trouble
from tallystick.lab.pairs import Trial, trial_group
from tallystick.lab.payload import digest_of, first_difference, make_body
from tallystick.lab.profiles import Kind, Profile
from tallystick.lab.tier_table import DEPARTS, TIERS, summarize_result

__all__ = ["CLIENT_TIERS", "tier_groups", "tier_trial"]

CLIENT_TIERS: Final = ("pairwise", "3way", "4way", "full")
_OF_QUEUE: Final = ("bind_out_route", "durable", "message_size")
"""What the coordinator does with the queue, or what has another name on the wire."""


def tier_groups(settings: Settings, tier: str, profile: Profile) -> tuple[Group, ...]:
    """Give one group, with an invite of its own, for each parameter set."""
    return tuple(
        trial_group(settings, tier_trial(settings, tier, one, profile)) for one in TIERS[tier]()
    )


def tier_trial(settings: Settings, tier: str, given: Parameters, profile: Profile) -> Trial:
    """Return the trial of a pair for one parameter set, and its judge."""
    expected = _seen_by_a_client(expected_results(given, profile))
    both = {
        **{name: value for name, value in as_mapping(given).items() if name not in _OF_QUEUE},
        "message_bytes": BODY_SIZES[given.message_size],
        "seed": settings.seed,
        "echo": True,
    }
    race = expected.result.kind is Kind.NONDETERMINISTIC
    return Trial(
        "Circuit",
        f"{tier}/{name_of(given)}",
        {**both, "num_messages": MESSAGES},
        both,
        partial(_judge, expected),
        share=MESSAGES if race else len(expected.sight.received),
        bound=given.bind_out_route,
        durable=given.durable,
        refusal=expected.sight.refused if expected.result.at == "declare" else "",
    )


def _seen_by_a_client(expected: Expectation) -> Expectation:
    sight = replace(expected.sight, body_frames=(), second_consumer="")
    return replace(expected, sight=sight)


def _judge(expected: Expectation, instance: Instance, evidence: Evidence) -> Finding:
    try:
        found = _observe(instance, evidence)
        other = tuple(_other_trouble(instance, evidence))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return Finding(Outcome.ERRORED, f"a report violates the protocol: {error!r}")
    differences = (*compare(expected, found), *other)
    summary = summarize_result(expected, found)
    reason = f"{summary}; {DEPARTS}{expected.departs}" if expected.departs else summary
    return Finding(Outcome.FAILED if differences else Outcome.PASSED, reason, differences)


def _other_trouble(instance: Instance, evidence: Evidence) -> Iterator[Difference]:
    """Return the errors besides the refusal of the sender, which is part of the observation."""
    for one in judge_trouble(instance, evidence):
        if one.pointer != "/0/sender/closed":
            yield one
    sender, body = evidence.reports[0].body, instance.parts[0].body
    digest = digest_of(body["seed"], body["message_bytes"], range(MESSAGES))
    if sender["closed"] is None and sender["digests"] != [digest]:
        yield Difference("/0/sender/digest", [digest], sender["digests"])
    total = len(evidence.reports[1].body["echo"])
    if evidence.reports[1].fields["MESSAGE_COUNT"] != total:
        told = evidence.reports[1].fields["MESSAGE_COUNT"]
        yield Difference("/1/receiver/count", total, told)


def _observe(instance: Instance, evidence: Evidence) -> Observation:
    sender, receiver = evidence.reports[0].body, evidence.reports[1].body
    closed = sender["closed"]
    told = [(_sequence(one["headers"]), one) for one in receiver["echo"]]
    return Observation(
        refused=f"{closed['level']} {closed['code']}" if closed else "",
        returned=tuple(code for _, _, code in sender["returned"]),
        received=tuple(number for number, _ in told),
        depth=evidence.left,
        delivery_modes=tuple(one["properties"].get("delivery_mode", 0) for _, one in told),
        altered=tuple(_altered(instance.parts[0].body, told)),
    )


def _sequence(headers: Mapping[str, Any]) -> int:
    return int(headers["SEQUENCE"][1])


def _altered(body: Mapping[str, Any], told: list[tuple[int, Any]]) -> Iterator[str]:
    for number, one in told:
        wanted = make_body(body["seed"], number, body["message_bytes"])
        at = first_difference(wanted, base64.b64decode(one["body"]))
        if at is not None:
            yield f"message {number} at byte {at}"

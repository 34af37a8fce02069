"""Plan how a delivery is settled: one move for the transport, and the frame that goes with it.

The tables of `core.settle` decide; this module builds the frames. A retry changes `attempts` and
nothing else. A dead letter gets its block. A gated message is passed on byte for byte. If the
broker has no delays, the worker holds the move back (`hold`). A message of a group keeps its order:
it is handled again in the worker (`here`), before the later messages of its group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from msgspec import Struct

from tallystick.core import splice
from tallystick.core.binding import Binding, headers_of, project, retry_fields
from tallystick.core.delay import visibility
from tallystick.core.envelope import DeadLetter, Envelope, decode
from tallystick.core.frame import Frame
from tallystick.core.settle import Settlement, exhaust, settle_gated
from tallystick.core.slot import TYPES
from tallystick.core.transport import Capabilities, Delivery
from tallystick.runtime.dead_letter import dead_letter_queue, original_queue
from tallystick.runtime.reading import Reading
from tallystick.runtime.retry import draw
from tallystick.runtime.settings import Settings

__all__ = [
    "Failure", "Plan", "Rules", "carried", "is_return", "plan_failure", "plan_gated",
    "plan_release", "plan_return", "plan_skipped", "reproject",
]  # fmt: skip

_LONGEST_ERROR: Final = 1000


class Plan(Struct, frozen=True, gc=False):
    """One move (`ack`, `release`, `replace`, `leave` or `give_up`) and its outcome.

    `outcome` is the name for log lines and counters; `hold` is the time that the worker waits
    before the move. With `here`, the worker then runs the message again itself, and makes the move
    only if it cannot.
    """

    move: str
    delivery: Delivery
    outcome: str
    queue: str = ""
    frame: Frame | None = None
    delay: float = 0.0
    hold: float = 0.0
    note: str = ""
    here: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that every settlement of a worker follows."""

    binding: Binding
    capabilities: Capabilities
    settings: Settings
    worn_out: float = field(init=False)
    """The attempts, counted by the broker, from which on no handler gets the message."""

    def __post_init__(self) -> None:
        settings = self.settings
        counted = settings.max_deliveries and self.capabilities.counts
        most = max(settings.max_deliveries, settings.max_attempts) if counted else inf
        object.__setattr__(self, "worn_out", most)


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a delivery failed; `final` if another attempt cannot help.

    A `kept` failure is left to the broker instead of being dropped: no handler has tried it. The
    text of an exception may hold personal data: it is written to the dead letter, never to a log. A
    log line shows `label` instead of the error.
    """

    kind: str
    error: str = field(repr=False)
    exception: str | None = None
    final: bool = False
    label: str = ""
    kept: bool = False

    @property
    def note(self) -> str:
        """The text for a log line."""
        return self.exception or self.label or self.error


def plan_skipped(reading: Reading) -> Plan:
    """Plan the end of a delivery whose message has already taken effect."""
    return Plan("ack", reading.delivery, "skipped")


def plan_return(delivery: Delivery) -> Plan:
    """Plan the return of a delivery that this worker no longer handles."""
    return Plan("release", delivery, "handed_back", note="stopping")


def is_return(plan: Plan) -> bool:
    """Return whether a plan only returns the unchanged message."""
    return plan.here or plan.outcome == "handed_back"


def plan_gated(rules: Rules, reading: Reading) -> Plan:
    """Plan the end of a delivery that the version gate rejected."""
    settings, delivery = rules.settings, reading.delivery
    outcome = settle_gated(rules.binding.settle, settings.on_unknown_urn, settings.dead_letter)
    if outcome == "dlq_raw":
        frame = Frame(delivery.frame.body, carried(rules.binding, delivery.frame))
        return Plan(
            "replace", delivery, "dead_lettered", _graveyard(rules, delivery), frame,
            note=reading.fault,
        )  # fmt: skip
    if outcome == "native":
        return Plan("give_up", delivery, "native", note=reading.fault)
    return Plan("ack", delivery, "dropped", note=reading.fault)


def plan_failure(
    rules: Rules, reading: Reading, failure: Failure, *, now: float, chance: float
) -> Plan:
    """Plan the end of a failed delivery: retry, dead letter, drop or return."""
    settings = rules.settings
    attempts = reading.attempts
    if failure.final:
        attempts = max(attempts, settings.max_attempts - 1)
    ended = exhaust(
        rules.binding.settle,
        failure.kind,
        attempts,
        strategy=settings.on_unknown_urn,
        dead_letter=settings.dead_letter,
        max_attempts=settings.max_attempts,
        tiers=bool(rules.capabilities.options.get("tiers_ms")),
    )
    delivery = reading.delivery
    if ended.outcome == "retry":
        return _retry(rules, reading, ended, failure, now=now, chance=chance)
    if ended.outcome == "dlq":
        frame = _dead_letter(rules, reading, ended, failure, now)
        queue = _graveyard(rules, delivery)
        return Plan("replace", delivery, "dead_lettered", queue, frame, note=failure.note)
    if ended.outcome == "release":
        return plan_release(rules, reading, failure.note, now=now)
    if ended.outcome == "native" or failure.kept:
        return Plan("give_up", delivery, "native", note=failure.note)
    return Plan("ack", delivery, "dropped", note=failure.note)


def plan_release(rules: Rules, reading: Reading, note: str, *, now: float) -> Plan:
    """Return a delivery for a while, without counting an attempt.

    If a broker can only delay messages that are sent, it gets a copy with the same attempts: its
    own count of deliveries starts again.
    """
    wait, able, delivery = rules.settings.release_delay, rules.capabilities, reading.delivery
    if delivery.group:
        return Plan("release", delivery, "released", hold=wait, note=note, here=True)
    if able.waits:
        return Plan("release", delivery, "released", delay=wait, note=note)
    if able.delays and wait > 0:
        frame = _again(rules, reading, reading.attempts, {"delay": wait, "now": now})
        return Plan("replace", delivery, "released", _origin(rules, reading), frame, note=note)
    return Plan("release", delivery, "released", hold=wait, note=note)


def _retry(
    rules: Rules,
    reading: Reading,
    ended: Settlement,
    failure: Failure,
    *,
    now: float,
    chance: float,
) -> Plan:
    binding, delivery = rules.binding, reading.delivery
    wait = draw(rules.settings.backoff, ended.attempts, chance)
    if delivery.group:
        return Plan("release", delivery, "retried", hold=wait, note=failure.note, here=True)
    if binding.visibility is not None:
        delay = visibility(binding.visibility, wait)
        return Plan("release", delivery, "retried", delay=delay, note=failure.note)
    options: dict[str, Any] = {}
    hold = 0.0
    if binding.retry is not None:
        options["attempts_before"] = reading.attempts
    elif wait > 0 and rules.capabilities.delays:
        options |= {"delay": wait, "now": now}
    else:
        hold = wait
    frame = _again(rules, reading, ended.attempts, options)
    queue = _origin(rules, reading)
    return Plan("replace", delivery, "retried", queue, frame, hold=hold, note=failure.note)


def _again(rules: Rules, reading: Reading, attempts: int, options: Mapping[str, Any]) -> Frame:
    """Give the frame that is sent in place of a delivery: its attempts are set, no more."""
    if reading.envelope is None:
        return _poison_retry(rules, reading, attempts)
    body = splice.retry(reading.delivery.frame.body, attempts)
    return _projected(rules, reading, body, _origin(rules, reading), options)


def _dead_letter(
    rules: Rules, reading: Reading, ended: Settlement, failure: Failure, now: float
) -> Frame:
    record = DeadLetter(
        reason=ended.reason,
        error=failure.error[:_LONGEST_ERROR],
        exception=failure.exception,
        failed_at=int(now * 1000),
        original_queue=_original(rules, reading),
        attempts=ended.attempts,
        lang="python",
    )
    frame = reading.delivery.frame
    if reading.envelope is None:
        return Frame(splice.poison_record(frame.body, record), carried(rules.binding, frame))
    body = splice.dead_letter(frame.body, record)
    return _projected(rules, reading, body, _graveyard(rules, reading.delivery), {})


def _projected(
    rules: Rules, reading: Reading, body: bytes, queue: str, options: Mapping[str, Any]
) -> Frame:
    return reproject(
        rules.binding,
        reading.delivery.frame,
        decode(body),
        queue=queue,
        routed_as=reading.urn,
        options={**rules.capabilities.options, **options},
    )


def reproject(
    binding: Binding,
    frame: Frame,
    envelope: Envelope,
    *,
    queue: str,
    routed_as: str,
    options: Mapping[str, Any],
) -> Frame:
    """Return the frame for a changed message, with the headers, key and group of its delivery."""
    group = frame.get("attributes", "MessageGroupId")
    given: dict[str, Any] = {"group": group} if group else {}
    if not (envelope.meta and envelope.meta.id):
        given["content_based"] = True  # the transport names such a copy by its bytes
    return project(
        binding,
        envelope,
        queue=queue,
        routed_as=routed_as,
        headers=headers_of(binding, frame.sections),
        key=frame.get("record", "key"),
        **{**options, **given},
    )


def _poison_retry(rules: Rules, reading: Reading, attempts: int) -> Frame:
    """Keep the body where the broker carries the count, else send the bare count (4.1.5)."""
    binding, frame = rules.binding, reading.delivery.frame
    sections = carried(binding, frame)
    native = [count for count in binding.counts if count.rule == "override"]
    for count in native:
        slot = next(s for s in binding.slots if (s.section, s.key) == (count.section, count.key))
        sections.setdefault(count.section, {})[count.key] = TYPES[slot.type].write(attempts)
    if binding.retry is not None:
        tiers = rules.capabilities.options["tiers_ms"]
        queue = _origin(rules, reading)
        more = retry_fields(binding, reading.attempts, queue=queue, tiers_ms=tiers)
        for section, fields in more.items():
            sections.setdefault(section, {}).update(fields)
    return Frame(frame.body if native else b'{"attempts":%d}' % attempts, sections)


def carried(binding: Binding, frame: Frame) -> dict[str, dict[str, Any]]:
    """Return the native fields to keep for a body, without those of an earlier delay."""
    own = {(slot.section, slot.key) for slot in binding.slots}
    waits = [rule.slots for rule in (binding.delay, binding.retry) if rule is not None]
    gone = {(slot.section, slot.key) for slots in waits for slot in slots} - own
    return {
        section: {key: value for key, value in held.items() if (section, key) not in gone}
        for section, held in frame.sections.items()
    }


def _graveyard(rules: Rules, delivery: Delivery) -> str:
    settings = rules.settings
    return dead_letter_queue(
        rules.binding,
        delivery.queue,
        explicit=settings.dead_letter_queue,
        suffix=settings.dead_letter_suffix,
    )


def _origin(rules: Rules, reading: Reading) -> str:
    """Give the queue that a retry goes to: the one it was consumed from."""
    if rules.binding.original is None:
        return reading.delivery.queue
    return _original(rules, reading)


def _original(rules: Rules, reading: Reading) -> str:
    meta = reading.envelope.meta if reading.envelope else None
    delivery = reading.delivery
    return original_queue(
        rules.binding, meta.queue if meta else None, delivery.queue, delivery.frame.sections
    )

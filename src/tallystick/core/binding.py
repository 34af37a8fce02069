"""A binding is a table: how one broker carries the envelope natively. All brokers share this code.

    project     envelope -> frame: the body untouched, and a redundant, routable view beside it
    reconcile   the body's attempts and the broker's own counts -> attempts
    gate        the version property, read before the body is decoded -> decode or not

Attempts (clauses 3.5, 4.5, 5.5, 6.5, 7.5) start with the body's count. Each native count of the
binding then changes it: `override` replaces the count, `floor` raises it and never lowers it.
A count that is absent or not a plain number up to 2^31-1 is ignored.

The gate compares the native value: `1`, ASCII-blank, null and absent are decoded; a message with
any other version is not decoded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.delay import DelayRule, RetryRule, VisibilityRule, delay_facts, retry_facts
from tallystick.core.envelope import ASCII_SPACE, SCHEMA_VERSION, Envelope, Meta, encode
from tallystick.core.errors import Refused, UsageError
from tallystick.core.frame import Frame, Sections
from tallystick.core.names import DEFAULT_QUEUE, Names, is_fifo, name
from tallystick.core.slot import TYPES, Field, Row, Slot, fill, read_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tallystick.core.settle import SettleRule

__all__ = [
    "MAX_COUNT",
    "OUT_OF_BAND",
    "Binding",
    "Count",
    "Extras",
    "Gate",
    "Options",
    "delay_fields",
    "envelope_facts",
    "gate",
    "gate_frame",
    "headers_of",
    "project",
    "project_as",
    "read_count",
    "read_options",
    "reconcile",
    "retry_fields",
    "route",
]

OUT_OF_BAND: Final = ("traceparent", "tracestate", "bq-replay-bypass")
"""Headers that are sent beside the projection and are not in the envelope (ADR-0027, 0028)."""

MAX_COUNT: Final = 2**31 - 1
_NO_META: Final = Meta()
_NO_KEYS: Final[frozenset[str]] = frozenset()
_NOTHING: Final[Mapping[str, Any]] = {}
_FEW: Final[Mapping[str | bytes, int]] = {
    text: n for n in range(10) for text in (str(n), b"%d" % n)
}
_NATIVES: Final[Mapping[type, str]] = {
    str: "text", bytes: "bytes", int: "integer", bool: "boolean",
}  # fmt: skip
_DIGITS: Final = re.compile(r"[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Count:
    """A native delivery count: the rule (`floor`, `override`), the field, and what to subtract."""

    rule: str
    section: str
    key: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Gate:
    """The field with the version, and the native types allowed: `text`, `bytes`, `integer`."""

    section: str
    key: str
    natives: tuple[str, ...] = ("text",)


@dataclass(frozen=True, slots=True)
class Extras:
    """The section for out-of-band headers; `limit` is the maximum number of fields in the section.

    `hyphen` replaces `-` in names where other clients of the broker need identifiers.
    """

    section: str
    type: str
    limit: int | None = None
    hyphen: str = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """The table of one broker. The fields `route` and `original` override the body."""

    name: str
    slots: tuple[Slot, ...]
    names: Names
    settle: SettleRule
    counts: tuple[Count, ...] = ()
    gate: Gate | None = None
    extras: Extras | None = None
    delay: DelayRule | None = None
    retry: RetryRule | None = None
    visibility: VisibilityRule | None = None
    route: Field | None = None
    original: Field | None = None
    rows: tuple[Row, ...] = field(init=False, repr=False, compare=False)
    """The slots, looked up once."""
    own_keys: Mapping[str, frozenset[str]] = field(init=False, repr=False, compare=False)
    """Section -> the keys of the contract in it; computed once, read for every message."""
    tallies: tuple[tuple[str, str, int, bool], ...] = field(init=False, repr=False, compare=False)
    """The counts as section, key, what to subtract, and whether it is a floor."""
    current: tuple[Any, ...] = field(init=False, repr=False, compare=False)
    """The current version as the version property carries it, as text and as bytes."""
    read_gate: Callable[[Any], Any] | None = field(init=False, repr=False, compare=False)
    """How the version property is read, by the type of the slot that carries it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", read_rows(self.slots))
        rules = [rule.slots for rule in (self.delay, self.retry) if rule]
        every = [slot for slots in (self.slots, *rules) for slot in slots]
        sections = {slot.section for slot in every}
        keys = {name: frozenset(s.key for s in every if s.section == name) for name in sections}
        object.__setattr__(self, "own_keys", keys)
        tallies = tuple((c.section, c.key, c.offset, c.rule == "floor") for c in self.counts)
        object.__setattr__(self, "tallies", tallies)
        natives = self.gate.natives if self.gate else ()
        text = str(SCHEMA_VERSION)
        said = [one for one in (text, text.encode()) if _NATIVES[type(one)] in natives]
        object.__setattr__(self, "current", tuple(said))
        place = self.gate and (self.gate.section, self.gate.key)
        types = [TYPES[slot.type].read for slot in self.slots if (slot.section, slot.key) == place]
        object.__setattr__(self, "read_gate", types[0] if types else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of a publish: the queue, ordering, a delay in seconds, headers.

    `routed_as` is the URN by which a delivery was routed, kept when it is published again.
    """

    queue: str = ""
    routed_as: str = ""
    key: bytes | str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    fifo: bool | None = None
    group: str = ""
    content_based: bool = False
    delay: float | None = None
    now: float | None = None
    delayed_exchange: bool = False
    tiers_ms: Sequence[int] = ()
    attempts_before: int | None = None


_OPTIONS: Final = frozenset(each.name for each in fields(Options))


def envelope_facts(envelope: Envelope) -> dict[str, Any]:
    """Return the members that slots may carry; an absent member is None."""
    meta = envelope.meta or _NO_META
    return {
        "urn": envelope.urn,
        "trace_id": envelope.trace_id,
        "meta.id": meta.id,
        "meta.queue": meta.queue,
        "meta.lang": meta.lang,
        "meta.schema_version": meta.schema_version,
        "meta.created_at": meta.created_at,
        "attempts": envelope.attempts,
    }


def project(binding: Binding, envelope: Envelope, **options: Any) -> Frame:
    """Give the native frame of a message: its exact bytes, and the native fields of the binding.

    A retry (`attempts_before`) and a requested `delay` are two rules and exclude each other.
    """
    return project_as(binding, envelope, read_options(options))


def project_as(binding: Binding, envelope: Envelope, given: Options) -> Frame:
    """Like `project`, with options that `read_options` has checked once for a whole batch."""
    facts = envelope_facts(envelope)
    queue = given.queue or facts["meta.queue"] or DEFAULT_QUEUE
    if binding.route is not None and given.routed_as:
        facts["urn"] = given.routed_as
    facts["key"], facts["queue"] = given.key, queue
    if binding.names.fifo:
        facts |= _ordering(binding, facts["meta.id"], queue, given)
    sections = fill(binding.rows, facts)
    if given.delay is not None:
        _merge(sections, _delay_sections(binding, given.delay, queue, given))
    if given.attempts_before is not None:
        _merge(sections, _retry_sections(binding, given.attempts_before, queue, given))
    if given.headers:
        _add_headers(binding, sections, given.headers)
    return Frame(envelope.body or encode(envelope), sections)


def delay_fields(binding: Binding, delay: float, **options: Any) -> Sections:
    """Give only the native fields that delay a message; raise `Refused` if it cannot be delayed."""
    given = read_options(options)
    return _delay_sections(binding, delay, given.queue or DEFAULT_QUEUE, given)


def retry_fields(binding: Binding, attempts_before: int, **options: Any) -> Sections:
    """Give only the native fields that a retry adds or changes, or raise `Refused`."""
    given = read_options(options)
    return _retry_sections(binding, attempts_before, given.queue or DEFAULT_QUEUE, given)


def reconcile(binding: Binding, body_attempts: int | None, sections: Sections) -> int:
    """Give the attempts of a delivery; a missing count in the body means 0."""
    attempts = body_attempts or 0
    for section, key, offset, is_floor in binding.tallies:
        value = sections.get(section, _NOTHING).get(key)
        native = None if value is None else read_count(value)
        if native is None:
            continue
        native -= offset
        if native > attempts or not is_floor:
            attempts = native
    return attempts


def read_count(value: Any) -> int | None:
    """Read a native count: an integer, or ASCII digits as text or bytes; else None."""
    kind = type(value)
    if kind is not int:
        if (kind is str or kind is bytes) and value in _FEW:
            return _FEW[value]
        if isinstance(value, bytes):
            value = value.decode("latin-1")
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            significant = value.lstrip("0") or "0"
            value = int(significant) if len(significant) <= len(str(MAX_COUNT)) else None
        if isinstance(value, bool) or not isinstance(value, int):
            return None
    return value if 0 <= value <= MAX_COUNT else None


def gate(binding: Binding, present: bool, value: Any = None) -> bool:
    """Tell whether a body may be decoded, from the version property alone."""
    rule = binding.gate
    if rule is None or not present or value is None:
        return True
    if _native_name(value) not in rule.natives:
        return False
    if isinstance(value, int):
        return value == SCHEMA_VERSION
    text = value.decode("latin-1") if isinstance(value, bytes) else value
    return text == str(SCHEMA_VERSION) or not text.strip(ASCII_SPACE)


def gate_frame(binding: Binding, sections: Sections) -> bool:
    """Like `gate`, for a delivery: the version is read from the field that the binding names."""
    rule, read = binding.gate, binding.read_gate
    if rule is None or read is None:
        return True
    held = sections.get(rule.section, _NOTHING)
    value = held.get(rule.key)
    if value in binding.current:  # as nearly every message says
        return True
    return gate(binding, rule.key in held, read(value))


def route(binding: Binding, sections: Sections, urn: str) -> str:
    """Give the URN for routing: from the native field if the binding has one, else the body."""
    if binding.route is None:
        return urn
    native = sections.get(binding.route.section, _NOTHING).get(binding.route.key)
    if native == urn:  # as nearly every message says
        return urn
    return native if isinstance(native, str) and native.strip(ASCII_SPACE) else urn


def headers_of(binding: Binding, sections: Sections) -> dict[str, str]:
    """Give the out-of-band headers of a delivery as text, under the names they were sent with."""
    extras = binding.extras
    if extras is None:
        return {}
    held = sections.get(extras.section)
    if not held:
        return {}
    contract = binding.own_keys.get(extras.section, _NO_KEYS)
    if contract.issuperset(held):
        return {}
    others = [key for key in held if key not in contract]
    sent = {name.replace("-", extras.hyphen): name for name in OUT_OF_BAND}
    texts = {sent.get(key, key): TYPES[extras.type].read(held[key]) for key in others}
    return {key: value for key, value in texts.items() if isinstance(value, str)}


def _native_name(value: Any) -> str:
    exact = _NATIVES.get(type(value))
    if exact is not None:
        return exact
    names = ((str, "text"), (bytes, "bytes"), (int, "integer"))
    return next((name for kind, name in names if isinstance(value, kind)), "other")


def read_options(options: Mapping[str, Any]) -> Options:
    """Check the options of a publish."""
    unknown = sorted(options.keys() - _OPTIONS)
    if unknown:
        hint = f"known options: {', '.join(sorted(_OPTIONS))}"
        raise UsageError(f"unknown option {unknown[0]!r}", code="option", hint=hint)
    given = Options(**options)
    if given.delay is not None and given.attempts_before is not None:
        raise UsageError(
            "`delay` and `attempts_before` exclude each other: a retry has its own delay",
            code="two_delays",
        )
    return given


def _ordering(
    binding: Binding, message_id: str | None, queue: str, given: Options
) -> dict[str, Any]:
    if not is_fifo(binding.names, queue, given.fifo):
        return {"fifo.group": None, "fifo.deduplication": None}
    if not message_id and not given.content_based:
        raise Refused(
            "an ordered queue deduplicates by `meta.id`, and this message has no `meta.id`",
            code="no_deduplication_id",
            pointer="/meta/id",
            hint="give the message an id, or use content-based deduplication",
        )
    deduplication = None if given.content_based else message_id
    return {"fifo.group": given.group or queue, "fifo.deduplication": deduplication}


def _delay_sections(binding: Binding, delay: float, queue: str, given: Options) -> Sections:
    facts = delay_facts(
        binding.delay,
        delay,
        now=given.now,
        fifo=is_fifo(binding.names, queue, given.fifo),
        tiers_ms=given.tiers_ms,
        options={"delayed_exchange": given.delayed_exchange},
    )
    return _waiting(binding, binding.delay, facts, queue)


def _retry_sections(binding: Binding, attempts_before: int, queue: str, given: Options) -> Sections:
    facts = retry_facts(binding.retry, attempts_before, tiers_ms=given.tiers_ms)
    return _waiting(binding, binding.retry, facts, queue)


def _waiting(
    binding: Binding, rule: DelayRule | RetryRule | None, facts: Mapping[str, Any], queue: str
) -> Sections:
    if rule is None:
        return {}
    tier = facts["tier"]
    topic = None if tier is None else name(binding.names, "retry", queue, n=tier.n)
    milliseconds = None if tier is None else tier.milliseconds
    return fill(
        read_rows(rule.slots),
        {**facts, "queue": queue, "tier.topic": topic, "tier.milliseconds": milliseconds},
    )


def _merge(sections: dict[str, dict[str, Any]], more: Sections) -> None:
    for section, values in more.items():
        sections.setdefault(section, {}).update(values)


def _add_headers(
    binding: Binding, sections: dict[str, dict[str, Any]], headers: Mapping[str, str]
) -> None:
    extras = binding.extras
    if extras is None:
        return
    held = sections.setdefault(extras.section, {})
    contract = binding.own_keys.get(extras.section, _NO_KEYS)
    for key, value in headers.items():
        native_key = key.replace("-", extras.hyphen)
        native = TYPES[extras.type].write(value)
        if native_key in contract or native is None:
            continue
        if extras.limit is not None and len(held) >= extras.limit:
            return
        held[native_key] = native

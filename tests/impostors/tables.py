"""Impostors of the tables, built from the tables themselves: each slot, count, gate, delay, name.

What cannot be seen through the protocol is not built, and said here: the verbs of a settle rule
(words for people); the section of Laravel's score (the protocol gives fields, not sections);
`bytes` among the natives of Kafka's gate (its slot has made them text); the order of Artemis's two
floors (the greatest wins in any order); the largest delay on Kafka (tiers end before it).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tallystick.brokers import BROKERS
from tallystick.brokers.kafka import reinject
from tallystick.core import canonical, exact, settle, slot
from tallystick.core.binding import Binding
from tallystick.core.slot import Constant, Field, Slot
from tests.impostors.patches import Patches

__all__ = ["Mutant", "table_mutants"]


@dataclass(frozen=True, slots=True)
class Mutant:
    """An implementation that is wrong on purpose, and the cases that must notice."""

    name: str
    globs: tuple[str, ...]
    apply: Callable[[Patches], None]


_GLOBS = {
    "redis": ("standard/redis/**", "standard/redis_layout/**"),
    "sqs": ("standard/sqs/**", "standard/delay/**", "standard/version_gate_sqs/**"),
    "kafka": ("standard/kafka/**", "standard/backoff/**", "standard/version_gate_kafka/**"),
}
_OTHER_SOURCE = {
    "urn": "trace_id", "trace_id": "urn", "meta.id": "trace_id", "meta.lang": "meta.id",
    "meta.schema_version": "attempts", "meta.created_at": "attempts", "key": "urn",
    "attempts": "meta.schema_version", "fifo.group": "meta.id", "fifo.deduplication": "urn",
    "delay.seconds": "delay.milliseconds", "delay.milliseconds": "delay.seconds",
    "delay.due": "delay.milliseconds", "delay.score": "delay.seconds", "tier.topic": "queue",
    "queue": "tier.topic", "retry.attempts": "tier.milliseconds",
    "tier.milliseconds": "retry.attempts",
}  # fmt: skip
_OTHER_TYPE = {
    "text": "bytes", "bytes": "text", "integer": "text", "long": "integer",
    "string_attribute": "number_attribute", "number_attribute": "string_attribute",
}  # fmt: skip
_OTHER_MOVES = {
    "bounded": ("drop", "dead_letter"), "drop": ("bounded", "dead_letter"),
    "release": ("drop", "bounded"), "dead_letter": ("bounded", "drop"),
    "poison_off": ("drop", "release"), "poison_delete": ("release",),
}  # fmt: skip
_OTHER_GATED = {"ack": "write", "write": "leave", "leave": "write", "write_where_possible": "ack"}
_POISON_MOVES = ("bounded", "dead_letter", "native", "drop", "tiers")

Change = tuple[str, Binding]


def table_mutants() -> Iterator[Mutant]:
    """Give every impostor of a table."""
    for broker, row in BROKERS.items():
        for layout, binding in {"": row.binding, **row.layouts}.items():
            if broker != "memory" and layout != "legacy":
                label = f"{broker}-{layout}" if layout else broker
                globs = _GLOBS.get(broker, (f"standard/{broker}/**", f"standard/*_{broker}/**"))
                for name, changed in _changes(binding, layout):
                    apply = _install(broker, layout, changed)
                    yield Mutant(f"bindings/{label}/{name}", globs, apply)
    yield from _settling()
    yield from _orders()
    yield from _members()
    yield from _natives()
    yield from _constants()


def _install(broker: str, layout: str, changed: Binding) -> Callable[[Patches], None]:
    def apply(patches: Patches) -> None:
        row = BROKERS[broker]
        layouts = {**row.layouts, layout: changed} if layout else {
            name: changed if each is row.binding else each for name, each in row.layouts.items()
        }  # fmt: skip
        binding = row.binding if layout else changed
        patches.put(BROKERS, broker, replace(row, binding=binding, layouts=layouts))
        if broker == "kafka":
            patches.set(reinject, "BINDING", changed)

    return apply


def _changes(binding: Binding, layout: str) -> Iterator[Change]:
    for name, slots in _slot_changes(binding.slots, layout):
        yield f"slots/{name}", replace(binding, slots=slots)
    if binding.delay:
        yield from _delay_changes(binding, layout)
    if binding.retry:
        for name, slots in _slot_changes(binding.retry.slots, layout):
            yield f"retry/{name}", replace(binding, retry=replace(binding.retry, slots=slots))
        yield (
            "retry/by-the-other-rule",
            replace(binding, retry=replace(binding.retry, tier="requested")),
        )
    if not layout:
        yield from _count_changes(binding)
        yield from _gate_changes(binding)
        yield from _extras_changes(binding)
        yield from _place_changes(binding)
        yield from _settle_changes(binding)
    yield from _name_changes(binding)


def _slot_changes(slots: tuple[Slot, ...], layout: str) -> Iterator[tuple[str, tuple[Slot, ...]]]:
    for index, each in enumerate(slots):
        others: dict[str, tuple[Slot, ...]] = {
            "dropped": (),
            "renamed": (replace(each, key=f"{each.key}-x"),),
            "from-elsewhere": (replace(each, source=_other_source(each.source)),),
            "of-another-type": (replace(each, type=_OTHER_TYPE[each.type]),),
            "moved": (replace(each, section=f"{each.section}-x"),),
        }
        if layout:
            del others["moved"]
        for what, instead in others.items():
            yield f"{each.key}-{what}", (*slots[:index], *instead, *slots[index + 1 :])


def _other_source(source: str | Constant) -> str | Constant:
    if isinstance(source, str):
        return _OTHER_SOURCE[source]
    return Constant(source.value + 1 if isinstance(source.value, int) else f"{source.value}x")


def _delay_changes(binding: Binding, layout: str) -> Iterator[Change]:
    rule = binding.delay
    assert rule
    for name, slots in _slot_changes(rule.slots, layout):
        yield f"delay/{name}", replace(binding, delay=replace(rule, slots=slots))
    yield "delay/refused", replace(binding, delay=None)
    if not rule.tier:
        for step in (-1, 1):
            other = replace(rule, maximum=rule.maximum + step)
            yield f"delay/maximum{step:+d}", replace(binding, delay=other)
    if not rule.fifo:
        yield "delay/on-fifo", replace(binding, delay=replace(rule, fifo=True))
    if rule.needs:
        yield "delay/needs-nothing", replace(binding, delay=replace(rule, needs=""))
    if rule.tier:
        yield "delay/by-the-other-rule", replace(binding, delay=replace(rule, tier="retry"))
    if binding.visibility:
        for name, low, high in (("minimum+1", 1, 0), ("maximum-1", 0, -1), ("maximum+1", 0, 1)):
            other_bounds = replace(
                binding.visibility,
                minimum=binding.visibility.minimum + low,
                maximum=binding.visibility.maximum + high,
            )
            yield f"visibility/{name}", replace(binding, visibility=other_bounds)


def _count_changes(binding: Binding) -> Iterator[Change]:
    for index, count in enumerate(binding.counts):
        flipped = "override" if count.rule == "floor" else "floor"
        others = {
            "dropped": (),
            "flipped": (replace(count, rule=flipped),),
            "offset+1": (replace(count, offset=count.offset + 1),),
            "offset-1": (replace(count, offset=count.offset - 1),),
            "renamed": (replace(count, key=f"{count.key}-x"),),
            "moved": (replace(count, section=f"{count.section}-x"),),
        }
        for what, instead in others.items():
            counts = (*binding.counts[:index], *instead, *binding.counts[index + 1 :])
            yield f"counts/{count.key}-{what}", replace(binding, counts=counts)
    if binding.name == "pulsar":
        yield "counts/reversed", replace(binding, counts=tuple(reversed(binding.counts)))


def _gate_changes(binding: Binding) -> Iterator[Change]:
    gate = binding.gate
    if gate is None:
        return
    yield "gate/open", replace(binding, gate=None)
    for native in gate.natives:
        if (binding.name, native) != ("kafka", "bytes"):
            natives = tuple(each for each in gate.natives if each != native)
            yield f"gate/without-{native}", replace(binding, gate=replace(gate, natives=natives))
    if "boolean" not in gate.natives and "integer" in gate.natives:
        natives = (*gate.natives, "boolean")
        yield "gate/with-boolean", replace(binding, gate=replace(gate, natives=natives))


def _extras_changes(binding: Binding) -> Iterator[Change]:
    extras = binding.extras
    if extras is None:
        return
    yield "extras/dropped", replace(binding, extras=None)
    yield "extras/moved", replace(binding, extras=replace(extras, section=f"{extras.section}-x"))
    other = replace(extras, type=_OTHER_TYPE[extras.type])
    yield "extras/of-another-type", replace(binding, extras=other)
    if extras.limit:
        for limit in (extras.limit - 1, extras.limit + 1, None):
            yield f"extras/limit-{limit}", replace(binding, extras=replace(extras, limit=limit))
    if extras.hyphen != "-":
        yield "extras/hyphens", replace(binding, extras=replace(extras, hyphen="-"))


def _place_changes(binding: Binding) -> Iterator[Change]:
    places = {"pulsar": Field("properties", "bq-job"), "kafka": Field("headers", "bq-job")}
    if binding.route:
        yield "route/by-the-body", replace(binding, route=None)
    elif binding.name in places:
        yield "route/by-a-header", replace(binding, route=places[binding.name])
    header = Field("headers", "bq-original-topic")
    other = None if binding.original else header
    yield "original/elsewhere", replace(binding, original=other)


def _settle_changes(binding: Binding) -> Iterator[Change]:
    rule = binding.settle
    if rule.gated_off:
        other = "native" if rule.gated_off == "ack" else "ack"
        yield "settle/gated-off", replace(binding, settle=replace(rule, gated_off=other))
    for move in _POISON_MOVES:
        if move != rule.poison_off:
            changed = replace(rule, poison_off=move)
            yield f"settle/poison-off-{move}", replace(binding, settle=changed)
    move = "dead_letter" if rule.poison_delete == "drop" else "drop"
    yield "settle/poison-delete", replace(binding, settle=replace(rule, poison_delete=move))


def _name_changes(binding: Binding) -> Iterator[Change]:
    names = binding.names
    for role, template in names.templates.items():
        templates = {**names.templates, role: f"{template}-x"}
        yield f"names/{role}", replace(binding, names=replace(names, templates=templates))
    yield "names/suffix", replace(binding, names=replace(names, suffix=".dead"))
    if names.prefix:
        yield "names/prefix", replace(binding, names=replace(names, prefix="q:"))
    if names.fifo:
        yield "names/fifo", replace(binding, names=replace(names, fifo=".first"))


def _putting(table: Mapping[Any, Any], key: Any, value: Any) -> Callable[[Patches], None]:
    return lambda patches: patches.put(table, key, value)


def _taking(table: Mapping[Any, Any], key: Any) -> Callable[[Patches], None]:
    return lambda patches: patches.take(table, key)


def _constant(path: str, value: Any) -> Callable[[Patches], None]:
    return lambda patches: patches.constant(path, value)


def _settling() -> Iterator[Mutant]:
    for key, move in settle.GATED.items():
        name = f"settle/gated/{key[0]}-{'on' if key[1] else 'off'}"
        apply = _putting(settle.GATED, key, _OTHER_GATED[move])
        yield Mutant(name, ("standard/version_gate_*/**",), apply)
    for row, move in settle.EXHAUSTED.items():
        for other in _OTHER_MOVES[move]:
            name = f"settle/exhausted/{row[0]}-{row[1]}-{'on' if row[2] else 'off'}-{other}"
            apply = _putting(settle.EXHAUSTED, row, other)
            yield Mutant(name, ("standard/pulsar/**", "standard/redis/**"), apply)


def _orders() -> Iterator[Mutant]:
    globs = ("standard/bytes/**", "standard/make/**", "standard/dead_letter_bytes/**")
    for name in ("MESSAGE_ORDER", "META_ORDER", "DEAD_LETTER_ORDER"):
        order = getattr(canonical, name)
        path = f"core.canonical:{name}"
        for at in range(len(order) - 1):
            swapped = (*order[:at], order[at + 1], order[at], *order[at + 2 :])
            yield Mutant(f"order/{name}/swap-{order[at]}", globs, _constant(path, swapped))
        yield Mutant(f"order/{name}/sorted", globs, _constant(path, tuple(sorted(order))))


def _members() -> Iterator[Mutant]:
    globs = ("standard/bytes/types/**", "standard/bytes/folding/**")
    for path, kind in exact.TYPED.items():
        name = f"typed/{'.'.join(path)}"
        yield Mutant(f"{name}/any", globs, _taking(exact.TYPED, path))
        other = {"string": "int64", "int64": "string", "object": "string"}[kind]
        yield Mutant(f"{name}/{other}", globs, _putting(exact.TYPED, path, other))
    reading = ("standard/forbidden_keys/**", "standard/bytes/**")
    for constant in ("FORBIDDEN", "FORBIDDEN_META"):
        members = getattr(exact, constant)
        for each in members:
            fewer = tuple(name for name in members if name != each)
            apply = _constant(f"core.exact:{constant}", fewer)
            yield Mutant(f"forbidden/{constant}-without-{each}", reading, apply)
    for char in exact.ASCII_SPACE:
        fewer_spaces = exact.ASCII_SPACE.replace(char, "")
        apply = _constant("core.exact:ASCII_SPACE", fewer_spaces)
        yield Mutant(f"space/without-{ord(char):02x}", ("standard/trim/**",), apply)
    for char in "\u00a0\u0085\u2003\u2028\u3000\ufeff\u200b\u180e\x1f":
        apply = _constant("core.exact:ASCII_SPACE", exact.ASCII_SPACE + char)
        yield Mutant(f"space/with-{ord(char):04x}", ("standard/trim/**",), apply)


def _natives() -> Iterator[Mutant]:
    globs = ("standard/*/projection/**", "standard/*/options/**")
    for kind in slot.TYPES:
        wrong = replace(slot.TYPES[kind], write=lambda value: f"{value}!")
        yield Mutant(f"natives/{kind}", globs, _writing(kind, wrong))
    attribute = slot.TYPES["number_attribute"].write
    kept = replace(
        slot.TYPES["string_attribute"],
        write=lambda value: {**attribute(value), "DataType": "String"},
    )
    apply = _writing("string_attribute", kept)
    yield Mutant("natives/empty-attributes-kept", globs, apply)


def _writing(kind: str, wrong: slot.NativeType) -> Callable[[Patches], None]:
    """Give the patch of a native type; bindings look their types up once, so they are made anew."""

    def apply(patches: Patches) -> None:
        patches.put(slot.TYPES, kind, wrong)
        for broker, row in BROKERS.items():
            layouts = {name: replace(each) for name, each in row.layouts.items()}
            patches.put(
                BROKERS, broker, replace(row, binding=replace(row.binding), layouts=layouts)
            )

    return apply


_CONSTANTS: dict[str, tuple[str, Any, str]] = {
    "max-attempts-2": ("core.settle:MAX_ATTEMPTS", 2, "standard/*/exhaustion/**"),
    "max-attempts-4": ("core.settle:MAX_ATTEMPTS", 4, "standard/*/exhaustion/**"),
    "max-count-less": ("core.binding:MAX_COUNT", 2**31 - 2, "standard/*/counts/**"),
    "max-count-more": ("core.binding:MAX_COUNT", 2**31, "standard/*/counts/**"),
    "other-tiers": ("core.delay:DEFAULT_RETRY_TIERS_MS", (5000, 30000), "standard/backoff/**"),
    "parked-delay": ("brokers.kafka.reinject:PARKED_HEADERS", ("bq-delay",), "standard/backoff/**"),
    "frame-mark": ("brokers.redis.element:_MARK", b'"frame"', "standard/redis_element/**"),
}


def _constants() -> Iterator[Mutant]:
    for name, (path, value, glob) in _CONSTANTS.items():
        yield Mutant(f"constants/{name}", (glob,), _constant(path, value))

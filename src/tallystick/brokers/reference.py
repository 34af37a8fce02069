"""Write the reference page of the bindings from their tables.

`docs/reference/bindings.md` is this text. A test compares the two, so a change of a table always
changes the page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tallystick.brokers import BROKERS
from tallystick.core.delay import DEFAULT_RETRY_TIERS_MS
from tallystick.core.settle import EXHAUSTED, GATED
from tallystick.core.slot import Constant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tallystick.core.binding import Binding
    from tallystick.core.slot import Slot

__all__ = ["describe", "reference"]

_HEAD = """# Broker bindings: the tables

Written from the tables in `tallystick.brokers` by `tallystick.brokers.reference`; do not edit.
The rules are explained in [the concept page](../concepts/bindings.md).
"""


def reference() -> str:
    """Give the whole page."""
    parts = [_HEAD]
    for broker, row in BROKERS.items():
        schemes = ", ".join(f"`{scheme}`" for scheme in row.schemes)
        parts.append(f"## {row.title}\n\nName `{broker}`; URL schemes {schemes}.\n")
        layouts = {layout: each for layout, each in row.layouts.items() if each != row.binding}
        parts.append(describe(row.binding))
        for layout, binding in layouts.items():
            parts.append(f"### {row.title}: layout `{layout}`\n")
            parts.append(describe(binding))
    parts.append(_settling())
    tiers = ", ".join(map(str, DEFAULT_RETRY_TIERS_MS))
    parts.append(f"## Default retry tiers\n\n{tiers} ms.\n")
    return "\n".join(parts)


def describe(binding: Binding) -> str:
    """Give one binding's table as Markdown, every row and rule of it."""
    parts = [_slots("Carried with every message", binding.slots)]
    rules = (("Added by a delay", binding.delay), ("Changed by a retry", binding.retry))
    parts += [_slots(title, rule.slots) for title, rule in rules if rule is not None]
    parts.append(_table(("rule", "value"), _rules(binding)))
    return "\n".join(part for part in parts if part)


def _rules(binding: Binding) -> Iterable[tuple[str, str]]:
    counts = ", then ".join(
        f"{each.rule} `{each.section}.{each.key}` - {each.offset}" for each in binding.counts
    )
    yield "attempts", counts or "from the body"
    gate, extras = binding.gate, binding.extras
    natives = ", ".join(gate.natives) if gate else ""
    yield "version gate", f"`{gate.section}.{gate.key}` as {natives}" if gate else "none"
    if extras:
        limit = "no limit" if extras.limit is None else f"at most {extras.limit} fields in all"
        yield "headers are carried in", f"`{extras.section}` as {extras.type}, {limit}"
        yield "hyphens in their names", f"`{extras.hyphen}`"
    else:
        yield "headers are carried in", "nothing: they are dropped"
    delay = binding.delay
    if delay:
        fifo = "allowed" if delay.fifo else "refused"
        extra = f"needs {delay.needs or 'nothing'}; tier rule {delay.tier or 'none'}"
        yield "delay", f"up to {delay.maximum} s; on FIFO {fifo}; {extra}"
    yield "retry", f"tier rule {binding.retry.tier}" if binding.retry else "no fields of its own"
    if binding.visibility:
        yield "visibility", f"{binding.visibility.minimum}..{binding.visibility.maximum} s"
    for title, field in (("routed by", binding.route), ("original queue", binding.original)):
        if field:
            yield title, f"`{field.section}.{field.key}`"
    for role, template in binding.names.templates.items():
        yield f"name: {role}", f"`{template}`"
    names = binding.names
    yield "name parts", f"suffix `{names.suffix}`, prefix `{names.prefix}`, fifo `{names.fifo}`"
    settle = binding.settle
    yield "gated, dead-lettering off", settle.gated_off or "no gate"
    yield "poison, dead-lettering off", settle.poison_off
    yield "poison, strategy delete", settle.poison_delete
    for outcome, verb in settle.verbs.items():
        yield f"done by: {outcome}", verb


def _slots(title: str, slots: Iterable[Slot]) -> str:
    rows = [(f"`{slot.section}`", f"`{slot.key}`", _source(slot), slot.type) for slot in slots]
    return f"{title}:\n\n{_table(('section', 'key', 'from', 'type'), rows)}" if rows else ""


def _source(slot: Slot) -> str:
    source = slot.source
    return f"constant `{source.value}`" if isinstance(source, Constant) else source


def _settling() -> str:
    gated = [(strategy, _on(on), move) for (strategy, on), move in GATED.items()]
    ended = [(kind, strategy, _on(on), move) for (kind, strategy, on), move in EXHAUSTED.items()]
    return (
        "## Settling\n\nA message turned away by the version gate:\n\n"
        + _table(("strategy", "dead-lettering", "move"), gated)
        + "\nA delivery that failed:\n\n"
        + _table(("kind", "strategy", "dead-lettering", "move"), ended)
    )


def _on(value: bool) -> str:
    return "on" if value else "off"


def _table(head: tuple[str, ...], rows: Iterable[tuple[Any, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)

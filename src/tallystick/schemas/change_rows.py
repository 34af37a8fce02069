"""The rows of a comparison that need no recursion: one keyword on both sides.

Rule names follow the change types of the Confluent registry, in lower case with hyphens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from tallystick.schemas.containment.nodes import freeze
from tallystick.schemas.values import escape, same

__all__ = [
    "Change",
    "Effect",
    "added_row",
    "bound_rows",
    "mapping_of",
    "names_of",
    "note_rows",
    "removed_row",
    "text_rows",
    "type_row",
    "value_rows",
]

Effect = Literal["breaking", "compatible", "unknown"]
_FEW: Final = 5
_WIDE: Final = 60
_NOTES: Final = ("title", "description", "default", "$id", "examples", "$comment")
_MIN: Final = (
    "minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains",
)  # fmt: skip
_MAX: Final = (
    "maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "maxContains",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Change:
    """One difference: a pointer into the schema, a rule, its effect, and a message."""

    pointer: str
    rule: str
    effect: Effect
    message: str


def mapping_of(schema: dict[str, Any], key: str) -> dict[str, Any]:
    """Give the mapping under a keyword, none where a dialect lets anything stand."""
    value = schema.get(key)
    return value if isinstance(value, dict) else {}


def names_of(value: Any) -> set[str]:
    """Give the names of a list, none of anything else."""
    return set(value) if isinstance(value, list) else set()


def note_rows(old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[Change]:
    """Rows for annotations, which constrain nothing."""
    for key in _NOTES:
        if not same(old.get(key), new.get(key)):
            name = key.strip("$")
            yield Change(f"{at}/{key}", f"{name}-changed", "compatible", f"{key} changed")


def _types(schema: dict[str, Any]) -> set[str]:
    named = schema.get("type")
    types = {named} if isinstance(named, str) else names_of(named)
    return types or {"array", "boolean", "null", "number", "object", "string"}


def type_row(old: dict[str, Any], new: dict[str, Any]) -> tuple[str, Effect, str] | None:
    """Give the row for `type`, if it changed."""
    before, after = _types(old), _types(new)
    if before == after:
        return None
    wide = after | ({"integer"} if "number" in after else set())
    was, now = "/".join(sorted(before)), "/".join(sorted(after))
    if before <= wide:
        return "type-extended", "compatible", f"the type changed from {was} to {now}"
    narrow = before | ({"integer"} if "number" in before else set())
    rule = "type-narrowed" if after <= narrow else "type-changed"
    return rule, "breaking", f"the type changed from {was} to {now}"


def value_rows(old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[Change]:
    """Rows for `enum` and `const`."""
    before = old.get("enum", [old["const"]] if "const" in old else None)
    after = new.get("enum", [new["const"]] if "const" in new else None)
    place = f"{at}/{'const' if 'const' in new else 'enum'}"
    if before is None and after is None:
        return
    if after is None:
        yield Change(place, "enum-array-extended", "compatible", "any value is now allowed")
        return
    if before is None:
        message = "a list of allowed values was added"
        yield Change(place, "enum-array-changed", "unknown", message)
        return
    listed, known = set(map(freeze, after)), set(map(freeze, before))
    gone = [one for one in before if freeze(one) not in listed]
    fresh = [one for one in after if freeze(one) not in known]
    if gone:
        rule = "enum-array-changed" if fresh else "enum-array-narrowed"
        yield Change(place, rule, "breaking", f"removed: {_some(gone)}")
    elif fresh:
        yield Change(place, "enum-array-extended", "compatible", f"added: {_some(fresh)}")


def _some(values: list[Any]) -> str:
    """Write the first few values, each cut short, and say how many more there are."""
    texts = [repr(value) for value in values[:_FEW]]
    shown = ", ".join(one if len(one) <= _WIDE else f"{one[:_WIDE]}..." for one in texts)
    more = len(values) - _FEW
    return f"{shown} and {more} more" if more > 0 else shown


def bound_rows(old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[Change]:
    """Rows for lower and upper bounds."""
    words = {True: ("increased", "decreased"), False: ("decreased", "increased")}
    for keys, low in ((_MIN, True), (_MAX, False)):
        for key in keys:
            was, now = old.get(key), new.get(key)
            if was == now or isinstance(was, str | list) or isinstance(now, str | list):
                continue
            name = _kebab(key)
            if was is None:
                row = (f"{name}-added", "breaking", f"{key} {now} was added")
            elif now is None:
                row = (f"{name}-removed", "compatible", f"{key} {was} was removed")
            else:
                tighter = (now > was) is low
                word = words[low][0 if tighter else 1]
                effect = "breaking" if tighter else "compatible"
                row = (f"{name}-{word}", effect, f"{key} changed from {was} to {now}")
            yield Change(f"{at}/{key}", row[0], row[1], row[2])  # type: ignore[arg-type]


def _kebab(key: str) -> str:
    return "".join(f"-{one.lower()}" if one.isupper() else one for one in key)


def text_rows(old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[Change]:
    """Rows for keywords compared as they are written."""
    for key in ("pattern", "format", "multipleOf", "contentEncoding", "contentMediaType"):
        was, now = old.get(key), new.get(key)
        if was == now:
            continue
        name, place = _kebab(key), f"{at}/{key}"
        if was is None:
            yield Change(place, f"{name}-added", "breaking", f"{key} {now} was added")
        elif now is None:
            yield Change(place, f"{name}-removed", "compatible", f"{key} {was} was removed")
        else:
            effect: Effect = "unknown"
            if key == "multipleOf" and now and was % now == 0:
                effect = "compatible"
            yield Change(place, f"{name}-changed", effect, f"{key} changed from {was} to {now}")


def _model(schema: dict[str, Any]) -> str:
    """Name the content model: open, closed, or partially open."""
    if schema.get("patternProperties"):
        return "partially-open"
    extra = schema.get("additionalProperties", True)
    if extra is False:
        return "closed"
    return "open" if extra is True or extra == {} else "partially-open"


def added_row(old: dict[str, Any], schema: Any, name: str, at: str, *, required: bool) -> Change:
    """Give the row of a property that is new."""
    place, model = f"{at}/properties/{escape(name)}", _model(old)
    kind = "open" if model == "open" else "unopen"
    if required:
        rule = f"required-property-added-to-{kind}-content-model"
        return Change(place, rule, "breaking", f"new required property {name!r}")
    if schema is False:
        rule = f"property-with-false-added-to-{kind}-content-model"
        known: Effect = "compatible" if model == "closed" else "breaking"
        return Change(place, rule, known, f"property {name!r} is now rejected")
    if model == "open" and (schema is True or schema == {}):
        rule = "property-with-empty-schema-added-to-open-content-model"
        return Change(place, rule, "compatible", f"new optional property {name!r}")
    effect: Effect = {"open": "breaking", "closed": "compatible"}.get(model, "unknown")  # type: ignore[assignment]
    rule = f"optional-property-added-to-{kind}-content-model"
    return Change(place, rule, effect, f"new optional property {name!r}")


def removed_row(new: dict[str, Any], schema: Any, name: str, at: str) -> Change:
    """Give the row of a property that is gone."""
    place, model = f"{at}/properties/{escape(name)}", _model(new)
    if schema is False and model == "closed":
        rule = "property-with-false-removed-from-closed-content-model"
        return Change(
            place, rule, "compatible", f"property {name!r} was removed; it was never allowed"
        )
    effect: Effect = {"open": "compatible", "closed": "breaking"}.get(model, "unknown")  # type: ignore[assignment]
    return Change(place, f"property-removed-from-{model}-content-model", effect,
                  f"property {name!r} was removed")  # fmt: skip

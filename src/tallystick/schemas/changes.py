"""List the changes between two schemas, with the rule names of the Confluent registry.

A row has a pointer and a rule, and says whether that rule alone accepts fewer documents
(`breaking`), does not (`compatible`), or whether it depends (`unknown`). Rows only explain: the
verdict comes from a proof (`tallystick.schemas.witness`) or from a mode's policy.

`$ref`s are followed on both sides, each pair of places once. Pointers are into the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote

from tallystick.schemas.change_rows import (
    Change,
    Effect,
    added_row,
    bound_rows,
    mapping_of,
    names_of,
    note_rows,
    removed_row,
    text_rows,
    type_row,
    value_rows,
)
from tallystick.schemas.refs import CONSTRAINING, dialect_of, find_pointer, is_alias
from tallystick.schemas.values import escape, same

__all__ = ["Change", "Effect", "find_changes"]

_MAX_ROWS: Final = 500
_ONE: Final = {
    "not": "not-type", "contains": "contains", "propertyNames": "property-names", "if": "if",
    "then": "then", "else": "else", "additionalItems": "additional-items",
    "unevaluatedItems": "unevaluated-items", "unevaluatedProperties": "unevaluated-properties",
}  # fmt: skip


def find_changes(old: Any, new: Any) -> tuple[Change, ...]:
    """List the differences of two self-contained schemas, in the order of their places."""
    walk = _Walk(old, new)
    rows: list[Change] = []
    for row in walk.compare(old, new, ""):
        rows.append(row)
        if len(rows) >= _MAX_ROWS:
            break
    return tuple(sorted(rows, key=lambda row: (row.pointer, row.rule)))


class _Walk:
    """Two documents walked side by side."""

    def __init__(self, old: Any, new: Any) -> None:
        self.roots = (old, new)
        self.dialects = (dialect_of(old), dialect_of(new))
        self.seen: set[tuple[int, int]] = set()

    def resolve(self, side: int, schema: Any) -> Any:
        """Go where a schema leads that is nothing but a reference."""
        for _ in range(50):
            if not isinstance(schema, dict) or not is_alias(schema, self.dialects[side]):
                break
            target = self.target(side, schema)
            if target is None:
                break
            schema = target
        return schema

    def target(self, side: int, schema: dict[str, Any]) -> Any:
        """Give what a `$ref` leads to, or None."""
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        try:
            return find_pointer(self.roots[side], unquote(reference[1:]))
        except KeyError:
            return None

    def compare(self, old: Any, new: Any, at: str) -> Iterator[Change]:
        old, new = self.resolve(0, old), self.resolve(1, new)
        if isinstance(old, bool) or isinstance(new, bool):
            yield from self.booleans(old, new, at)
            return
        if not isinstance(old, dict) or not isinstance(new, dict):
            return
        if same(old, new) and "$ref" not in str(old):
            return
        if (id(old), id(new)) in self.seen:
            return
        self.seen.add((id(old), id(new)))
        if (_nullable(old) is None) is not (_nullable(new) is None):
            yield from self.nullable(old, new, at)
            return
        yield from note_rows(old, new, at)
        yield from self.references(old, new, at)
        if type_row(old, new):
            yield Change(f"{at}/type" if at else "/type", *type_row(old, new))  # type: ignore[misc]
        yield from value_rows(old, new, at)
        yield from bound_rows(old, new, at)
        yield from text_rows(old, new, at)
        yield from self.objects(old, new, at)
        yield from self.arrays(old, new, at)
        yield from self.combined(old, new, at)

    def references(self, old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[Change]:
        """Compare what a `$ref` with something beside it brings in."""
        was, now = self.target(0, old), self.target(1, new)
        if was is not None and now is not None:
            yield from self.compare(was, now, at)
        elif was is not None:
            yield Change(f"{at}/$ref", "reference-removed", "unknown", "the reference was removed")
        elif now is not None:
            yield Change(f"{at}/$ref", "reference-added", "unknown", "a reference was added")

    def nullable(self, old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[Change]:
        """Compare what one side wraps as `anyOf: [..., {"type": "null"}]` and the other does not.

        Annotations beside the wrap constrain nothing.
        """
        was, now = _nullable(old), _nullable(new)
        if now is not None:
            yield Change(at, "nullable-added", "compatible", "null is now accepted")
            yield from self.compare(old, now[1], f"{at}{now[0]}")
        elif was is not None:
            takes_null = "null" in names_of(new.get("type")) or new.get("type") == "null"
            if not takes_null:
                yield Change(at, "nullable-removed", "breaking", "null is no longer accepted")
            yield from self.compare(was[1], new, at)

    def booleans(self, old: Any, new: Any, at: str) -> Iterator[Change]:
        if old is new or (new is True and old == {}) or (old is True and new == {}):
            return
        if new is True or new == {} or old is False:
            yield Change(at, "schema-removed", "compatible", "every value is now accepted"
                         if new is True else "no value was accepted before")  # fmt: skip
        elif new is False:
            yield Change(at, "schema-added", "breaking", "no value is accepted now")
        else:
            yield Change(at, "schema-added", "breaking", "any value was accepted before")

    def sub(self, old: dict[str, Any], new: dict[str, Any], key: str, at: str) -> Iterator[Change]:
        """Compare the schema of one keyword on both sides, where either has it."""
        name = _ONE.get(key, key)
        place = f"{at}/{key}"
        if key in old and key in new:
            rows = list(self.compare(old[key], new[key], place))
            if key in ("not", "if"):
                rows = [Change(row.pointer, row.rule, "unknown", row.message) for row in rows]
            yield from rows
        elif key in new and new[key] is not True and new[key] != {}:
            effect: Effect = "unknown" if key in ("if", "then", "else") else "breaking"
            yield Change(place, f"{name}-added", effect, f"{key} is a new constraint")
        elif key in old:
            effect = "unknown" if key in ("if", "then", "else") else "compatible"
            yield Change(place, f"{name}-removed", effect, f"{key} was removed")

    def objects(self, old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[Change]:
        before, after = old.get("properties", {}), new.get("properties", {})
        needed, needs = names_of(old.get("required")), names_of(new.get("required"))
        for name in sorted(needs - needed):
            if name in before or name not in after:
                row = Change(f"{at}/required", "required-attribute-added", "breaking",
                             f"property {name!r} is now required")  # fmt: skip
                yield row
        for name in sorted(needed - needs):
            yield Change(f"{at}/required", "required-attribute-removed", "compatible",
                         f"property {name!r} is no longer required")  # fmt: skip
        for name in sorted(after.keys() - before.keys()):
            yield added_row(old, after[name], name, at, required=name in needs)
        for name in sorted(before.keys() - after.keys()):
            yield removed_row(new, before[name], name, at)
        for name in sorted(before.keys() & after.keys()):
            yield from self.compare(before[name], after[name], f"{at}/properties/{escape(name)}")
        yield from self.mapped(old, new, "patternProperties", at)
        yield from self.additional(old, new, at)
        for key in ("propertyNames", "unevaluatedProperties"):
            yield from self.sub(old, new, key, at)
        for key in ("dependencies", "dependentRequired", "dependentSchemas"):
            yield from self.dependencies(old, new, key, at)

    def additional(self, old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[Change]:
        before, after = old.get("additionalProperties", True), new.get("additionalProperties", True)
        place = f"{at}/additionalProperties"
        if same(before, after):
            return
        if after is False:
            message = "other properties were allowed and are now rejected"
            yield Change(place, "additional-properties-removed", "breaking", message)
        elif after is True or after == {}:
            yield Change(
                place,
                "additional-properties-added",
                "compatible",
                "other properties are now allowed",
            )
        elif before is True or before == {}:
            message = "other properties were free and are now constrained"
            yield Change(place, "additional-properties-narrowed", "breaking", message)
        elif before is False:
            message = "other properties were rejected and are now allowed"
            yield Change(place, "additional-properties-extended", "compatible", message)
        else:
            yield from self.compare(before, after, place)

    def mapped(
        self, old: dict[str, Any], new: dict[str, Any], key: str, at: str
    ) -> Iterator[Change]:
        before, after = old.get(key, {}), new.get(key, {})
        for name in sorted(before.keys() | after.keys()):
            place = f"{at}/{key}/{escape(name)}"
            if name not in before:
                message = f"properties that match {name!r} are now constrained"
                yield Change(place, "pattern-property-added", "unknown", message)
            elif name not in after:
                message = f"properties that match {name!r} are no longer constrained"
                yield Change(place, "pattern-property-removed", "unknown", message)
            else:
                yield from self.compare(before[name], after[name], place)

    def dependencies(
        self, old: dict[str, Any], new: dict[str, Any], key: str, at: str
    ) -> Iterator[Change]:
        before, after = mapping_of(old, key), mapping_of(new, key)
        for name in sorted(before.keys() | after.keys()):
            place = f"{at}/{key}/{escape(name)}"
            was, now = before.get(name), after.get(name)
            kind = "dependency-array" if isinstance(was or now, list) else "dependency-schema"
            if isinstance(was, list) and isinstance(now, dict):
                was = {"required": was}
            elif isinstance(now, list) and isinstance(was, dict):
                now = {"required": now}
            if now is None:
                yield Change(
                    place,
                    f"{kind}-removed",
                    "compatible",
                    f"{name!r} no longer needs other properties",
                )
            elif was is None:
                yield Change(
                    place, f"{kind}-added", "breaking", f"{name!r} now needs other properties"
                )
            elif isinstance(was, list) and isinstance(now, list):
                more, fewer = names_of(now) - names_of(was), names_of(was) - names_of(now)
                if more:
                    rule = f"{kind}-changed" if fewer else f"{kind}-extended"
                    yield Change(place, rule, "breaking", f"{name!r} now needs {sorted(more)}")
                elif fewer:
                    message = f"{name!r} no longer needs {sorted(fewer)}"
                    yield Change(place, f"{kind}-narrowed", "compatible", message)
            else:
                yield from self.compare(was, now, place)

    def arrays(self, old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[Change]:
        before, after = old.get("items", True), new.get("items", True)
        if isinstance(before, list) or isinstance(after, list):
            yield from self.tuples(before, after, f"{at}/items")
        elif "items" in old or "items" in new:
            yield from self.compare(before, after, f"{at}/items")
        if "prefixItems" in old or "prefixItems" in new:
            yield from self.tuples(
                old.get("prefixItems"), new.get("prefixItems"), f"{at}/prefixItems"
            )
        for key in ("contains", "additionalItems", "unevaluatedItems"):
            yield from self.sub(old, new, key, at)
        if old.get("uniqueItems", False) is not new.get("uniqueItems", False):
            added = bool(new.get("uniqueItems"))
            yield Change(
                f"{at}/uniqueItems",
                "unique-items-added" if added else "unique-items-removed",
                "breaking" if added else "compatible",
                "items must now be unique" if added else "items no longer have to be unique",
            )

    def tuples(self, before: Any, after: Any, at: str) -> Iterator[Change]:
        was = before if isinstance(before, list) else []
        now = after if isinstance(after, list) else []
        for place, (one, two) in enumerate(zip(was, now, strict=False)):
            yield from self.compare(one, two, f"{at}/{place}")
        for place in range(len(was), len(now)):
            message = f"item {place} is now constrained"
            yield Change(f"{at}/{place}", "item-added", "unknown", message)
        for place in range(len(now), len(was)):
            message = f"item {place} is no longer constrained on its own"
            yield Change(f"{at}/{place}", "item-removed", "unknown", message)
        if was and isinstance(after, dict | bool) and after is not True:
            yield Change(at, "items-changed", "unknown", "a tuple became a list")

    def combined(self, old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[Change]:
        for key in ("allOf", "anyOf", "oneOf"):
            before, after = old.get(key), new.get(key)
            place = f"{at}/{key}"
            if before is None and after is None:
                continue
            if before is None or after is None:
                rule = "combined-type-changed"
                yield Change(place, rule, "unknown", f"{key} was {'added' if after else 'removed'}")
            elif len(before) == len(after):
                for spot, (one, two) in enumerate(zip(before, after, strict=True)):
                    for row in self.compare(one, two, f"{place}/{spot}"):
                        effect: Effect = row.effect if key == "allOf" else "unknown"
                        yield Change(row.pointer, row.rule, effect, row.message)
            else:
                grew = len(after) > len(before)
                kind = "product-type" if key == "allOf" else "sum-type"
                rule = f"{kind}-{'extended' if grew else 'narrowed'}"
                message = f"{key} changed from {len(before)} to {len(after)} schemas"
                yield Change(place, rule, "unknown", message)
        for key in ("not", "if", "then", "else"):
            yield from self.sub(old, new, key, at)


def _nullable(schema: dict[str, Any]) -> tuple[str, Any] | None:
    """Give the place and the schema of what stands beside null, if a schema is just that."""
    for key in ("anyOf", "oneOf"):
        held = schema.get(key)
        if isinstance(held, list) and len(held) == 2 and schema.keys() & CONSTRAINING == {key}:
            for spot, other in ((0, 1), (1, 0)):
                if held[other] == {"type": "null"}:
                    return f"/{key}/{spot}", held[spot]
    return None

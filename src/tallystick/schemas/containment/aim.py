"""Guess documents that may show a break, if neither the proof nor the search gave an answer.

The guesses use the constants, bounds, names and patterns of the two schemas. Members are dropped,
added and changed one at a time. A guess may be wrong: the validator checks every document, and
documents that it does not confirm are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final
from urllib.parse import unquote

from tallystick.schemas.containment.language import find_words
from tallystick.schemas.containment.nodes import Undecided
from tallystick.schemas.containment.pattern import NotRegular, approximate, pattern_language
from tallystick.schemas.containment.predicates import SAMPLES
from tallystick.schemas.refs import find_pointer

__all__ = ["aim", "guess"]

_ROUNDS: Final = 120
_DEEPEST: Final = 12
_MOST: Final = 400
_LARGEST: Final = 2_000
"""How many places a document may have: where references branch, depth alone does not end it."""
_ANYTHING: Final[tuple[Any, ...]] = (None, True, 0, 1, -1, 1.5, "", "a", "0", [], {}, ["a"], [1])


def aim(old: Any, new: Any) -> Iterator[Any]:
    """Give documents that look like those of `old`, each changed in one place."""
    names, values = _harvest(old, new)
    for number in range(_ROUNDS):
        maker = _Maker(old, Random(number), values)  # noqa: S311 - a repeatable choice
        document = maker.make(old, 0)
        yield document
        yield from _changed(document, names, values, maker.random)


def guess(schema: Any, count: int) -> Iterator[Any]:
    """Give a few documents that may conform to a schema."""
    for number in range(count):
        yield _Maker(schema, Random(number), []).make(schema, 0)  # noqa: S311 - as above


def _harvest(*schemas: Any) -> tuple[list[str], list[Any]]:
    """Collect the names and the values that schemas speak of, and values just beside them."""
    names: dict[str, None] = {}
    values: list[Any] = list(_ANYTHING)
    stack = list(schemas)
    while stack and len(values) < _MOST:
        node = stack.pop()
        if isinstance(node, list):
            stack.extend(node)
            continue
        if not isinstance(node, dict):
            continue
        for keyword, item in node.items():
            if keyword in ("properties", "dependencies", "dependentRequired", "dependentSchemas"):
                names.update(dict.fromkeys(item if isinstance(item, dict) else ()))
            elif keyword == "required" and isinstance(item, list):
                names.update(dict.fromkeys(one for one in item if isinstance(one, str)))
            elif keyword in ("enum", "examples") and isinstance(item, list):
                values.extend(item[:20])
            elif keyword in ("const", "default"):
                values.append(item)
            elif keyword in ("pattern", "format") and isinstance(item, str):
                values.extend(_words(item) if keyword == "pattern" else SAMPLES.get(item, ()))
            elif isinstance(item, int | float) and not isinstance(item, bool):
                values.extend(_beside(keyword, item))
        if isinstance(node.get("patternProperties"), dict):
            names.update(dict.fromkeys(w for p in node["patternProperties"] for w in _words(p)[:2]))
        stack.extend(node.values())
    return [*names, "other"], values


def _beside(keyword: str, limit: float) -> list[Any]:
    if keyword in ("minLength", "maxLength"):
        return [
            "a" * size for size in (int(limit) - 1, int(limit), int(limit) + 1) if 0 <= size < 5000
        ]
    return [limit, limit + 1, limit - 1, limit + 0.5]


def _words(pattern: str) -> list[str]:
    """Give a few texts that a pattern may match."""
    for text in (pattern, approximate(pattern)):
        try:
            return find_words(pattern_language(text), 4)[0]
        except (NotRegular, Undecided, RecursionError):
            continue
    return []


class _Maker:
    """One document on its way, from one row of choices."""

    def __init__(self, root: Any, random: Random, values: list[Any]) -> None:
        self.root = root
        self.random = random
        self.values = values
        self.left = _LARGEST

    def make(self, schema: Any, depth: int) -> Any:
        """Make a value that may conform."""
        self.left -= 1
        if not isinstance(schema, dict) or depth > _DEEPEST or self.left < 0:
            return self.random.choice(_ANYTHING)
        if isinstance(schema.get("$ref"), str):
            try:
                target = find_pointer(self.root, unquote(schema["$ref"][1:]))
            except KeyError:
                return None
            return self.make(target, depth + 1)
        if "const" in schema:
            return schema["const"]
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return self.random.choice(schema["enum"])
        value = self.typed(schema, depth)
        parts = [*schema.get("allOf", ())]
        parts += [self.random.choice(schema[key]) for key in ("anyOf", "oneOf") if schema.get(key)]
        if "if" in schema:
            chosen = self.random.random() < 0.5
            parts += (
                [schema["if"], schema.get("then", True)] if chosen else [schema.get("else", True)]
            )
        for part in parts:
            if isinstance(part, dict):
                other = self.make(part, depth + 1)
                value = (
                    {**value, **other}
                    if isinstance(value, dict) and isinstance(other, dict)
                    else other
                )
        return value

    def typed(self, schema: dict[str, Any], depth: int) -> Any:
        named = schema.get("type")
        kind = self.random.choice(named) if isinstance(named, list) and named else named
        if kind is None:
            kind = next((one for key, one in _HINTS.items() if key in schema), "object")
        if kind == "object":
            return self.members(schema, depth)
        if kind == "array":
            return self.items(schema, depth)
        if kind == "string":
            return self.text(schema)
        if kind in ("integer", "number"):
            low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
            high = schema.get("maximum", schema.get("exclusiveMaximum", low + 4) - 1)
            step = schema.get("multipleOf", 1)
            return self.random.choice((low, high, (low // step + 1) * step, 1, 0, step))
        return self.random.choice((True, False)) if kind == "boolean" else None

    def members(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        needed = set(schema.get("required", ()))
        share = self.random.random()
        rows = schema.get("properties", {})
        out = {
            name: self.make(one, depth + 1)
            for name, one in rows.items()
            if name in needed or self.random.random() < share
        }
        extra = schema.get("additionalProperties", True)
        out.update({name: self.make(extra, depth + 1) for name in sorted(needed - rows.keys())})
        for pattern, one in schema.get("patternProperties", {}).items():
            if self.random.random() < share:
                out.update({word: self.make(one, depth + 1) for word in _words(pattern)[:1]})
        return out

    def items(self, schema: dict[str, Any], depth: int) -> list[Any]:
        prefix = schema.get("prefixItems", schema.get("items"))
        prefix = prefix if isinstance(prefix, list) else []
        rest = schema.get("items", True) if not isinstance(schema.get("items"), list) else True
        least = max(int(schema.get("minItems", 0)), len(prefix))
        count = min(least + self.random.randint(0, 2), _MOST)
        made = [
            self.make(prefix[at] if at < len(prefix) else rest, depth + 1) for at in range(count)
        ]
        return [*made, self.make(schema["contains"], depth + 1)] if "contains" in schema else made

    def text(self, schema: dict[str, Any]) -> str:
        if isinstance(schema.get("pattern"), str):
            return self.random.choice(_words(schema["pattern"]) or ["a"])
        if schema.get("format") in SAMPLES:
            return self.random.choice(SAMPLES[schema["format"]])
        least = min(int(schema.get("minLength", 0)), _MOST)
        return "a" * (least + self.random.randint(0, 1))


_HINTS: Final = {
    "properties": "object", "required": "object", "items": "array", "contains": "array",
    "pattern": "string", "minLength": "string", "maxLength": "string", "format": "string",
    "minimum": "number", "maximum": "number", "multipleOf": "number",
}  # fmt: skip


def _changed(value: Any, names: list[str], values: list[Any], random: Random) -> Iterator[Any]:
    """Give the document with one thing different: at the top, then one place further down."""
    if isinstance(value, dict):
        for name in value:
            yield {key: item for key, item in value.items() if key != name}
        for name in random.sample(names, min(len(names), 6)):
            yield {**value, name: random.choice(values)}
            yield {**value, name: random.choice(values)}
        if value:
            name = random.choice(list(value))
            yield from (
                {**value, name: one} for one in _changed(value[name], names, values, random)
            )
    elif isinstance(value, list):
        yield value[:-1]
        yield [*value, *value[:1]] if value else [random.choice(values)]
        if value:
            yield from ([*value[:-1], one] for one in _changed(value[-1], names, values, random))
    else:
        yield from random.sample(values, min(len(values), 6))
        if isinstance(value, str):
            yield from (
                value + "a",
                value + "1",
                value[:-1],
                value.upper(),
                f" {value}",
                f"{value}-",
            )
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from (value + 1, value - 1, value + 0.5)

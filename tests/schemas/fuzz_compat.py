"""Attack the verdicts of `compat`: `python -m tests.schemas.fuzz_compat --count 50000 --seed 1`.

Pairs of schemas are made by chance, most of them one small change apart; every other pair is of
draft 2020-12 and knows its keywords. Whatever the pair, a verdict of `breaking` has a witness that
jsonschema-rs accepts before and refuses after, and no document of a hundred and twenty, half of
them aimed at the difference, contradicts a `compatible`. An `unknown` is allowed: it claims
nothing. A claim that does not hold is raised with its pair.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import copy
import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema_rs

from tallystick.core.errors import Rejected
from tallystick.schemas.compat import compare
from tallystick.schemas.containment.aim import aim
from tallystick.schemas.refs import dialect_of

NAMES = ("a", "b", "c", "k")
PATTERNS = (
    "^a", "^[a-z]+$", "^a*$", "a", "^(ab|cd)$", "[0-9]", "^$", "^.{2}$", r"\ba\b", "^(?!a)",
)  # fmt: skip
TYPES = ("integer", "string", "null", "object", "array", "number", "boolean")
LISTED: tuple[Any, ...] = ("a", "ab", 0, 1, 1.5, None, True, "cd", [], {})
TEXTS = ("", "a", "ab", "cd", "abc", "aa", "1", "a b", "é", "b")
NUMBERS = (-1, 0, 1, 2, 3, 2.5, 5, 6, 1.5, 0.5)
ATTACKS = 120
HELD = (
    "properties", "definitions", "$defs", "patternProperties", "dependencies", "dependentSchemas",
    "dependentRequired",
)  # fmt: skip
"""What holds schemas by name and is none itself."""


MODERN = "https://json-schema.org/draft/2020-12/schema"
VALIDATORS = {
    "draft-07": jsonschema_rs.Draft7Validator,
    "2020-12": jsonschema_rs.Draft202012Validator,
}
Rows = dict[str, tuple[float, Callable[[], Any]]]
"""Keyword -> its share of chance, and what makes its value."""


KEPT = ("definitions", "$defs", "$schema", "$ref", *"pq")
"""What a change does not take away."""


class Maker:
    """Schemas, changes of schemas and documents, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.modern = False

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def pair(self) -> tuple[Any, Any]:
        """Make two schemas: one change apart, two changes apart, or strangers."""
        self.modern = self.often(0.5)
        old = self.document()
        new = self.change(old) if self.often(0.8) else self.document()
        new = self.change(new) if self.often(0.2) else new
        return (new, old) if self.often(0.1) else (old, new)

    def document(self) -> dict[str, Any]:
        """Make a whole schema; what its references name is there."""
        schema = self.schema(0)
        if not isinstance(schema, dict) or "$ref" in schema:
            schema = {"allOf": [schema]}
        held = {"p": self.schema(2), "q": self.schema(2)}
        if self.modern:
            return {**schema, "$schema": MODERN, "$defs": held}
        return {**schema, "definitions": held}

    def schema(self, depth: int) -> Any:
        kind = self.random.random()
        if kind < 0.04:
            return self.random.choice([True, {}, False]) if depth else {}
        if kind < 0.12 and depth:
            folder = "$defs" if self.modern else "definitions"
            return {"$ref": f"#/{folder}/{self.random.choice('pq')}"}
        if (kind < 0.4 and depth < 3) or (kind < 0.7 and not depth):
            return self.random.choice(COMPOUND)(self, depth + 1)
        return self.random.choice(PLAIN)(self)

    def optional(self, rows: Rows) -> dict[str, Any]:
        """Give each keyword with its share of chance."""
        return {key: make() for key, (share, make) in rows.items() if self.often(share)}

    def record(self, depth: int) -> dict[str, Any]:
        chance = self.random

        def inner() -> Any:
            return self.schema(depth)

        return {
            "properties": {
                name: inner() for name in chance.sample(NAMES, chance.randint(1, 3))
            },
            **self.optional({
                "type": (0.6, lambda: "object"),
                "required": (0.6, lambda: chance.sample(NAMES, chance.randint(1, 2))),
                "additionalProperties": (0.3, lambda: chance.choice([False, inner()])),
                "minProperties": (0.15, lambda: chance.randint(0, 3)),
                "maxProperties": (0.15, lambda: chance.randint(0, 3)),
                "patternProperties": (0.1, lambda: {chance.choice(["^a", "^.$", "b"]): inner()}),
                "propertyNames": (0.1, lambda: {"pattern": chance.choice(["^[a-c]$", "^.$"])}),
                "dependencies": (
                    0.0 if self.modern else 0.1,
                    lambda: {chance.choice(NAMES): chance.choice([["a"], ["b", "c"], inner()])},
                ),
                **(self.modern_record(inner) if self.modern else {}),
            }),
        }  # fmt: skip

    def modern_record(self, inner: Callable[[], Any]) -> Rows:
        chance = self.random
        return {
            "dependentRequired": (
                0.15, lambda: {chance.choice(NAMES): chance.sample(NAMES, chance.randint(0, 2))},
            ),
            "dependentSchemas": (0.15, lambda: {chance.choice(NAMES): inner()}),
            "unevaluatedProperties": (0.25, lambda: chance.choice([False, False, inner()])),
        }  # fmt: skip

    def modern_array(self, inner: Callable[[], Any]) -> Rows:
        chance = self.random
        return {
            "prefixItems": (0.3, lambda: [inner() for _ in range(chance.randint(1, 2))]),
            "items": (0.5, inner),
            "minContains": (0.2, lambda: chance.randint(0, 2)),
            "maxContains": (0.2, lambda: chance.randint(0, 2)),
            "unevaluatedItems": (0.2, lambda: chance.choice([False, False, inner()])),
        }  # fmt: skip

    def array(self, depth: int) -> dict[str, Any]:
        chance = self.random

        def inner() -> Any:
            return self.schema(depth)

        return self.optional({
            "type": (0.7, lambda: "array"),
            "items": (0.85, lambda: [inner(), inner()] if self.often(0.2) else inner()),
            "minItems": (0.3, lambda: chance.randint(0, 2)),
            "maxItems": (0.3, lambda: chance.randint(0, 3)),
            "uniqueItems": (0.15, lambda: True),
            "contains": (0.4 if self.modern else 0.15, inner),
            **(self.modern_array(inner) if self.modern else {}),
        })  # fmt: skip

    def union(self, depth: int) -> dict[str, Any]:
        members = [self.schema(depth) for _ in range(self.random.randint(1, 4))]
        if self.often(0.2):
            members.append(copy.deepcopy(members[0]))
        schema = {self.random.choice(("allOf", "anyOf", "oneOf")): members}
        kinds = ("object", "string", "integer")
        return schema | self.optional({"type": (0.3, lambda: self.random.choice(kinds))})

    def negation(self, depth: int) -> dict[str, Any]:
        return {"not": self.schema(depth)}

    def condition(self, depth: int) -> dict[str, Any]:
        def inner() -> Any:
            return self.schema(depth)

        return {"if": inner(), **self.optional({"then": (0.8, inner), "else": (0.4, inner)})}

    def number(self) -> dict[str, Any]:
        def bound() -> Any:
            return self.random.choice([-1, 0, 1, 2, 2.5, 5])

        return {
            "type": self.random.choice(("integer", "number")),
            **self.optional({
                "minimum": (0.3, bound),
                "maximum": (0.3, bound),
                "exclusiveMinimum": (0.3, bound),
                "multipleOf": (0.2, lambda: self.random.choice([1, 2, 3, 0.5])),
            }),
        }  # fmt: skip

    def text(self) -> dict[str, Any]:
        return {
            "type": "string",
            **self.optional({
                "minLength": (0.3, lambda: self.random.randint(0, 3)),
                "maxLength": (0.3, lambda: self.random.randint(0, 4)),
                "pattern": (0.4, lambda: self.random.choice(PATTERNS)),
            }),
        }  # fmt: skip

    def listed(self) -> dict[str, Any]:
        if self.often(0.5):
            return {"const": self.random.choice(["a", 1, 0, None, True])}
        return {"enum": self.random.sample(LISTED, self.random.randint(1, 4))}

    def types(self) -> dict[str, Any]:
        if self.often(0.5):
            return {"type": self.random.choice(("boolean", "null"))}
        return {"type": self.random.sample(TYPES, self.random.randint(1, 3))}

    def change(self, schema: Any) -> Any:
        """Change one place: another subschema, a keyword less, a bound moved, a member gone."""
        changed = copy.deepcopy(schema)
        places = list(_places(changed))
        for _ in range(20):
            if self.replace(*self.random.choice(places)):
                break
        return changed

    def replace(self, value: Any, parent: Any, key: Any) -> bool:
        kind = self.random.random()
        if isinstance(value, dict) and key not in HELD and kind < 0.5:
            parent[key] = self.schema(2)
        elif isinstance(parent, dict) and kind < 0.3 and key not in KEPT:
            del parent[key]
        elif isinstance(value, int | float) and not isinstance(value, bool):
            parent[key] = abs(value + self.random.choice([-1, 1]))
        elif isinstance(value, list) and len(value) > 1:
            value.pop(self.random.randrange(len(value)))
        elif isinstance(value, str) and key == "type":
            parent[key] = self.random.choice(("integer", "number", "string", "object"))
        elif isinstance(value, str) and key == "pattern":
            parent[key] = self.random.choice(PATTERNS)
        else:
            return False
        return True

    def value(self, depth: int = 2) -> Any:
        """Make a document."""
        kind = self.random.random()
        if kind < 0.25:
            return self.random.choice(TEXTS)
        if kind < 0.5:
            return self.random.choice(NUMBERS)
        if kind < 0.6:
            return self.random.choice([None, True, False])
        if not depth:
            return {}
        if kind < 0.75:
            return [self.value(depth - 1) for _ in range(self.random.randint(0, 3))]
        names = self.random.sample(NAMES, self.random.randint(0, 4))
        return {name: self.value(depth - 1) for name in names}


COMPOUND = (
    Maker.record, Maker.record, Maker.array, Maker.union, Maker.union, Maker.union, Maker.negation,
    Maker.condition,
)  # fmt: skip
PLAIN = (Maker.number, Maker.number, Maker.text, Maker.text, Maker.listed, Maker.types)


def _places(value: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Give everything inside a value, with what holds it and under which key."""
    rows = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in rows:
        yield inner, value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


def attack(old: Any, new: Any, maker: Maker) -> str:
    """Compare one pair and hold the verdict to what the validator says; give the verdict."""
    try:
        before, after = (VALIDATORS[dialect_of(one)](one, offline=True) for one in (old, new))
        found = compare(old, new, "strict", clock=time.process_time)
    except (Rejected, ValueError):
        return "malformed"
    pair = f"{json.dumps(old)} {json.dumps(new)}"
    if found.verdict == "breaking":
        held = before.is_valid(found.witness) and not after.is_valid(found.witness)
        assert held, f"no witness: {found.witness!r} of {pair}"
    elif found.verdict == "compatible":
        aimed = aim(old, new)
        for number in range(ATTACKS):
            value = next(aimed, None) if number % 2 else maker.value()
            broken = before.is_valid(value) and not after.is_valid(value)
            assert not broken, f"not compatible: {value!r} shows it, of {pair}"
    return found.verdict


def fuzz(count: int, seed: int) -> Counter[str]:
    """Attack so many pairs; give how often each verdict came up."""
    maker = Maker(seed)
    return Counter(attack(*maker.pair(), maker) for _ in range(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for name, number in fuzz(arguments.count, arguments.seed).most_common():
        print(f"{number:8} {name}")


if __name__ == "__main__":
    main()

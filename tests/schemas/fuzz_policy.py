"""Attack the field policy: `python -m tests.schemas.fuzz_policy --count 20000 --seed 1`.

Records are made by chance and changed: fields come and go, are retyped, refused (`false`),
demanded, closed, described as a map, made nullable, nested. A second, plain reading of the policy
judges each verdict of `babelqueue`. A field is free when the old record neither names, demands nor
describes it and a new document was seen to have it. A `compatible` holds for every document without
free fields; a `breaking` has a witness without free fields, or a field is gone.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import argparse
import copy
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import jsonschema_rs

from tallystick.schemas.compat import compare
from tallystick.schemas.containment.aim import aim
from tests.schemas.fuzz_compat import NAMES, Maker

ATTACKS = 160
NULL = {"type": "null"}
Record = dict[str, Any]
Level = tuple[Record, Record, Callable[[Any], Any]]
"""The old record, the new one, and where they stand in a document."""


class PolicyMaker(Maker):
    """Pairs of records, and documents that suit them."""

    def policy_pair(self) -> tuple[Any, Any]:
        old = self.fields(1)
        new = copy.deepcopy(old)
        for _ in range(self.random.choice((1, 1, 2, 3))):
            self.edit(new)
        inner = new["properties"].get("k")
        if isinstance(inner, dict) and "properties" in inner and self.often(0.5):
            self.edit(inner)
            if self.often(0.3):
                new["properties"]["k"] = self.wrap(inner)
        return (old, new) if self.often(0.8) else (self.wrap(old), self.wrap(new))

    def fields(self, depth: int) -> Record:
        chance = self.random
        names = chance.sample(NAMES, chance.randint(0, 3))
        held: Record = {name: self.leaf() for name in names}
        if depth and self.often(0.3):
            held["k"] = self.fields(0)
        return {
            "type": "object",
            "properties": held,
            **self.optional({
                "required": (0.4, lambda: chance.sample(NAMES, chance.randint(1, 2))),
                "additionalProperties": (0.35, lambda: chance.choice([False, True, self.leaf()])),
                "patternProperties": (0.15, lambda: {chance.choice(["^a", "^[bc]$"]): self.leaf()}),
            }),
        }  # fmt: skip

    def leaf(self) -> Any:
        if self.often(0.06):
            return self.random.choice([False, {"not": {}}, {"enum": [1], "type": "string"}])
        return self.random.choice((Maker.number, Maker.text, Maker.listed, Maker.types))(self)

    def wrap(self, schema: Any) -> Any:
        """Make a schema nullable, or put it behind a reference that changes nothing."""
        union = [schema, NULL] if self.often(0.5) else [NULL, schema]
        return {self.random.choice(("anyOf", "oneOf")): union} if self.often(0.7) else schema

    def edit(self, record: Record) -> None:
        """Change one thing of a record in place."""
        chance, held = self.random, record["properties"]
        name = chance.choice(NAMES)
        kind = chance.random()
        if kind < 0.45:
            held[name] = self.leaf()
        elif kind < 0.6:
            held.pop(name, None)
        elif kind < 0.7:
            record["required"] = chance.sample(NAMES, chance.randint(1, 2))
        elif kind < 0.8:
            record.pop("required", None)
        elif kind < 0.9:
            record["additionalProperties"] = chance.choice([False, True, self.leaf()])
        else:
            record.pop(chance.choice(("additionalProperties", "patternProperties")), None)


def record_of(schema: Any) -> Any:
    """Give the record inside what may be null."""
    for key in ("anyOf", "oneOf"):
        if isinstance(schema, dict) and key in schema:
            return next(one for one in schema[key] if one != NULL)
    return schema


def is_record(schema: Any) -> bool:
    return isinstance(schema, dict) and "properties" in schema


def is_named(record: Record, name: str) -> bool:
    patterns = record.get("patternProperties", {})
    return name in record["properties"] or any(re.search(one, name) for one in patterns)


def free_fields(old: Record, new: Record, documents: list[Any]) -> set[str]:
    """Give the fields that are added, by the plain reading; `documents` conform to the new one."""
    rest = old.get("additionalProperties", True)
    if rest is False or (isinstance(rest, dict) and rest):
        return set()
    had = {name for one in documents if isinstance(one, dict) for name in one}
    return {
        name
        for name in new["properties"].keys() & had
        if not is_named(old, name) and name not in old.get("required", ())
    }


def removed_fields(old: Record, new: Record) -> set[str]:
    return {
        name
        for name, held in old["properties"].items()
        if held is not False and not is_named(new, name)
    }


def attack_policy(old: Any, new: Any, maker: PolicyMaker) -> str:
    """Compare one pair by the policy and hold the verdict to the plain reading."""
    before, after = (jsonschema_rs.Draft7Validator(one, offline=True) for one in (old, new))
    found = compare(old, new, "babelqueue", clock=time.process_time)
    pair = f"{json.dumps(old)} {json.dumps(new)}"
    documents = [maker.value() for _ in range(ATTACKS)]
    documents += [value for value, _ in zip(aim(old, new), range(ATTACKS), strict=False)]
    levels: list[Level] = [(record_of(old), record_of(new), lambda value: value)]
    inner, changed = (record_of(one["properties"].get("k")) for one in levels[0][:2])
    if is_record(inner) and isinstance(changed, dict):
        levels.append((inner, {"properties": {}, **changed}, _inner))
    fits = [value for value in documents if after.is_valid(value)]
    free = [free_fields(one, two, list(map(pick, fits))) for one, two, pick in levels]
    gone = any(removed_fields(one, two) for one, two, _ in levels)

    def is_free(value: Any) -> bool:
        held = [pick(value) for _, _, pick in levels]
        return any(isinstance(one, dict) and names & one.keys()
                   for names, one in zip(free, held, strict=True))  # fmt: skip

    if found.verdict == "breaking" and not found.has_witness:
        assert gone, f"nothing is gone of {pair}"
    elif found.verdict == "breaking":
        held = before.is_valid(found.witness) and not after.is_valid(found.witness)
        assert held, f"no witness: {found.witness!r} of {pair}"
        assert not is_free(found.witness), f"an added field: {found.witness!r} of {pair}"
    elif found.verdict == "compatible":
        assert not gone, f"a field is gone of {pair}"
        for value in documents:
            broken = before.is_valid(value) and not after.is_valid(value)
            assert not broken or _unsure(value, levels), f"{value!r} breaks {pair}"
    return found.verdict


def _inner(value: Any) -> Any:
    return value.get("k") if isinstance(value, dict) else None


def _unsure(value: Any, levels: list[Level]) -> bool:
    """Tell whether a document has a field that may be free, had one seen more documents."""
    for old, new, pick in levels:
        held = pick(value)
        if isinstance(held, dict):
            possible = free_fields(old, new, [dict.fromkeys(NAMES, 1)])
            possible -= {name for name in possible if _is_refused(new["properties"][name])}
            if possible & held.keys():
                return True
    return False


def _is_refused(schema: Any) -> bool:
    return schema is False or schema in ({"not": {}}, {"enum": [1], "type": "string"})


def fuzz_policy(count: int, seed: int) -> Counter[str]:
    """Attack so many pairs; give how often each verdict came up."""
    maker = PolicyMaker(seed)
    return Counter(attack_policy(*maker.policy_pair(), maker) for _ in range(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for name, number in fuzz_policy(arguments.count, arguments.seed).most_common():
        print(f"{number:8} {name}")


if __name__ == "__main__":
    main()

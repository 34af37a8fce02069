"""Impostors of the registry's pure code: one piece of a function changed, and a law must notice.

The rows have the grammar of `tests/impostors/rows`, without the globs: what notices is `holds`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tallystick.core.errors import Rejected, Unavailable
from tallystick.schemas import fast, guard, ids, intricacy
from tallystick.schemas.containment import apart as glance
from tests.impostors.patches import Patches
from tests.impostors.rows import impostors_in
from tests.schemas import registry_laws

IMPOSTORS = impostors_in(Path(__file__).parent / "impostors.txt")
TOO_LONG = 0.02  # seconds of processor time

QUICK: tuple[tuple[Any, tuple[Any, ...], tuple[Any, ...]], ...] = (
    # a schema, what its type accepts, what its type may not accept
    ({"type": "integer", "minimum": 0.5}, (1,), (0,)),
    ({"type": "integer", "maximum": 2.5}, (2,), (3,)),
    ({"type": "integer", "exclusiveMinimum": 1}, (2,), (1,)),
    ({"type": "integer", "exclusiveMaximum": 3}, (2,), (3,)),
    ({"type": "integer", "minimum": 1, "exclusiveMinimum": 4}, (5,), (3, 4)),
    ({"type": "integer", "maximum": 1, "exclusiveMaximum": 9}, (1,), (2, 8)),
    ({"type": "number", "exclusiveMinimum": 1.5}, (1.6, 2), (1.5, 1)),
    ({"type": "string", "enum": ["a", 1]}, ("a",), (1,)),
    ({"type": "string", "format": "date"}, ("2024-01-15",), ("text",)),
    ({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "string",
      "format": "date"}, ("text",), (1,)),
)  # fmt: skip
EXACT_ONLY: tuple[Any, ...] = (
    {"type": "number", "minimum": 2**53 + 1}, {"type": "string", "const": "a", "enum": ["b"]},
    {"type": "number", "minimum": 1, "exclusiveMinimum": 0}, {"type": "string", "minLength": 2.5},
    {"type": "string", "pattern": "^a$b"}, {"type": "string", "pattern": "^a)"},
)  # fmt: skip


def quick_types_hold() -> bool:
    for schema, good, bad in QUICK:
        quick = fast.compile_fast(schema)
        if quick is None:
            return False
        raw = [json.dumps(one).encode() for one in (*good, *bad)]
        if [quick.accepts(one) for one in raw] != [True] * len(good) + [False] * len(bad):
            return False
    return not any(map(fast.compile_fast, EXACT_ONLY))


def refer(name: str, count: int = 1) -> list[Any]:
    return [{"$ref": f"#/definitions/{name}"} for _ in range(count)]


def ways_hold() -> bool:
    leaf = {"definitions": {"a": {"type": "string"}, "b c": {"allOf": refer("a", 3)}}}
    counted = {
        1: {"type": "string"},
        2: refer("a")[0] | leaf,
        3: {"properties": dict.fromkeys("xy", refer("a")[0])} | leaf,
        6: {"allOf": refer("a", 2), "items": [{}, {}]} | leaf,
        8: refer("b%20c")[0] | leaf,
        7: {"patternProperties": {key: {"oneOf": refer("a")} for key in "xy"}} | leaf,
    }
    return all(intricacy.measure(schema).ways == ways for ways, schema in counted.items())


def growth_holds() -> bool:
    twice = {"anyOf": [{"items": {"$ref": "#"}}, {"not": {"contains": {"$ref": "#"}}}]}
    behind = {"allOf": [{"properties": {"a": {"type": "string"}}}, twice | {"title": "t"}]}
    tree = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}
    found = [intricacy.measure(one).grows for one in (twice, behind, tree, {"items": tree})]
    return found == [True, True, False, False]


def circles_hold() -> bool:
    deeper = {"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}]}}}
    diamond = {"allOf": refer("a", 2), "definitions": {"a": {"not": {"type": "null"}}}}
    schemas: tuple[Any, ...] = ({"$ref": "#"}, deeper, diamond, {"not": {}})
    found = [intricacy.is_circular(one) for one in schemas]
    return found == [True, True, False, False]


def the_guard_holds() -> bool:
    def limits() -> Any:
        import resource  # noqa: PLC0415 - asked in the child

        return resource.getrlimit(resource.RLIMIT_AS)[0]

    if guard.work_within(lambda: [1, None], "it") != [1, None]:
        return False
    if not 0 < guard.work_within(limits, "it") < 1 << 50:
        return False
    for work, seconds, expected in ((_count, TOO_LONG, Rejected), (_fail, 60, Unavailable)):
        try:
            guard.work_within(work, "it", seconds)
        except expected:
            continue
        return False
    return True


def _count() -> int:
    """Take some twenty times as long as is allowed, and come to an end without the limit."""
    return sum(range(20_000_000))


def _fail() -> None:
    raise ValueError("no")


def ids_hold() -> bool:
    locked = {"m": 1, "gone": 7}
    given = ids.assign_ids(["z", "m", "a"], locked)
    if list(given.items()) != [("a", 8), ("m", 1), ("z", 9)]:
        return False
    faults = {
        '{"ids": {\n"a": true}}': 2, '{"ids": {\n"a": 0}}': 2, '{"ids": {}, "more": 1}': 1,
        '{"ids": {\n\n"a": 2147483648}}': 3, '{"ids": {"b": 1,\n"a": 1}}': 2,
    }  # fmt: skip
    for text, line in faults.items():
        _, found = ids.read_lock(text.encode())
        if len(found) != 1 or not found[0].message.startswith(f"ids.lock:{line}: "):
            return False
    order = list(json.loads(ids.render_lock({"b": 2, "c": 1}))["ids"])
    return order == ["c", "b"] and ids.parse_lock(b'{"ids": {"a": 2147483647}}') == {"a": 2**31 - 1}


def apart_holds() -> bool:
    def tagged(**tags: Any) -> Any:
        return {"type": "object", "properties": tags, "required": list(tags)}

    either = {"type": ["object", "null"]}
    one, two, loose = {"const": 1}, {"enum": [2, 3]}, {"type": "object", "properties": {"a": True}}
    apart = [
        (False, {}), (one, two), ({"type": "integer"}, {"type": ["string", "null"]}),
        (tagged(a=one), tagged(a=two, b={})), (tagged(a=tagged(b=one)), tagged(a=tagged(b=two))),
    ]  # fmt: skip
    close = [
        (True, {}), (one, {"enum": [1.0, 2]}), (one, {"type": "integer"}), (loose, tagged(a=False)),
        ({**one, "$ref": "#"}, two), (tagged(a=one), tagged(b=two)),
        (tagged(a=one) | either, tagged(a=two) | either),
    ]  # fmt: skip
    found = [glance.are_apart(*map(glance.look, pair)) for pair in (*apart, *close)]
    return found == [True] * len(apart) + [False] * len(close)


LAWS = (
    apart_holds, quick_types_hold, ways_hold, growth_holds, circles_hold, ids_hold,
    *registry_laws.LAWS, the_guard_holds,
)  # fmt: skip


def holds() -> bool:
    return all(law() for law in LAWS)


def test_without_an_impostor_every_law_holds() -> None:
    assert [law.__name__ for law in LAWS if not law()] == []


@pytest.mark.parametrize("name", IMPOSTORS)
def test_an_impostor_is_noticed(name: str) -> None:
    with Patches() as patches:
        IMPOSTORS[name](patches)
        assert not holds()

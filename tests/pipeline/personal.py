"""Records that conform and are canonical, full of what looks personal or almost does.

The schemas are random ones of the subset that has a quick way, with marks, telling names and lists.
Most records take the quick way, so whatever it masks or counts in another way than the rule shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from tallystick.core.canonical import canonical
from tallystick.pipeline.capture import Record

__all__ = ["people", "write_random_registry"]

TEXTS: Final = [
    "", "x", "abc", "abcd", "plain text", "\u00e9t\u00e9", "\U0001f600 smile", "\b1234", '"quoted"',
    "jane@leak.example", "to jane@leak.example now", "a@b", "@", "+", "+4930123456",
    "call +49 (30) 123-45-67", "+1", "4111111111111111", "4111 1111 1111 1111",
    "4111-1111-1111-1111", "\u00a04111111111111111\u2003", "\n4111111111111111\t",
    "4111111111111112", "card 4111111111111111.", "x4111111111111111", "10000000146",
    "id 10000000146", "10000000147", "100 000 001 46", "-10000000146", "DE89370400440532013000",
    "DE89 3704 0044 0532 0130 00",
    "de89370400440532013000", "DE89370400440532013001", "AT71ABCDEFGHIJKLMNOP", "XY83ABCDEFGHIJK",
    "xy83abcdefghijk", "x y 8 3 abc def ghi jk", "\u00df49ABCDEFGHIJK", "AB12", "SKU1234567",
    "pay XY83ABCDEFGHIJK today", "pay xy83abcdefghijk today", "\u0661" * 16,
]  # fmt: skip
NUMBERS: Final = [
    0, 1, -1, 5, 10**10, 10000000146, 10000000147, -10000000146, 10**12 - 1, 10**12, 2 * 10**12,
    1749132727000, 1749132727103, 2221000000000, 4111111111119, 4111111111111111,
    -4111111111111111, 4111111111111112, 2**53, 2**63 - 1, -(2**63), 6011000990139424009,
]  # fmt: skip
FRACTIONS: Final = [0.5, 1e-7, 1.5e300, 4111111111111111.5, -0.25, 10000000146.5]
_VALUES: Final[dict[str, tuple[list[Any], list[Any]]]] = {
    "string": (TEXTS[:9], TEXTS),
    "integer": (NUMBERS[:4], NUMBERS),
    "number": (FRACTIONS, NUMBERS),
    "boolean": ([True], [False]),
}
"""What nobody suspects, and everything."""
NAMES: Final = [
    "a", "b", "name", "email", "phone", "customer", "note", "tags", "iban", "card_number",
    "order_id", "count", "ip", "items", "c", "d", "e", "email_verified",
]  # fmt: skip
MARKS: Final[list[dict[str, Any]]] = [
    {"x-gdpr-sensitive": True}, {"x-gdpr-sensitive": "email"}, {"confluent:tags": ["PII"]},
    {"x-gdpr-sensitive": False},
]  # fmt: skip


def _listed(values: list[Any]) -> Callable[[Random], dict[str, Any]]:
    def choose(random: Random) -> dict[str, Any]:
        if random.random() < 0.75:
            return {}
        held = random.sample(values, 3)
        return random.choice([{"enum": held}, {"const": held[0]}])

    return choose


_MORE: Final[dict[str, Callable[[Random], dict[str, Any]]]] = {
    "string": _listed(TEXTS),
    "integer": _listed(NUMBERS),
    "number": lambda _: {},
    "boolean": lambda _: {},
}


def make_schema(random: Random, depth: int = 0) -> dict[str, Any]:
    """Give a random schema; the first is an object, and none lies deeper than two steps."""
    kinds = [*_MORE, *(("object", "array") if depth < 2 else ())]
    kind = random.choice(kinds) if depth else "object"
    schema: dict[str, Any] = {"type": kind}
    if kind == "object":
        names = random.sample(NAMES, random.randrange(1, 5))
        schema["properties"] = {name: make_schema(random, depth + 1) for name in names}
        schema["required"] = names[: random.randrange(2)]
        schema["additionalProperties"] = random.choice([True, False, {"type": "string"}])
    elif kind == "array":
        schema["items"] = make_schema(random, depth + 1)
    else:
        schema |= _MORE[kind](random)
    if random.random() < (0.2 if depth else 0.05):
        schema |= random.choice(MARKS)
    if depth and not schema.keys() & {"enum", "const"} and random.random() < 0.2:
        schema["type"] = [kind, "null"]
    return schema


def make_value(schema: dict[str, Any], random: Random) -> Any:
    """Give a value that conforms."""
    kind = schema["type"]
    if isinstance(kind, list):
        if random.random() < 0.2:
            return None
        kind = kind[0]
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return random.choice(schema["enum"])
    if kind == "object":
        return {
            name: make_value(below, random)
            for name, below in schema["properties"].items()
            if name in schema["required"] or random.random() < 0.7
        }
    if kind == "array":
        return [make_value(schema["items"], random) for _ in range(random.randrange(3))]
    return random.choice(_VALUES[kind][random.random() < 0.5])


def write_random_registry(folder: Path, random: Random, count: int) -> list[dict[str, Any]]:
    """Write a registry of so many random schemas, and give them."""
    schemas = [make_schema(random) for _ in range(count)]
    for number, schema in enumerate(schemas):
        (folder / f"{number}.json").write_text(json.dumps(schema), encoding="utf-8")
    rows = [{"urn": f"urn:{at}", "schema": f"{at}.json"} for at in range(count)]
    (folder / "registry.json").write_text(json.dumps({"schemas": rows}), encoding="utf-8")
    return schemas


def people(schemas: list[dict[str, Any]], random: Random, count: int) -> Iterator[Record]:
    """Give so many records of the schemas' URNs, in canonical bytes."""
    for number in range(count):
        at = random.randrange(len(schemas))
        data = canonical(make_value(schemas[at], random), ("data",)).decode()
        odd = random.random() < 0.2
        identity, trace = (f"00000000-0000-4000-8000-{random.getrandbits(48):012x}" for _ in "ab")
        queue = random.choice(TEXTS) if odd else "orders"
        around = json.dumps({
            "id": identity, "queue": queue or "q", "lang": random.choice(["php", "go", "x@y.de"]),
            "schema_version": 1, "created_at": random.choice(NUMBERS) if odd else 1749132727000,
        }, ensure_ascii=False, separators=(",", ":"))  # fmt: skip
        attempts = abs(random.choice(NUMBERS)) % 2**63 if random.random() < 0.2 else 0
        body = (
            f'{{"job":"urn:{at}","trace_id":"{trace}","data":{data},"meta":{around},'
            f'"attempts":{attempts}}}'
        )
        yield Record("people", number, None, None, None, None, None, None, None,
                     body.encode(), None)  # fmt: skip

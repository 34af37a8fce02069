"""What the quick type accepts, the validator accepts: attacked with random schemas and messages."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tallystick.core.errors import Rejected
from tallystick.schemas.fast import compile_fast
from tallystick.schemas.fast_pattern import translate
from tallystick.schemas.validate import compile_schema
from tallystick.schemas.values import parse_json

ORDERS = Path(__file__).parents[2] / "examples" / "registry" / "schemas" / "orders-created.json"
NUMBERS = (0, 1, -1, 10, 0.5, -0.5, 1.5, 2**53, 2**53 + 1, 2**63, -(2**63), 2**64, 1e300, 0.1)
WORDS = (
    "", "a", "ab", "abc", "a.b", "ac", "abab", "TRY", "12-x", "aa-bb", "é", "a\n", "ab\ncd",
    "2024-01-15", "2024-01-31", "2024-02-15T12:30:00Z", "2024-02-15T12:30:60Z", "23:59:59+02:00",
    "6a1d0a2e-3c0b-4f3f-9a57-0a8c1f6f2f10", "a@b", "٣٣-x", "😀", "aaaa", "b", "a@b\n",
)  # fmt: skip
PATTERNS = (
    "^[a-z]+$", r"^[a-z]+\.[a-z]+$", "^(ab|a)c$", "^(?:a|b){2,3}$", "^[A-Z]{3}$", r"^\d{2,}-\w*$",
    "^a", "^[0-9a-f]{2}(-[0-9a-f]{2})*$", "^$", "^a?$|^b", "^[a-c_.-]+$", "^(a|ab)*$", "^a|b$",
    r"^[\w.-]+@[\w-]+$", "^(a+)+$", "^.+$", "a$", r"^\s", "^[^a]$", "^a$b", r"^(?=a)", "^é$",
)  # fmt: skip
TYPES = ("integer", "number", "string", "boolean", "null", "object", "array")


class Maker:
    """Random schemas, and messages aimed at them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def often(self, share: float) -> bool:
        return self.random.random() < share

    def schema(self, depth: int = 0) -> Any:
        if self.often(0.05):
            return True
        if self.often(0.15):
            values = ["a", "b", "", 0, 1, True, None, 1.5, "TRY", [1], 2**63, 1.0]
            return {"enum": self.random.sample(values, 3)}
        if self.often(0.1) and depth:
            return {"$ref": f"#/definitions/{self.random.choice('pq')}"}
        kinds = self.random.sample(TYPES[: 5 if depth > 2 else 7], 1 + self.often(0.2))
        schema: dict[str, Any] = {"type": kinds if self.often(0.5) else kinds[0]}
        bounds = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
        schema |= {key: self.random.choice(NUMBERS) for key in bounds if self.often(0.2)}
        if self.often(0.4):
            schema["pattern"] = self.random.choice(PATTERNS)
        elif self.often(0.2):
            schema["format"] = self.random.choice(("date", "time", "date-time", "uuid", "email"))
        lengths = ("minLength", "maxLength", "minItems", "maxItems")
        schema |= {key: self.random.randint(0, 4) for key in lengths if self.often(0.2)}
        if self.often(0.05):
            schema[self.random.choice(("uniqueItems", "x-note"))] = True
        if "object" in kinds:
            names = self.random.sample(["a", "b", "c d", "é", "f0"], 3)
            schema["properties"] = {name: self.schema(depth + 1) for name in names}
            schema["required"] = self.random.sample(names, self.random.randint(0, 3))
            schema["additionalProperties"] = self.often(0.5)
        if "array" in kinds:
            schema["items"] = self.schema(depth + 1)
        known = {"string": ("pattern", "format", "minLength", "maxLength"), "number": bounds,
                 "integer": bounds, "array": ("minItems", "maxItems", "uniqueItems")}  # fmt: skip
        used = {key for kind in kinds for key in known.get(kind, ())}
        stray = set().union(*known.values()) - used
        return {key: value for key, value in schema.items() if key not in stray or self.often(0.05)}

    def message(self, schema: Any, root: Any, depth: int = 0) -> Any:
        if schema is True or self.often(0.05) or depth > 5:
            return self.random.choice([*NUMBERS, *WORDS, None, True, [1], {"a": {"b": "x"}}])
        if "$ref" in schema:
            return self.message(root["definitions"][schema["$ref"][-1]], root, depth + 1)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        kind = self.random.choice(kinds)
        if kind == "object":
            return {
                name: self.message(inner, root, depth + 1)
                for name, inner in [*schema["properties"].items(), ("z", True)]
                if self.often(0.02 if name == "z" else 0.8)
            }
        if kind == "array":
            return [self.message(schema["items"], root, depth + 1) for _ in range(2)]
        if kind == "string":
            return self.random.choice(WORDS)
        if kind == "boolean":
            return True
        return None if kind == "null" else self.random.choice((*NUMBERS, *range(-2, 12)))


@pytest.mark.parametrize("seed", range(4))
def test_what_the_type_accepts_the_validator_accepts(seed: int) -> None:
    maker = Maker(seed)
    accepted = 0
    for _ in range(150):
        schema = {"type": "object", "properties": {"a": maker.schema(1), "b": maker.schema(1)},
                  "definitions": {"p": maker.schema(3), "q": maker.schema(2)}}  # fmt: skip
        fast = compile_fast(schema)
        if fast is None:
            continue
        exact = compile_schema(schema)
        for _ in range(8):
            raw = bytearray(json.dumps(maker.message(schema, schema), ensure_ascii=False).encode())
            if maker.often(0.2):
                raw[maker.random.randrange(len(raw))] = maker.random.choice(
                    b'{}[]",:0.eE-\\t\xff\n'
                )
            quick = fast.accepts(bytes(raw))
            try:
                value = parse_json(bytes(raw), "message")
            except Rejected as error:
                unsound = quick and error.code != "json.duplicate"
            else:
                unsound = (quick or fast.accepts_value(value)) and not exact.is_valid(value)
            assert not unsound, (schema, raw)
            accepted += quick
    assert accepted > 50


def test_a_usual_schema_is_inside_the_subset_and_its_messages_are_accepted() -> None:
    fast = compile_fast(json.loads(ORDERS.read_bytes()))
    assert fast is not None
    good = {"order_id": 1, "amount": 9.5, "currency": "TRY", "lines": [{"sku": "a", "quantity": 2}]}
    assert fast.accepts(json.dumps(good).encode())
    assert fast.accepts_value(good)
    wrong: tuple[dict[str, Any], ...] = (
        {"order_id": 0},
        {"amount": "9"},
        {"currency": "GBP"},
        {"lines": [{}]},
        {"x": 1},
    )
    for bad in wrong:
        assert not fast.accepts(json.dumps({**good, **bad}).encode())
        assert not fast.accepts_value({**good, **bad})


@pytest.mark.parametrize(
    "schema",
    [
        {"oneOf": [{"type": "string"}]}, {"type": "object", "minProperties": 1},
        {"type": "array", "uniqueItems": True}, {"type": "object", "required": ["a"]},
        {"type": "array", "items": [{}]}, {"type": "string", "pattern": "a"}, {"minLength": 2},
        {"type": "integer", "multipleOf": 2}, {"type": "string", "format": "email"}, False,
        {"properties": {"a": {"$ref": "#"}}}, {"type": "integer", "minimum": 2**63},
        {"type": ["string", "array"], "pattern": "^a"}, {"enum": [1.5, True]},
        {"type": "string", "const": "a", "enum": ["b"]}, {"items": {"$id": "x", "type": "null"}},
    ],
)  # fmt: skip
def test_what_a_type_cannot_say_is_exact_only(schema: Any) -> None:
    assert compile_fast(schema) is None


def test_a_sibling_of_a_reference_counts_by_the_dialect() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/p", "minLength": 5}},
        "$defs": {"p": {"type": "string"}},
    }
    assert compile_fast(schema) is not None
    newer = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
    assert compile_fast(newer) is None


def test_a_translated_pattern_never_looks_back_and_ends_at_the_very_end() -> None:
    assert translate("^(a+)+$") == r"\A(?>a++)++\Z"
    assert translate(r"^\d{2}$|^x") == r"\A[0-9]{2}+\Z|\Ax"
    assert not any(
        map(translate, ("a$", "^a$b", "^(a$)", r"^\s", "^[^a]", "^(?=a)", "^a**", "^(", "^[a"))
    )

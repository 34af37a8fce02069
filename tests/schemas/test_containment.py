"""Verdicts on random schemas are never contradicted by random documents."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from tallystick.core.errors import Rejected
from tallystick.schemas.compat import compare
from tallystick.schemas.containment.language import find_words
from tallystick.schemas.containment.pattern import NotRegular, pattern_language
from tallystick.schemas.containment.regex import both, complement, derive, nullable
from tallystick.schemas.validate import compile_schema
from tallystick.schemas.witness import prove

NAMES = st.sampled_from(["a", "b", "x1"])
SMALL = st.integers(0, 3)
NUMBERS = st.sampled_from([-1, 0, 0.5, 1, 1.5, 2, 3, 10])
PATTERNS = st.sampled_from(["^a", "b$", "^[ab]+$", "^x", "[0-9]", "^(a|b)$", ""])
VALUES = st.sampled_from(
    [None, True, False, 0, 1, 2, -1, 0.5, 1.0, "", "a", "ab", "x1", [], [1], ["a", 1], [1, 1],
     {}, {"a": 1}, {"b": "a"}, {"a": None, "x1": 2}]
)  # fmt: skip
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
DOCUMENTS = st.recursive(
    VALUES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES | st.sampled_from(["ba", "z"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def _families(inner: st.SearchStrategy[Any]) -> list[st.SearchStrategy[dict[str, Any]]]:
    def some(**rules: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({}, optional=rules)

    several = st.lists(inner, min_size=1, max_size=3)
    return [
        some(
            minimum=NUMBERS, maximum=NUMBERS, exclusiveMinimum=NUMBERS, exclusiveMaximum=NUMBERS,
            multipleOf=st.sampled_from([1, 2, 3, 0.5, 0.1]),
        ),
        some(minLength=SMALL, maxLength=SMALL, pattern=PATTERNS),
        some(
            items=inner | several, additionalItems=inner, minItems=SMALL, maxItems=SMALL,
            uniqueItems=st.booleans(), contains=inner,
        ),
        some(
            properties=st.dictionaries(NAMES, inner | st.just({"$ref": "#"}), max_size=2),
            patternProperties=st.dictionaries(PATTERNS, inner, max_size=2),
            additionalProperties=inner, required=st.lists(NAMES, unique=True, max_size=2),
            minProperties=SMALL, maxProperties=SMALL,
            propertyNames=st.fixed_dictionaries({"pattern": PATTERNS}),
            dependencies=st.dictionaries(NAMES, inner | st.lists(NAMES, max_size=1), max_size=1),
        ),
        some(allOf=several, anyOf=several, oneOf=several),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
        st.fixed_dictionaries({"enum": st.lists(VALUES, min_size=1, max_size=4)}),
        st.fixed_dictionaries({"const": VALUES}),
    ]  # fmt: skip


def _grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    families = _families(inner)
    return st.builds(
        lambda one, two, kind: {**one, **two, **({"type": kind} if kind else {})},
        st.one_of(families),
        st.one_of(families) | st.just({}),
        st.none() | TYPES | st.lists(TYPES, unique=True, min_size=1, max_size=2),
    )


SCHEMAS = st.recursive(
    st.booleans() | st.builds(lambda kind: {"type": kind}, TYPES), _grow, max_leaves=6
)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Any, Any]:
    """Draw two schemas, most of them related: the new one has lost or gained a keyword."""
    old = draw(SCHEMAS)
    if not isinstance(old, dict) or not old or draw(st.booleans()):
        return old, draw(SCHEMAS)
    new = json.loads(json.dumps(old))
    if draw(st.booleans()):
        new.pop(draw(st.sampled_from(sorted(new))))
    else:
        more = draw(SCHEMAS)
        new |= more if isinstance(more, dict) else {}
    return old, new


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(pairs(), st.lists(DOCUMENTS, min_size=10, max_size=25))
def test_a_verdict_is_never_contradicted_by_a_document(
    pair: tuple[Any, Any], documents: list[Any]
) -> None:
    old, new = pair
    try:
        before, after = compile_schema(old), compile_schema(new)
    except Rejected:
        assume(False)
    proof = prove(old, new)
    if proof.outcome == "broken":
        assert before.is_valid(proof.witness)
        assert not after.is_valid(proof.witness)
    elif proof.outcome == "contained":
        for document in documents:
            assert after.is_valid(document) or not before.is_valid(document)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCHEMAS)
def test_every_schema_contains_itself_and_is_contained_in_everything(schema: Any) -> None:
    try:
        compile_schema(schema)
    except Rejected:
        assume(False)
    assert prove(schema, schema).outcome == "contained"
    assert prove(schema, True).outcome == "contained"
    assert prove(False, schema).outcome == "contained"


PIECES = st.sampled_from(
    ["a", "b", ".", "\\d", "[a-c]", "[^a]", "(ab|c)", "(?:a|)", "^", "$", "\\w", "(?=a)", "(?!b)"]
)
COUNTS = st.sampled_from(["", "", "*", "+", "?", "{2}", "{1,2}", "{2,}"])


@settings(max_examples=300, deadline=None)
@example([("a", "+"), ("a", "*"), ("a", "+")], ["a", "aa"])
@example([("(?!b)", ""), ("a", "+"), ("a", "*"), ("a", "+")], ["a", "aa"])
@example([("^", ""), ("(?!b)", ""), ("\\w", "+"), ("$", "")], ["é", "a", "b", "a\n"])
@given(
    st.lists(st.tuples(PIECES, COUNTS), min_size=1, max_size=4),
    st.lists(st.text("abc1\n é", max_size=6), max_size=12),
)
def test_a_pattern_read_as_a_language_holds_what_the_validator_matches(
    pieces: list[tuple[str, str]], words: list[str]
) -> None:
    text = "".join(
        piece + ("" if piece[:2] in ("^", "$", "(?") else many) for piece, many in pieces
    )
    try:
        language = pattern_language(text)
    except NotRegular:
        return
    validator = compile_schema({"pattern": text})
    python = re.compile(text.replace("$", r"\Z"), re.ASCII)
    looks_ahead = "(?=" in text or "(?!" in text
    found, _, _ = find_words(language, 3)
    for word in [*words, *found]:
        term = language
        for char in word:
            term = derive(term, ord(char))
        assert nullable(term) is bool(python.search(word))
        if not looks_ahead:  # the engine for it has Unicode classes, and finds a+a*a+ in "a"
            assert nullable(term) is validator.is_valid(word)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [("^[a-z]+$", "^[a-zA-Z]+$"), ("^(a|aa)+$", "^a+$"), ("^a.c$", "^.{3}$"), ("ab", "b")],
)
def test_languages_are_compared_by_words(narrow: str, wide: str) -> None:
    inside, outside = pattern_language(narrow), pattern_language(wide)
    assert find_words(both(inside, complement(outside)), 1)[:2] == ([], True)
    words, _, _ = find_words(both(outside, complement(inside)), 1)
    assert words == [] or (re.search(wide, words[0]) and not re.search(narrow, words[0]))


@pytest.mark.parametrize("pattern", ["(a)\\1", "\\bword\\b", "(?<=a)b", "\\p{L}", "(^a)*", "a**("])
def test_what_is_not_regular_is_said_to_be_so(pattern: str) -> None:
    with pytest.raises(NotRegular):
        pattern_language(pattern)


def _tree(kind: str, depth: int) -> Any:
    schema: Any = {"type": kind}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def _tagged(count: int, **extra: Any) -> Any:
    return {
        "oneOf": [
            {"type": "object", "required": ["k"], "properties": {"k": {"const": at}, "v": extra}}
            for at in range(count)
        ]
    }


WORDS = [f"value-{number}" for number in range(20_000)]
HOSTILE: dict[str, tuple[Any, Any, str]] = {
    "deep": (_tree("integer", 60), _tree("number", 60), "compatible"),
    "deep break": (_tree("number", 60), _tree("integer", 60), "breaking"),
    "huge enum": ({"enum": WORDS}, {"enum": [*WORDS, "z"]}, "compatible"),
    "huge enum break": ({"enum": WORDS}, {"enum": WORDS[:-1]}, "breaking"),
    "union of 40": (_tagged(40, type="string"), _tagged(40, type=["string", "null"]), "compatible"),
    "runaway pattern": ({"pattern": "^(a+)+$"}, {"pattern": "^(a|aa)+$"}, "compatible"),
    "exponential pattern": (
        {"pattern": "(a|b)*a(a|b){14}$"}, {"pattern": "(a|b)*b(a|b){14}$"}, "unknown"),
    "endless reference": ({"$ref": "#"}, {"type": "string"}, "unknown"),
    "reference circle": (
        {"$ref": "#/definitions/a", "definitions": {
            "a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}},
        {"type": "string"}, "unknown"),
    "vast length": ({"type": "string", "minLength": 10**9},
                    {"type": "string", "minLength": 10**9 + 1}, "unknown"),
    "vast length apart": ({"type": "string", "minLength": 10**9 + 1},
                          {"type": "string", "minLength": 10**9}, "compatible"),
    "vast array": ({"type": "array", "minItems": 10**9},
                   {"type": "array", "minItems": 10**9 + 1}, "unknown"),
    "vast number": ({"type": "number", "maximum": 10**400},
                    {"type": "number", "maximum": 10**399}, "breaking"),
    "many unique": ({"type": "array", "uniqueItems": True, "minItems": 500,
                     "items": {"type": "integer"}},
                    {"type": "array", "maxItems": 499}, "breaking"),
    "choices multiply": (
        {"allOf": [{"anyOf": [{"minimum": n}, {"maximum": -n}, {"multipleOf": n + 1}]}
                   for n in range(1, 15)], "type": "number"},
        {"not": {"allOf": [{"anyOf": [{"multipleOf": n}, {"minimum": 3 * n}]}
                           for n in range(2, 15)]}}, "breaking"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pairs_get_an_answer_within_the_budget(name: str) -> None:
    old, new, verdict = HOSTILE[name]
    found = compare(old, new, "strict")
    assert found.verdict == verdict
    assert (found.verdict == "unknown") is bool(found.reason)


def test_a_schema_nested_beyond_the_validator_is_rejected() -> None:
    with pytest.raises(Rejected):
        compare(_tree("string", 300), True)


def test_a_budget_of_nothing_gives_unknown() -> None:
    found = compare({"type": "integer"}, {"type": "number"}, "strict", budget=0)
    assert (found.verdict, found.reason) == ("unknown", "the comparison reached its limit of steps")


def test_the_engine_agrees_with_jsonschema_rs_on_values() -> None:
    schema = {"type": "array", "contains": {"const": 1}, "items": {"type": "number"}}
    validator = jsonschema_rs.Draft7Validator(schema, offline=True)
    proof = prove(schema, {"type": "array", "maxItems": 0})
    assert validator.is_valid(proof.witness)

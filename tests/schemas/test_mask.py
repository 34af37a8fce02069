from __future__ import annotations

import json
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallystick.schemas.mask import (
    FAIL_CLOSED,
    REFERENCE,
    Policy,
    mask_message,
    plan_payload,
    splice,
)
from tallystick.schemas.mask_spans import find_spans
from tallystick.schemas.pii_values import value_kind
from tallystick.schemas.values import parse_json

MARK = {"x-gdpr-sensitive": True}
TEXT = {"type": "string"}


def mask(schema: Any, value: Any, policy: Policy = FAIL_CLOSED) -> Any:
    raw = json.dumps(value).encode()
    return json.loads(splice(raw, plan_payload(schema, value, policy)))


def properties(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


# A case is (schema, value, value as it must come out, the secrets in it).
Case = tuple[Any, Any, Any, list[str]]
SECRETS = st.text("qwxz", min_size=5, max_size=12).map(lambda tail: f"S{tail}")


def is_plain(number: float) -> bool:
    """Leave out the few numbers that are a card or an identity number by chance."""
    return not value_kind(number)


HARMLESS: st.SearchStrategy[tuple[dict[str, Any], Any]] = st.one_of(
    st.tuples(st.just(TEXT), st.text('abc äö\n"\\', max_size=8)),
    st.tuples(st.just({"type": "integer"}), st.integers(-(10**40), 10**40).filter(is_plain)),
    st.tuples(
        st.just({"type": "number"}),
        st.floats(allow_nan=False, allow_infinity=False).filter(is_plain),
    ),
    st.tuples(st.just({"type": "boolean"}), st.booleans()),
    st.tuples(st.just({"type": ["null", "string"]}), st.none()),
    st.tuples(st.just({"enum": ["a@example.com"]}), st.just("a@example.com")),
)


def harmless(pair: tuple[dict[str, Any], Any]) -> Case:
    return pair[0], pair[1], pair[1], []


@st.composite
def marked(draw: st.DrawFn) -> Case:
    """Give a marked leaf, object or array; whatever stands there has to go."""
    secret = draw(SECRETS)
    value = draw(st.sampled_from([secret, [secret], {"k": secret}, {secret: 1}]))
    kept = f"{secret[0]}***" if isinstance(value, str) else "***"
    kind = draw(st.sampled_from([{}, {"type": ["string", "object", "array"]}]))
    return {**kind, "x-gdpr-sensitive": draw(st.sampled_from([True, "id"]))}, value, kept, [secret]


@st.composite
def hidden(draw: st.DrawFn, cases: st.SearchStrategy[Case]) -> Case:
    """Put the schema of a case behind a reference or a combinator."""
    schema, value, kept, secrets = draw(cases)
    way = draw(st.sampled_from(["allOf", "anyOf", "oneOf", "then", "$ref"]))
    if way == "$ref":
        name = f"d{crc32(json.dumps(schema).encode())}"  # the same name for the same schema only
        return {"$ref": f"#/definitions/{name}", "lift": {name: schema}}, value, kept, secrets
    wrapped: Any = schema if way == "then" else [schema]
    return {way: wrapped, **({"if": True} if way == "then" else {})}, value, kept, secrets


@st.composite
def objects(draw: st.DrawFn, cases: st.SearchStrategy[Case]) -> Case:
    """Give an object with declared members, members by pattern, and members nobody declared."""
    schema: dict[str, Any] = {"type": "object", "properties": {}, "patternProperties": {}}
    value, kept, secrets = {}, {}, []
    for at in range(draw(st.integers(0, 3))):
        inner, item, left, found = draw(cases)
        keyword = draw(st.sampled_from(["properties", "patternProperties"]))
        schema[keyword][f"^m{at}$" if keyword == "patternProperties" else f"m{at}"] = inner
        value[f"m{at}"], kept[f"m{at}"] = item, left
        secrets += found
    if draw(st.booleans()):
        secret = draw(SECRETS)
        value["undeclared"], kept["undeclared"] = [secret], "***"
        secrets.append(secret)
    return schema, value, kept, secrets


@st.composite
def arrays(draw: st.DrawFn, cases: st.SearchStrategy[Case]) -> Case:
    schema, value, kept, secrets = draw(cases)
    count = draw(st.integers(0, 2))
    held: Any = draw(st.sampled_from([schema, [schema] * count])) if count else schema
    return {"type": "array", "items": held}, [value] * count, [kept] * count, secrets * bool(count)


CASES: st.SearchStrategy[Case] = st.recursive(
    st.one_of(HARMLESS.map(harmless), marked()),
    lambda inner: st.one_of(objects(inner), arrays(inner), hidden(inner)),
    max_leaves=12,
)


def lift(node: Any, definitions: dict[str, Any]) -> Any:
    """Move the definitions that `hidden` left beside a reference to the root."""
    if isinstance(node, list):
        return [lift(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    for name, schema in node.get("lift", {}).items():
        definitions[name] = lift(schema, definitions)
    return {key: lift(item, definitions) for key, item in node.items() if key != "lift"}


@settings(max_examples=300, deadline=None)
@given(CASES, st.sampled_from([None, 1, 3]), st.booleans())
def test_masking_never_leaks_a_marked_value_and_changes_nothing_else(
    case: Case, indent: int | None, ascii_only: bool
) -> None:
    schema, value, kept, secrets = case
    definitions: dict[str, Any] = {}
    whole = lift({"properties": {"root": schema}}, definitions)
    whole["definitions"] = definitions
    raw = json.dumps({"root": value}, indent=indent, ensure_ascii=ascii_only).encode()
    masked = splice(raw, plan_payload(whole, {"root": value}))
    for secret in secrets:
        assert secret[1:].encode() not in masked
    expected = json.dumps({"root": kept}, indent=indent, ensure_ascii=ascii_only).encode()
    assert masked == expected


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(),
                    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)),
       st.sampled_from([None, 2]))  # fmt: skip
def test_every_span_holds_exactly_its_value(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    for path, span in find_spans(text).items():
        node = value
        for step in path:
            node = node[step]
        assert json.loads(text[span.start : span.end]) == node
        if path and isinstance(path[-1], str):
            assert json.loads(text[span.name_start : span.name_end]) == path[-1]


def test_big_integers_and_odd_numbers_stay_as_they_were_written() -> None:
    raw = b'{"n":9007199254740993,  "f":1.10,"e":1E2, "s":"\\u0041", "email":"alice@example.com"}'
    number = {"type": "number"}
    schema = properties(n=number, f=number, e=number, s=TEXT, email={**TEXT, **MARK})
    masked = splice(raw, plan_payload(schema, parse_json(raw, "m")))
    assert masked == raw.replace(b"alice@example.com", b"a***")


@pytest.mark.parametrize(
    ("schema", "value", "kept"),
    [
        (properties(a={**TEXT, **MARK}), {"a": "x"}, {"a": "***"}),
        (properties(a={**TEXT, **MARK}), {"a": "ali"}, {"a": "***"}),
        (properties(a={**TEXT, **MARK}), {"a": ""}, {"a": "***"}),
        (properties(a={**TEXT, **MARK}), {"a": None}, {"a": "***"}),
        (properties(a={**TEXT, **MARK}), {"a": "日本語の名前"}, {"a": "日***"}),
        (properties(a=TEXT), {"a": "ok", "b": 1}, {"a": "ok", "b": "***"}),
        (properties(a={"type": "array", "items": properties(b=MARK)}), {"a": "oops"},
         {"a": "o***"}),
        (properties(a=properties(b=MARK)), {"a": ["secret"]}, {"a": "***"}),
        (properties(a={"properties": {"b": MARK}}), {"a": "secret"}, {"a": "s***"}),
        (properties(a={"type": "integer"}), {"a": "12345"}, {"a": "1***"}),
        (properties(a=TEXT), {"a": None}, {"a": None}),
        (properties(email=TEXT), {"email": "somebody"}, {"email": "s***"}),
        (properties(email_verified={"type": "boolean"}), {"email_verified": True},
         {"email_verified": True}),
        (properties(note=TEXT), {"note": "write to bob@example.com"}, {"note": "w***"}),
        (properties(note=TEXT), {"note": "pay TR330006100519786457841326 now"}, {"note": "p***"}),
        (properties(ref={"type": "integer"}), {"ref": 4111111111111111}, {"ref": "***"}),
        (properties(ref={"type": "integer"}), {"ref": 4111111111111112},
         {"ref": 4111111111111112}),
        (properties(ref={"type": "number"}), {"ref": 10000000146.0}, {"ref": "***"}),
        (properties(a={}, b=True), {"a": "x1", "b": 2}, {"a": "***", "b": "***"}),
        (properties(a={"minLength": 1}), {"a": "secret"}, {"a": "s***"}),
        (properties(a={}), {"a": [7, {"b": "text"}]}, {"a": ["***", "***"]}),
        (properties(a={"const": "x"}), {"a": "x"}, {"a": "x"}),
        (properties(x={"type": "string", "contentMediaType": "application/json"}),
         {"x": '{"a": 1}'}, {"x": "{***"}),
        ({"additionalProperties": TEXT}, {"a@example.com": "ok", "b@example.com": "ok"},
         {"***": "ok", "***2": "ok"}),
        ({"additionalProperties": {"type": "integer"}, "propertyNames": MARK}, {"k": 1, "***": 2},
         {"****": 1, "***2": 2}),
        (properties(a={}), {"a": {"b": 1}}, {"a": {"b": "***"}}),
        (properties(a={"type": "object", "additionalProperties": True}), {"a": {"b": 1}},
         {"a": {"b": "***"}}),
        (properties(a={"not": {**TEXT, **MARK}}), {"a": "secret"}, {"a": "s***"}),
        ({"patternProperties": {"^(a+)+$": MARK}}, {"a" * 40 + "!": "secret"},
         {"a" * 40 + "!": "s***"}),
        ({"not": {"properties": {"a": {}}}}, {"a": 1}, {"a": "***"}),
        ({"$ref": "#/definitions/n", "definitions": {"n": properties(
            next={"$ref": "#/definitions/n"}, v={**TEXT, **MARK})}},
         {"next": {"next": {"v": "secret"}}}, {"next": {"next": {"v": "s***"}}}),
        ({"type": "array", "items": {}}, [1, "x"], ["***", "***"]),
        ({"type": "array", "items": True}, [1], ["***"]),
        (True, {"a": 1}, {"a": "***"}),
        (False, "text", "t***"),
    ],
)  # fmt: skip
def test_masking_fails_closed(schema: Any, value: Any, kept: Any) -> None:
    assert mask(schema, value) == kept


@pytest.mark.parametrize(
    ("schema", "value", "kept"),
    [
        (properties(a={**TEXT, **MARK}), {"a": "al", "b": "kept"}, {"a": "a***", "b": "kept"}),
        (properties(a={**TEXT, **MARK}), {"a": "x"}, {"a": "***"}),
        (properties(a=MARK), {"a": {"b": 1}}, {"a": "***"}),
        (properties(email=TEXT), {"email": "somebody"}, {"email": "somebody"}),
        (properties(a={"type": "array", "items": properties(b=MARK)}), {"a": "oops"},
         {"a": "o***"}),
        (properties(a={"type": "array", "items": properties(b=TEXT)}), {"a": "oops"},
         {"a": "oops"}),
        (properties(a={"$ref": "#/definitions/p"}) | {"definitions": {"p": {**TEXT, **MARK}}},
         {"a": "secret"}, {"a": "s***"}),
    ],
)  # fmt: skip
def test_the_reference_policy_masks_what_is_marked_and_nothing_else(
    schema: Any, value: Any, kept: Any
) -> None:
    assert mask(schema, value, REFERENCE) == kept


def test_an_envelope_keeps_what_the_contract_names_and_loses_what_may_quote_the_payload() -> None:
    message = {
        "job": "urn:babel:users:registered",
        "trace_id": "t",
        "data": {"user_id": 7, "email": "alice@example.com"},
        "meta": {"id": "i", "queue": "q", "lang": "go", "created_at": 1, "ext": {"x": "secret"}},
        "attempts": 3,
        "dead_letter": {"reason": "failed", "error": "no such user: alice", "attempts": 3},
        "vendor": "secret",
    }
    schema = properties(user_id={"type": "integer"}, email={**TEXT, **MARK})
    masked = json.loads(mask_message(json.dumps(message).encode(), message, schema))
    assert masked == {
        **message,
        "data": {"user_id": 7, "email": "a***"},
        "meta": {"id": "i", "queue": "q", "lang": "go", "created_at": 1, "ext": "***"},
        "dead_letter": {"reason": "failed", "error": "n***", "attempts": 3},
        "vendor": "s***",
    }
    kept = json.loads(mask_message(json.dumps(message).encode(), message, schema, REFERENCE))
    assert kept == {**message, "data": {"user_id": 7, "email": "a***"}}


def test_a_deep_message_does_not_exhaust_the_stack() -> None:
    value: Any = "secret"
    for _ in range(390):
        value = {"n": value}
    schema = {"properties": {"n": {"$ref": "#"}}}
    raw = json.dumps(value).encode()
    assert splice(raw, plan_payload(schema, value)) == raw.replace(b'"secret"', b'"s***"')

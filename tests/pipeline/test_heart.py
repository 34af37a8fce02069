"""The heart without Spark: planted faults are found, and the quick way agrees with the rule."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from tallystick.brokers import BROKERS
from tallystick.core.binding import project
from tallystick.core.capture import Capture, write
from tallystick.core.capture_columns import COLUMNS, CaptureRow, arrow_schema
from tallystick.core.envelope import decode
from tallystick.core.scan import MAX_BYTES
from tallystick.pipeline.capture import Record, read_line
from tallystick.pipeline.drifts import body_drifts
from tallystick.pipeline.exposures import looks_personal
from tallystick.pipeline.ingest import WIDE
from tallystick.pipeline.judge import Rules, build_rules, judge_record
from tallystick.pipeline.judge_many import judge_body, judge_records
from tallystick.pipeline.tables import TABLES
from tallystick.schemas.catalog import load_catalog, parse_catalog
from tests.pipeline.captures import write_line
from tests.pipeline.fuzz import compare, compare_people, judge_both_ways
from tests.pipeline.planted import BREAKS, WAYS, plant


@pytest.fixture(scope="module")
def rules(registry: Path) -> Rules:
    return build_rules(load_catalog(registry))


def plain(body: bytes, **around: Any) -> Record:
    empty = Record("file", 0, None, None, None, None, None, None, None, body, None)
    return empty._replace(**around)


def rules_of(schema: Any) -> Rules:
    manifest = b'{"schemas":[{"urn":"urn:a","schema":"a.json"}]}'
    return build_rules(parse_catalog(manifest, lambda _: json.dumps(schema).encode()))


def good(number: int = 1, data: str | None = None, urn: str = WAYS[0].urn) -> bytes:
    data = data or f'{{"amount":1.5,"currency":"EUR","order_id":{number}}}'
    return (
        f'{{"job":"{urn}","trace_id":"00000000-0000-4000-8000-000000000001","data":{data},'
        '"meta":{"id":"00000000-0000-4000-8000-000000000002","queue":"orders","lang":"php",'
        '"schema_version":1,"created_at":5},"attempts":0}'
    ).encode()


def test_every_planted_fault_is_found_and_no_other(rules: Rules) -> None:
    truth, planted = plant(4000, seed=3)
    everything = list(planted)
    judged = judge_records(rules, [one.record for one in everything])
    ways = Counter()  # type: ignore[var-annotated]
    for (_, number, _), row in zip(everything, judged, strict=True):
        broken = truth.broken.get(number)
        if broken is not None:
            assert (row.verdict, row.stage, row.code) == ("refused", broken.stage, broken.code)
            ways[broken.name] += 1
            continue
        assert row.verdict == ("unknown" if number in truth.foreign else "valid"), row
        drift = truth.drifted.get(number)
        assert {kind for kind, _ in row.drifts} == ({drift} if drift else set())
        evidence = [one for one in row.exposures if one.basis != "mark"]
        assert bool(evidence) == (number in truth.leaked)
        assert (row.undeclared == ("zz_extra",)) == (number in truth.undeclared)
    assert len(ways) == len(BREAKS) >= 20


def test_the_quick_way_says_what_the_rule_says(rules: Rules) -> None:
    told = compare(rules, 3000, seed=11)
    assert told["quick"] > 300, told
    assert {"read", "sections", "gate", "decode", "accept", "schema", "unknown"} <= set(told)


def test_the_quick_way_masks_what_the_rule_masks() -> None:
    assert compare_people(2000, seed=7)["quick"] > 200


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (b'"attempts":0', b'"attempts":10000000146', b'"attempts":"***"'),
        (b'"created_at":5', b'"created_at":4111111111119', b'"created_at":"***"'),
        (b'"n":1', b'"n":-4111111111111111', b'"n":"***"'),
        (b'"t":"x"', b'"t":"pay XY83ABCDEFGHIJK now"', b'"t":"p***"'),
        (b'"t":"x"', b'"t":"XY83 abc def ghi jk"', b'"t":"XY83 abc def ghi jk"'),
        (b'"t":"x"', '"t":"\u00df49ABCDEFGHIJK"'.encode(), "\u00df49".encode()),
    ],
)  # fmt: skip
def test_check_digits_betray_a_value_wherever_it_stands(
    old: bytes, new: bytes, told: bytes
) -> None:
    members = {"n": {"type": "integer"}, "t": {"type": "string"}}
    rules = rules_of({"type": "object", "properties": members})
    body = good(data='{"n":1,"t":"x"}', urn="urn:a")
    record = plain(body.replace(old, new))
    assert told in (judge_record(rules, record).masked or b"")
    told_both = judge_both_ways(rules, [plain(body), record])
    assert told_both["quick"] == 1, "the harmless one alone is sure"


def test_a_mark_on_the_whole_data_masks_all_of_it() -> None:
    members = {"t": {"type": "string"}}
    rules = rules_of({"type": "object", "properties": members, "x-gdpr-sensitive": "health"})
    body = good(data='{"t":"x"}', urn="urn:a")
    (row,) = judge_records(rules, [plain(body)])
    assert row.masked == body.replace(b'{"t":"x"}', b'"***"')
    assert [tuple(one) for one in row.exposures] == [("data", "mark", "health")]


@pytest.mark.parametrize("digits", [309, 400])
def test_a_whole_number_beyond_a_double_is_refused_on_both_ways(rules: Rules, digits: int) -> None:
    body = good(data=f'{{"amount":1.5,"currency":"EUR","order_id":{"9" * digits}}}')
    (row,) = judge_records(rules, [plain(body)])
    assert (row.verdict, row.code) == ("refused", "number_out_of_range")
    assert judge_body(rules, body) == "refused"


def test_a_body_beyond_the_limit_is_refused_on_both_ways(rules: Rules) -> None:
    body = good(
        urn="urn:babel:stock:changed",
        data=f'{{"name":"a","number":1,"spare":"{"x" * MAX_BYTES}"}}',
    )
    (row,) = judge_records(rules, [plain(body)])
    assert (row.verdict, row.code) == ("refused", "too_large")
    assert judge_body(rules, body) == "refused"


def test_a_number_beyond_a_double_beside_the_data_is_a_drift_and_no_crash(rules: Rules) -> None:
    body = good().replace(b'"created_at":5', b'"created_at":5,"z":1e400')
    (row,) = judge_records(rules, [plain(body)])
    assert (row.verdict, row.canonical) == ("valid", False)
    assert row.drifts == (("number_form", "/meta/z"),)


def test_all_planted_schemas_have_a_quick_way(rules: Rules) -> None:
    assert len(rules.quick.shapes) == len(WAYS)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string", "format": "date"}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}}},
        {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"},
                                                "uniqueItems": True}}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "a.c"}}},
        {"type": "object", "properties": {"a": {"type": "number", "multipleOf": 0.1}}},
        {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0.5}}},
        {"type": "object", "properties": {"é": {"type": "integer"}}},
        {"type": "object", "patternProperties": {"a": {"type": "integer"}}},
        {"type": "object", "required": ["b"], "properties": {"a": {"type": "integer"}}},
        True,
    ],
)  # fmt: skip
def test_a_schema_outside_the_subset_has_no_quick_way(schema: Any) -> None:
    assert rules_of(schema).quick.decode is None


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("whitespace", b',"meta"', b' ,"meta"'),
        ("member_order", b'"amount":1.5,"currency":"EUR"', b'"currency":"EUR","amount":1.5'),
        ("number_form", b"1.5", b"1.50"),
        ("number_form", b"1.5", b"15e-1"),
        ("string_form", b"EUR", b"E\\u0055R"),
        ("duplicate_member", b'"amount":1.5', b'"amount":1,"amount":1.5'),
        ("alias", b'"job":', b'"urn":'),
        ("forbidden_member", b'"attempts":0', b'"attempts":0,"timestamp":1'),
    ],
)
def test_each_kind_of_drift_is_named(kind: str, old: bytes, new: bytes) -> None:
    envelope = decode(good().replace(old, new))
    assert kind in dict(body_drifts(envelope))


def test_a_retry_keeps_the_content_and_the_key(rules: Rules) -> None:
    first = judge_record(rules, plain(good()))
    again = judge_record(rules, plain(good().replace(b'"attempts":0', b'"attempts":3')))
    dead = good().replace(b'"attempts":0}', b'"attempts":3,"dead_letter":{"reason":"failed"}}')
    for other in (again, judge_record(rules, plain(dead))):
        assert (other.key_high, other.key_low) == (first.key_high, first.key_low)
        assert other.content == first.content
        assert other.hash != first.hash
    assert judge_record(rules, plain(good(2))).content != first.content


def test_a_native_count_is_reconciled_by_the_broker(rules: Rules) -> None:
    sections = '{"headers":{"bq-attempts":{"$bytes":"Mg=="}}}'
    for judge in (judge_record, lambda r, one: judge_records(r, [one])[0]):
        row = judge(rules, plain(good(), broker="kafka", sections=sections))
        assert (row.body_attempts, row.attempts) == (0, 2)


@pytest.mark.parametrize("broker", BROKERS)
def test_what_our_own_capture_holds_is_read_with_its_native_types(
    rules: Rules, broker: str
) -> None:
    frame = project(BROKERS[broker].binding, decode(good()))
    line = write(Capture("sent", broker, "orders", "shop", 1, 0, frame))
    row = judge_record(rules, read_line(line, "file", 0))
    assert (row.verdict, row.drifts) == ("valid", ())


def test_the_version_property_is_a_gate(rules: Rules) -> None:
    sections = '{"headers":{"bq-schema-version":{"$bytes":"Mg=="}}}'
    row = judge_record(rules, plain(good(), broker="kafka", sections=sections))
    assert (row.verdict, row.stage) == ("refused", "gate")


def test_a_message_without_an_id_is_known_by_its_bytes(rules: Rules) -> None:
    body = good().replace(b'"id":"00000000-0000-4000-8000-000000000002",', b"")
    one, two = (judge_record(rules, plain(body)) for _ in range(2))
    assert (one.key_high, one.key_low) == (two.key_high, two.key_low)
    other = judge_record(rules, plain(body.replace(b"EUR", b"USD")))
    assert (other.key_high, other.key_low) != (one.key_high, one.key_low)


def test_every_violation_is_told_with_its_place(rules: Rules) -> None:
    row = judge_record(rules, plain(good(data='{"amount":-1,"currency":"GBP","order_id":0}')))
    assert [(one[0], one[1]) for one in row.violations] == [
        ("/data/amount", "minimum"), ("/data/currency", "enum"), ("/data/order_id", "minimum"),
    ]  # fmt: skip


def test_marked_and_suspicious_values_are_masked_alike(rules: Rules) -> None:
    body = good(data='{"email":"jane@example.com","template":"t"}', urn=WAYS[2].urn)
    for judge in (judge_record, lambda r, one: judge_records(r, [one])[0]):
        row = judge(rules, plain(body))
        assert row.masked == body.replace(b"jane@example.com", b"j***")
        assert [tuple(one) for one in row.exposures] == [("data.email", "mark", "email")]


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("jane@example.com", ("form", "email")),
        ("call +49 30 1234567 now", ("form", "inside a text")),
        ("DE89370400440532013000", ("checksum", "bank_account")),
        ("DE89370400440532013001", ("checksum", "")),
        (10000000146, ("checksum", "national_id")),
        (10000000147, ("checksum", "")),
        (1749132727000, None),
        ("plain text", None),
        (True, None),
    ],
)
def test_a_value_is_evidence_by_form_or_by_checksum(value: Any, told: Any) -> None:
    assert looks_personal(value) == told


def test_a_capture_is_read_back_as_it_was_written() -> None:
    _, planted = plant(200)
    for _, _, record in planted:
        line = write_line(record)
        assert read_line(line, record.source, record.position) == record


def test_a_record_is_a_row_at_its_place() -> None:
    assert Record._fields == ("source", "position", *CaptureRow._fields, "fault", "reason")
    hints = get_type_hints(Record)
    assert {name: hints[name] for name in COLUMNS} == get_type_hints(CaptureRow)


def test_the_lake_keeps_every_column_of_a_capture_with_its_type() -> None:
    schema = arrow_schema(pa)
    assert WIDE.names[: len(COLUMNS) + 2] == ["source", "position", *COLUMNS]
    for kept in (WIDE, TABLES["messages"].schema):
        assert [kept.field(name) for name in COLUMNS] == list(schema)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        (b'{"kind":"capture","format":2,"body":""}', "capture.format"),
        (b'{"kind":"capture","format":1}', "capture.body"),
        (b'{"kind":"capture","format":true,"body":""}', "capture.format"),
        (b'{"kind":"capture","format":2,"at":"today"}', "capture.format"),
        (b'{"kind":"capture","format":1,"body":"","body64":""}', "capture.body"),
        (b'{"kind":"capture","format":1,"body64":"?"}', "capture.malformed"),
        (b'{"kind":"capture","format":1,"body":"","sections":{"a":}}', "capture.malformed"),
        (b'{"kind":"capture","format":1,"body":"", "sections":{"a":"\xff"}}', "capture.malformed"),
        (b'{"kind":"capture","format":1,"body":""', "capture.malformed"),
        (b'{"kind":"capture","format":1,"direction":"up","body":""}', "capture.malformed"),
        (b'{"kind":"capture","format":1,"at":9223372036854775808,"body":""}', "capture.malformed"),
        (b'{"kind":"capture","format":1,"clock_error":-1,"body":""}', "capture.malformed"),
        (b'{"kind":"capture","format":1,"clock_error":0,"body":""}', None),
        (b'{"kind":"capture","format":1,"at":-9223372036854775808,"body":""}', None),
        (b'{"body64":"AA==", "format":1, "kind":"capture"}', None),
        (b'{"job":"capture"}', None),
        (b'{"x":"capture","kind"', None),
    ],
)
def test_a_bad_capture_is_a_record_with_a_fault(line: bytes, fault: str | None) -> None:
    assert read_line(line, "f", 0).fault == fault

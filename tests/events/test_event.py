"""The event model: strict, immutable, inventing nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.errors import Refused, UsageError
from tallystick.events.equality import differences
from tallystick.events.event import CORE, Event, make, replace
from tallystick.events.extensions import (
    CONSTRAINED,
    NONE,
    SAMPLES,
    declare,
    extension,
    fit,
    parse_declaration,
)
from tallystick.events.golden import BATCHES, EVENTS
from tallystick.events.grammar import is_uri, is_uri_reference, parse_media_type
from tallystick.events.payload import ABSENT
from tallystick.events.timestamp import Timestamp, _nanoseconds, is_timestamp
from tallystick.events.values import Kind, Uri, UriReference, parse, read_base64, spell


def minimal(**more: Any) -> Event:
    given: dict[str, Any] = {"id": "1", "source": "/s", "type": "t"}
    return make(**(given | more))


def test_an_event_invents_neither_id_nor_time_nor_content_type() -> None:
    event = minimal()
    assert dict(event.attributes) == {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
    assert event.time is None
    assert event.datacontenttype is None
    assert event.data is ABSENT


def test_an_event_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        minimal().id = "2"  # type: ignore[misc]


@pytest.mark.parametrize("name", ["id", "source", "type", "subject", "dataschema", "time"])
@pytest.mark.parametrize("value", ["", 1, b"x", ["x"], {"a": 1}, True])
def test_a_core_attribute_has_its_type_and_is_not_empty(name: str, value: Any) -> None:
    with pytest.raises(Refused) as refused:
        minimal(**{name: value})
    assert refused.value.pointer == f"/{name}"


@pytest.mark.parametrize("version", ["0.3", "1.0.2", "", "1", " 1.0"])
def test_only_specversion_1_0_is_an_event(version: str) -> None:
    with pytest.raises(Refused):
        minimal(specversion=version)


@pytest.mark.parametrize(
    "name", ["", "data", "Data", "a_b", "a-b", "a.b", "é", "abc\n", "A", "data_base64", "time "]
)
def test_an_extension_name_is_lower_case_letters_and_digits(name: str) -> None:
    with pytest.raises(Refused) as refused:
        minimal(extensions={name: "x"})
    assert refused.value.code == "bad_name"


@pytest.mark.parametrize("name", CORE)
def test_a_core_attribute_is_no_extension(name: str) -> None:
    with pytest.raises(Refused):
        minimal(extensions={name: "x"})


@pytest.mark.parametrize("value", [1.5, 10.0, [], {}, 2**31, -(2**31) - 1, object(), 1 + 0j])
def test_an_extension_value_is_one_of_the_seven_types(value: Any) -> None:
    with pytest.raises(Refused):
        minimal(extensions={"ext": value})


def test_an_extension_that_is_none_is_unset() -> None:
    assert minimal(extensions={"ext": None}) == minimal()


@pytest.mark.parametrize(
    "text",
    [
        "\x00",
        "a\nb",
        "\x7f",
        "\x9f",
        "\ufdd0",
        "\ufdef",
        "\ufffe",
        "\uffff",
        "\U0010ffff",
        "\ud800",
    ],
)
@pytest.mark.parametrize("name", ["id", "type", "subject", "ext"])
def test_a_string_holds_no_control_noncharacter_or_lone_surrogate(name: str, text: str) -> None:
    given = {"extensions": {name: text}} if name == "ext" else {name: text}
    with pytest.raises(Refused) as refused:
        minimal(**given)
    assert refused.value.pointer == f"/{name}"


@pytest.mark.parametrize("text", ["€ 😀", "\u00a0", "\u2028", "\ufffd", " ", "a b"])
def test_a_string_may_hold_every_other_character(text: str) -> None:
    assert minimal(subject=text).subject == text


@pytest.mark.parametrize(
    "uri",
    [
        "https://a",
        "urn:a:b",
        "a:",
        "a+b-c.1:x",
        "http://u:p@h:1/p?q",
        "x://[::1]",
        "x:/a//b",
        "a:?b",
    ],
)
def test_absolute_uris_are_uris(uri: str) -> None:
    assert is_uri(uri)
    assert is_uri_reference(uri)


@pytest.mark.parametrize(
    "text",
    ["", "//x?y", "/a", "#f", "a b:", "1a:b", "https://a b", "https://a#f", "x:<y>", "x:%zz", "é:a",
     "http://[1::2::3]/", "http://a:b:c/", 'x:"y"', "x:\\y", "x:y\n"],
)  # fmt: skip
def test_what_is_no_absolute_uri_is_none(text: str) -> None:
    assert not is_uri(text)


@pytest.mark.parametrize(
    "text", ["#f", "", "/a?b", "//h/p", "a/b:c", "..", "?q", "https://a#f", "%20"]
)
def test_relative_references_are_references(text: str) -> None:
    assert is_uri_reference(text)


@pytest.mark.parametrize("text", ["a b", "<x>", "/a%zz", "é", "1:a", "a#b#c", "[x]", "/a\n", "^"])
def test_what_is_no_reference_is_none(text: str) -> None:
    assert not is_uri_reference(text)


@pytest.mark.parametrize(
    "text",
    ["2018-04-05T17:31:00Z", "2018-04-05t17:31:00z", "2018-04-05T17:31:00.000000000Z",
     "2018-04-05T17:31:00-00:00", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59.9+23:59",
     "2016-12-31T23:59:60Z", "2017-01-01T00:59:60+01:00", "2020-02-29T00:00:00Z",
     "2018-04-05T17:31:00.1234567890123456789Z"],
)  # fmt: skip
def test_rfc_3339_date_times_are_timestamps(text: str) -> None:
    assert is_timestamp(text)
    assert str(Timestamp(text)) == text


@pytest.mark.parametrize(
    "text",
    ["", "lunchtime", "2018-04-05T18:31Z", "2018-04-05T18:31:00X", "2018-04-05T18:31:00+25:00",
     "2018-04-05T18:31:00+xx:00", "2018-04-05T18:31:00+05", "2018-04-05T18:31:00+0500",
     "2018-04-05 18:31:00Z", "20180405T183100Z", "2018-W14-4T18:31:00Z", "2018-04-05T24:00:00Z",
     "2018-04-05T18:31:00,5Z", "2018-04-05T18:31:00.Z", "2018-04-05T18:31:00",
     "2018-02-30T00:00:00Z",
     "2018-04-05T18:60:00Z", "2018-04-05T18:31:60Z", "2018-13-05T18:31:00Z", "2018-04-05T183100.1Z",
     "2018-04-05T18:31:00Z\n", "2018-04-05T18:31:00+01:60", "2018-4-05T18:31:00Z",
     "2018-04-05T18:31:00.1٢Z"],
)  # fmt: skip
def test_everything_else_is_no_timestamp(text: str) -> None:
    assert not is_timestamp(text)
    with pytest.raises(Refused):
        Timestamp(text)


def test_timestamps_are_equal_when_they_mean_the_same_millisecond() -> None:
    assert Timestamp("2018-04-05T18:31:00+01:00") == Timestamp("2018-04-05T17:31:00.000999Z")
    assert Timestamp("2018-04-05T17:31:00.001Z") != Timestamp("2018-04-05T17:31:00Z")
    assert Timestamp("2016-12-31T23:59:60Z") == Timestamp("2017-01-01T00:00:00Z")


def test_a_datetime_becomes_a_timestamp_only_with_an_offset() -> None:
    moment = datetime(2018, 4, 5, 17, 31, tzinfo=UTC)
    assert minimal(time=moment).time == Timestamp("2018-04-05T17:31:00Z")
    with pytest.raises(Refused):
        minimal(time=moment.replace(tzinfo=None))


@pytest.mark.parametrize(
    "text", ["text/plain", "a/b;c=d", 'a/b; c="d;\\"e"', "APPLICATION/JSON", "a/b+c ; d=e;f=g"]
)
def test_rfc_2046_media_types_are_media_types(text: str) -> None:
    assert parse_media_type(text) is not None


@pytest.mark.parametrize(
    "text",
    ["", "xyz", "text/", "/plain", "a b/c", "a/b;", "a/b;c", "a/b; c=d e", "a/b/c", "a/b,c/d"],
)
def test_everything_else_is_no_media_type(text: str) -> None:
    assert parse_media_type(text) is None
    if text:
        with pytest.raises(Refused):
            minimal(datacontenttype=text)


@pytest.mark.parametrize(
    "text", ["!!!!", "TWE", "TWE=\n", "TW E=", "TWF=", "TQ=", "====", "TWE_", "A==="]
)
def test_wrong_base64_is_refused(text: str) -> None:
    with pytest.raises(Refused):
        read_base64(text)


def test_absent_null_bytes_text_and_json_are_five_different_data() -> None:
    kinds: list[Any] = [ABSENT, None, b"null", "null", {"a": None}]
    events = [minimal(data=data) for data in kinds]
    for one, ours in enumerate(events):
        for two, theirs in enumerate(events):
            assert (ours == theirs) is (one == two)
            assert (ours != theirs) is (one != two)


def test_an_implied_content_type_equals_the_explicit_one() -> None:
    assert minimal(data={"a": 1}) == minimal(data={"a": 1}, datacontenttype="application/json")
    assert minimal(data=b"x") != minimal(data=b"x", datacontenttype="application/json")


def test_json_true_is_not_one() -> None:
    assert minimal(data={"a": True}) != minimal(data={"a": 1})
    assert minimal(data=[1.0]) == minimal(data=[1])


@pytest.mark.parametrize("data", [{"a": 1}, None, 5, True, ["a"]])
def test_data_under_a_content_type_that_is_not_json_is_text_or_bytes(data: Any) -> None:
    with pytest.raises(Refused) as refused:
        minimal(datacontenttype="text/plain", data=data)
    assert refused.value.pointer == "/data"


@pytest.mark.parametrize(
    "data", [float("nan"), {"a": float("inf")}, {1: 2}, {"a": {2}}, "\ud800", {"\ud800": 1}, [b"x"]]
)
def test_what_json_cannot_say_is_no_json_data(data: Any) -> None:
    with pytest.raises(Refused):
        minimal(data=data)


def test_data_is_copied_from_the_caller() -> None:
    mine = {"a": [1]}
    event = minimal(data=mine)
    mine["a"].append(2)
    assert event.data == {"a": [1]}


def test_an_extension_differs_by_type_as_well_as_by_text() -> None:
    ours, theirs = (minimal(extensions={"ext": value}) for value in ("x:y", Uri("x:y")))
    assert [found.pointer for found in differences(ours, theirs)] == ["/ext"]


def test_replace_gives_a_judged_copy() -> None:
    event = minimal(subject="a", data={"a": 1})
    assert replace(event, subject=None, data=ABSENT) == minimal()
    assert replace(event, data=None).data is None
    with pytest.raises(Refused):
        replace(event, id="")


def test_every_golden_event_and_batch_is_there() -> None:
    assert len(EVENTS) == 6
    assert {name: len(batch) for name, batch in BATCHES.items()} == {
        "empty": 0, "minimal": 1, "minimal2": 2, "minimalAndAllCore": 2,
        "minimalAndAllExtensionTypes": 2,
    }  # fmt: skip
    assert [len(EVENTS) - 1] == [
        sum(one != two for two in EVENTS.values()) for one in EVENTS.values()
    ][:1]
    assert EVENTS["allExtensionTypes"].extensions["exturiref"] == "//authority/path"
    assert type(EVENTS["allExtensionTypes"].extensions["exturiref"]) is UriReference


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [("posinteger", 1, 0), ("shortstring", "12345", "123456"), ("shortbinary", b"12345", b"123456"),
     ("moderntimestamp", "2000-01-01T00:00:00Z", "1999-12-31T23:59:59.999Z")],
)  # fmt: skip
def test_a_constraint_holds_at_its_edge_and_not_beyond(name: str, good: Any, bad: Any) -> None:
    assert fit(CONSTRAINED[name], good, tuple(Kind)) == good
    with pytest.raises(Refused) as refused:
        fit(CONSTRAINED[name], bad, tuple(Kind))
    assert refused.value.code == "constraint"


def test_users_declare_their_own_extensions() -> None:
    known = declare(extension("even", Kind.INTEGER, lambda n: n % 2 == 0, "even"))
    assert fit(known["even"], "4", tuple(Kind)) == 4
    with pytest.raises(Refused):
        fit(known["even"], 3, tuple(Kind))
    with pytest.raises(Refused):
        fit(known["even"], "4")
    assert parse_declaration("when=timestamp").kind is Kind.TIMESTAMP
    for wrong in ("when", "when=date", "Wh=String", "=String"):
        with pytest.raises(UsageError):
            parse_declaration(wrong)
    with pytest.raises(UsageError):
        declare(SAMPLES["exturi"], SAMPLES["exturi"])
    assert not NONE


@pytest.mark.parametrize("kind", Kind)
def test_the_canonical_string_of_a_value_reads_back(kind: Kind) -> None:
    samples: dict[Kind, Any] = {
        Kind.BOOLEAN: False, Kind.INTEGER: -7, Kind.STRING: "é", Kind.BINARY: b"\x00\xff",
        Kind.URI: Uri("a:b"), Kind.URI_REFERENCE: UriReference("#b"),
        Kind.TIMESTAMP: Timestamp("2018-04-05T17:31:00Z"),
    }  # fmt: skip
    value = parse(kind, spell(samples[kind]))
    assert value == samples[kind]
    assert type(value) is type(samples[kind])


@pytest.mark.parametrize("text", ["True", "1", "", "TRUE"])
def test_a_boolean_is_true_or_false_only(text: str) -> None:
    with pytest.raises(Refused):
        parse(Kind.BOOLEAN, text)


@pytest.mark.parametrize("text", ["1.0", "1e1", "2147483648", "", " 1", "+1", "-0", "01", "٣"])
def test_an_integer_is_plain_digits(text: str) -> None:
    with pytest.raises(Refused):
        parse(Kind.INTEGER, text)


DIGIT_OR_NOT = "0123456789:.-+TZtz aé/"


@given(st.text(DIGIT_OR_NOT, max_size=8), st.integers(0, 27), st.integers(0, 5))
def test_the_quick_look_at_a_timestamp_agrees_with_the_rule(put: str, at: int, cut: int) -> None:
    text = "2018-04-05T17:31:00.123456Z"
    changed = text[:at] + put + text[at + cut :]
    assert is_timestamp(changed) is (_nanoseconds(changed) is not None)


@pytest.mark.parametrize("tail", [" hello worldZ", "abcZ", "0000.1Z", "<b>Z"])
def test_nothing_hides_behind_six_digits_of_a_second(tail: str) -> None:
    assert not is_timestamp(f"2018-04-05T17:31:00.123456{tail}")


def test_there_is_no_hour_24() -> None:
    assert not is_timestamp("2018-04-05T24:00:00Z")


def test_attributes_cannot_be_altered_through_the_view() -> None:
    event = minimal(subject="s")
    with pytest.raises(TypeError):
        event.members["id"] = "changed"  # type: ignore[index]
    with pytest.raises(AttributeError):
        event.held = {}  # type: ignore[misc]


def test_data_cannot_be_altered_through_what_was_given() -> None:
    given = {"b": [1, {"c": 2}], "a": []}
    event = minimal(data=given)
    given["b"].append(3)
    event.data["b"][1]["c"] = float("nan")
    assert event.data == {"b": [1, {"c": 2}], "a": []}
    assert list(event.data) == ["b", "a"]

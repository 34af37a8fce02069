"""Lists of messages become what a judge reads; parameters are complete; what breaks is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from math import inf
from typing import Any

import pytest

from tallystick.core.verdict import Outcome
from tallystick.lab import assignment, reports, values
from tallystick.lab.content import TABLES
from tallystick.lab.control import Control, Kind, Role
from tallystick.lab.coordinator import begin
from tallystick.lab.instance import Part
from tallystick.lab.payload import digest_of, make_body
from tests.lab.company import INTEROP
from tests.lab.test_coordinator import Honest, make_plan, run_to_the_end

RECEIVER = Part("r", Role.RECEIVER, {}, {"seed": 1, "message_bytes": 8})
SENDER = Part("s", Role.SENDER, {}, {"seed": 1, "message_bytes": 8, "num_publishers": 2})
QUIET = {"started_ns": ["1"], "ended_ns": ["2"]}


def hash_of(number: int) -> str:
    return sha256(make_body(1, number, 8)).hexdigest()


def came(number: int, **other: Any) -> dict[str, Any]:
    headers = {"CLIENT_NAME": ["S", "s"], "PUBLISHER": ["*", "0"], "SEQUENCE": ["I", str(number)],
               "SENT_NS": ["l", "100"]}  # fmt: skip
    return {
        "consumer": 0, "redelivered": False, "put_back": False, "arrived_ns": "150", "length": 8,
        "sha256": hash_of(number), "differs": -1, "properties": {"correlation_id": "c"},
        "headers": headers, **other,
    }  # fmt: skip


def tally(
    part: Part,
    *lists: list[dict[str, Any]],
    shift: int = 0,
    about: Mapping[str, Any] | None = None,
    **more: Any,
) -> Any:
    told = None
    for messages in lists:
        said = Control(Kind.REPORT, {}, {**QUIET, "messages": messages, **more})
        told = reports.join_reports(part.role, told, said, about or {})
    assert told
    return reports.tally_report(part, told, shift).body


def test_batches_of_a_sender_are_one_list_for_each_publisher() -> None:
    first, second = (
        [{"publisher": at % 2, "sequence": at // 2, "sha256": hash_of(at // 2)} for at in numbers]
        for numbers in (range(4), range(4, 7))
    )
    body = tally(SENDER, first, second, returned=[{"code": 312, "headers": came(5)["headers"]}])
    assert body["sent"] == ["0-3", "0-2"]
    assert body["digests"] == [digest_of(1, 8, range(4)), digest_of(1, 8, range(3))]
    assert body["returned"] == [[0, 5, 312]] * 2
    assert (body["started_ns"], body["ended_ns"]) == ("1", "2")


def test_streams_are_by_consumer_sender_correlation_id_and_publisher() -> None:
    """IOP-38."""
    other = {**came(0)["headers"], "PUBLISHER": ["I", "1"]}
    messages = [
        came(0), came(2), came(1, redelivered=True), came(0, consumer=1),
        came(0, properties={"correlation_id": "d"}), came(0, headers=other),
        came(3, properties={}),
    ]  # fmt: skip
    body = tally(RECEIVER, messages[:2], messages[2:], left=[3])
    found = {
        (one["consumer"], one["correlation_id"], one["publisher"]): one["received"]
        for one in body["streams"]
    }
    assert found == {(0, "c", 0): "0,2,1", (1, "c", 0): "0", (0, "d", 0): "0", (0, "c", 1): "0",
                     (0, "", 0): "3"}  # fmt: skip
    first = body["streams"][0]
    assert (first["redelivered"], first["digest"]) == ("1", digest_of(1, 8, [0, 2, 1]))
    assert body["left"] == 6


def test_an_altered_message_is_told_with_its_offset_and_hash() -> None:
    body = tally(RECEIVER, [came(0), came(1, differs=3, sha256="ab", length=9)])
    (stream,) = body["streams"]
    assert stream["altered"] == [[1, 3, 9, "ab"]]


@pytest.mark.parametrize("missing", ["CLIENT_NAME", "SEQUENCE"])
def test_a_message_of_no_client_is_unexpected(missing: str) -> None:
    headers = {name: one for name, one in came(0)["headers"].items() if name != missing}
    body = tally(RECEIVER, [came(0, headers=headers)])
    assert (body["streams"], body["unexpected"]) == ([], [[0, 8, hash_of(0)]])


def test_what_was_put_back_is_no_arrival_but_stands_in_the_echo() -> None:
    again = came(0, redelivered=True, arrived_ns="170")
    body = tally(RECEIVER, [came(0, put_back=True), again])
    assert (body["streams"][0]["received"], body["first_ns"]) == ("0", "170")
    body = tally(RECEIVER, [came(0, put_back=True, body=""), {**again, "body": ""}])
    assert body["streams"] == body["unexpected"] == []
    assert [one["put_back"] for one in body["echo"]] == [True, False]


def test_a_body_that_is_null_is_no_echo() -> None:
    body = tally(RECEIVER, [came(0, body=None)])
    assert (body["streams"][0]["received"], body["echo"]) == ("0", [])


def test_the_time_of_a_batch_ends_with_it() -> None:
    """The last report of a sender lists nothing: its times are those of the batch before."""
    batch = [{"publisher": 0, "sequence": 0, "sha256": hash_of(0)}]
    told = None
    for started, messages in (("10", batch), ("500", batch), ("500", [])):
        times = {"started_ns": [started], "ended_ns": [f"{started}0"], "messages": messages}
        said = Control(Kind.REPORT, {}, {**QUIET, **times})
        told = reports.join_reports(Role.SENDER, told, said, {})
    assert told
    body = reports.tally_report(SENDER, told, 0).body
    assert body["spans"] == [("10", "100"), ("500", "5000")]
    first = [came(0, put_back=True), came(0, arrived_ns="170"), came(1, arrived_ns="180")]
    body = tally(RECEIVER, first, [came(2, arrived_ns="900")], [])
    assert body["spans"] == [(170, 180), (900, 900)]


def test_a_latency_is_corrected_by_the_clocks() -> None:
    body = tally(RECEIVER, [came(0), came(1), came(2, arrived_ns="90")], shift=7)
    assert body["latency"] == {57: 2, -3: 1}


def test_where_bodies_are_not_looked_at_there_is_no_digest() -> None:
    counted = Part("r", Role.RECEIVER, {}, {"check": "count"})
    assert tally(counted, [came(0, sha256="")])["streams"][0]["digest"] == ""


class Garbles(Honest):
    """A client whose reports have something in them that the protocol has not."""

    def __init__(self, name: str, wrong: dict[str, Any]) -> None:
        super().__init__(name)
        self.wrong = wrong

    def tell(self, asked: Control, count: int, messages: list[dict[str, Any]]) -> Control:
        if self.roles[asked.assignment].fields["ROLE"] == "RECEIVER":
            messages = [came(0)]
        said = super().tell(asked, count, [{**one, **self.wrong} for one in messages])
        return replace(said, body={**said.body, **self.wrong})


BROKEN: list[dict[str, Any]] = [
    {"messages": 3}, {"messages": [{}]}, {"messages": [[]]}, {"left": [inf]}, {"closed": [{}]},
    {"arrived_ns": inf}, {"differs": inf}, {"sequence": inf, "consumer": []}, {"sha256": "zz"},
    {"sha256": 5}, {"consumer": []}, {"headers": {"a": {"LongString": 3}}}, {"headers": 5},
    {"properties": {"correlation_id": []}}, {"headers": {"SENT_NS": ["S", "x"]}, "left": [None]},
]  # fmt: skip


@pytest.mark.parametrize("wrong", BROKEN, ids=str)
def test_a_list_that_breaks_the_protocol_errors_its_case(wrong: dict[str, Any]) -> None:
    """And the run goes on: every case has its verdict."""
    people = {"a": Garbles("a", wrong), "b": Honest("b")}
    _, verdicts = run_to_the_end(*begin(make_plan(), 0.0), people)
    assert len(verdicts) == len({one.case for one in verdicts})
    told = [one for one in verdicts if one.outcome is Outcome.ERRORED]
    assert told
    assert all("a report violates the protocol" in one.reason for one in told)


@pytest.mark.parametrize("said", [["", "the channel broke"], [0], [[]]])
def test_an_error_without_a_text_is_an_error(said: list[Any]) -> None:
    assert tally(SENDER, [], error=said)["error"]


@pytest.mark.parametrize(("tag", "value"), [("x", 3), ("x", "!"), ("S", 10**12), ("S", None)])
def test_bytes_are_a_text_or_a_list_of_numbers(tag: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        values.read_values({"a": {"Bytes": value}}, {"types": {"Bytes": tag}})


@pytest.mark.parametrize("text", ["nan", "inf", "-inf"])
def test_a_number_that_json_has_not_is_not_written_in_words(text: str) -> None:
    words = {"types": {"Double": "d"}}
    assert values.write_values({"a": ["d", text]}, words) == {}
    assert values.write_values({"a": ["d", "1.5"]}, words) == {"a": {"Double": 1.5}}


def test_the_case_goes_before_the_command_line_and_that_before_the_defaults() -> None:
    """IOP-21."""
    about = {"given": {"seed": "5", "prefetch_count": "7", "ack_mode": "client", "host": "h"}}
    found = assignment.complete({"seed": 3}, about)
    assert (found["seed"], found["prefetch_count"], found["tx_batch_size"]) == (3, 7, 100)
    assert found["ack_mode"] == "client", "a word that is no JSON is a text"
    assert "host" not in found
    assert assignment.why_not(Role.SENDER, {}, about) == "", "a word of its own is its own affair"


SENSELESS = (
    ("outgoing_rate", "fast"), ("outgoing_rate", "0.5"), ("num_publishers", "two"),
    ("prefetch_count", "x"), ("tx_batch_size", "0"), ("ack_mode", "never"), ("consumers", "[]"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "text"), SENSELESS)
def test_a_command_line_that_makes_no_sense_is_a_reason_and_no_fault_of_ours(
    name: str, text: str
) -> None:
    about = {"given": {name: text}}
    for role in Role:
        assert assignment.why_not(role, {}, about) == f"its command line has {name}={text}"
        assert assignment.instruct(role, {}, about) == assignment.instruct(role, {}, {})


@pytest.mark.parametrize(
    "about", [{}, {"given": 3}, {"given": {"ack_mode": "no such"}}, {"given": {"ack_mode": "[]"}}]
)
def test_without_a_mode_each_message_is_acknowledged(about: Mapping[str, Any]) -> None:
    found = assignment.complete({}, about)
    told = {name: found[name] for name in ("no_ack", "ack_every", "ack_first", "ack_tx")}
    assert told == assignment.ACK_SETTINGS["auto"]


def test_an_inactive_consumer_is_none() -> None:
    asked = [{"index": 0, "destination": 0}]
    assert assignment.complete({"consumers": asked}, {})["consumers"] == asked
    assert (
        assignment.complete({"consumers": asked, "consumer_out_active": False}, {})["consumers"]
        == []
    )


@pytest.mark.parametrize(
    ("mode", "room", "every", "batch"),
    [("dups_ok", 3, 3, 0), ("dups_ok", 0, 10, 0), ("dups_ok", 50, 10, 0), ("client", 3, 3, 0),
     ("client", 0, 0, 0), ("auto", 3, 1, 0), ("tx", 3, 1, 3), ("tx", 0, 1, 100)],
)  # fmt: skip
def test_a_receiver_acknowledges_before_its_prefetch_is_used_up(
    mode: str, room: int, every: int, batch: int
) -> None:
    asked = {"ack_mode": mode, "prefetch_count": room}
    found = assignment.instruct(Role.RECEIVER, asked, {})
    assert (found["ack_every"], found["tx_batch"]) == (every, batch)


def test_a_role_is_told_which_channels_to_open() -> None:
    """A sender has one connection, a receiver one for each consumer."""
    place = {"exchange": "e", "key": "k", "queue": ""}
    body = {"num_publishers": 2, "transactional": True, "outgoing_rate": 1000, "inbound_rate": 50,
            "destinations": [{}, place], "consumers": [{"index": 4, "destination": 1}] * 2,
            "persistent": True}  # fmt: skip
    sender = assignment.instruct(Role.SENDER, body, {})
    assert sender["lines"] == [{"index": 0, "connect": True}, {"index": 1, "connect": False}]
    told = ("tx_batch", "every_ns", "delivery_mode")
    assert [sender[name] for name in told] == [100, 1_000_000, 2]
    receiver = assignment.instruct(Role.RECEIVER, body, {})
    assert receiver["lines"] == [{"index": 4, "connect": True, **place}] * 2
    assert [receiver[name] for name in told] == [0, 20_000_000, 2]


@pytest.mark.parametrize("blank", [False, True])
def test_a_property_that_is_null_is_absent_and_a_blank_one_where_the_client_says_so(
    blank: bool,
) -> None:
    given = {"correlation_id": "c", "type": None, "app_id": "", "priority": 0, "kind": "ours"}
    body = tally(RECEIVER, [came(0, properties=given, body="")], about={"blank_is_absent": blank})
    (found,) = body["echo"]
    assert found["properties"] == (
        {"correlation_id": "c"} if blank else {"correlation_id": "c", "app_id": "", "priority": 0}
    )


def test_a_null_is_no_difference_and_a_close_goes_before_an_error() -> None:
    closed = {"level": "channel", "code": 404, "text": ""}
    body = tally(RECEIVER, [came(0, differs=None)], closed=[closed], error=["EOF"])
    assert (body["streams"][0]["altered"], body["closed"], body["error"]) == ([], closed, "")


WORDS = json.loads((INTEROP / "rust" / "client" / "manifest.json").read_text())
GO_WORDS = json.loads((INTEROP / "go" / "client" / "manifest.json").read_text())


def test_a_header_value_in_the_words_of_a_library_is_the_tagged_one() -> None:
    """There and back for every type, at the ends of its range; the name is the type."""
    table = {**TABLES, "below": ["D", "2", "-314"], "zero": ["d", "-0.0"], "none": ["x", ""]}
    words = values.write_values(table, WORDS)
    assert words["int32"] == {"LongInt": -(2**31)}
    assert words["below"] == {"DecimalValue": {"scale": 2, "value": 2**32 - 314}}
    assert words["array"] == {
        "FieldArray": [{"LongString": [97]}, {"LongInt": 1}, "Void"],
    }
    assert values.read_values(words, WORDS) == table
    assert values.write_values(table, {}) == {}
    assert values.write_values({"a": 3, "b": []}, WORDS) == {}
    assert values.read_values(table, {}) == table
    assert values.read_values(None, WORDS) == {}


def test_a_string_that_is_no_text_is_told_as_bytes() -> None:
    assert values.read_values({"a": {"LongString": [255]}}, WORDS) == {"a": ["x", "ff"]}


def test_a_header_value_in_the_words_of_go_is_the_tagged_one() -> None:
    told = {
        "a": {"int8": -1}, "b": {"float32": "NaN"}, "c": {"string": "ü"}, "d": {"[]uint8": "AP8="},
        "e": {"time.Time": "2025-11-16T01:00:00+01:00"}, "f": {"<nil>": None}, "g": {"bool": True},
        "h": {"amqp091.Decimal": {"Scale": 2, "Value": -314}},
        "i": {"[]interface {}": [{"amqp091.Table": {"a": {"uint32": 1}}}]},
    }  # fmt: skip
    assert values.read_values(told, GO_WORDS) == {
        "a": ["b", "-1"], "b": ["f", "NaN"], "c": ["S", "ü"], "d": ["x", "00ff"],
        "e": ["T", "1763251200"], "f": ["V"], "g": ["t", "true"], "h": ["D", "2", "-314"],
        "i": ["A", [["F", {"a": ["i", "1"]}]]],
    }  # fmt: skip


def test_headers_are_read_in_the_words_of_their_client() -> None:
    table = {"CLIENT_NAME": ["S", "s"], "SEQUENCE": ["I", "3"], "PUBLISHER": ["I", "1"]}
    words = values.write_values(table, WORDS)
    body = tally(RECEIVER, [came(3, headers=words, body="")], about=WORDS)
    assert body["echo"][0]["headers"]["SEQUENCE"] == ["I", "3"]
    body = tally(SENDER, [], returned=[{"code": 312, "headers": words}], about=WORDS)
    assert body["returned"] == [[1, 3, 312]]


def test_what_went_wrong_first_stays_and_a_connection_goes_before_its_channels() -> None:
    channel = {"level": "channel", "code": 404, "text": ""}
    connection = {**channel, "level": "connection", "code": 504}
    told = None
    for more in ({"closed": [channel, connection]}, {"closed": [channel], "error": ["late"]}):
        said = Control(Kind.REPORT, {}, {**QUIET, **more})
        told = reports.join_reports(Role.RECEIVER, told, said, {})
    assert told
    assert (told.body["closed"], told.body["error"]) == (connection, "")
    told = None
    for error in ("first", "second"):
        said = Control(Kind.REPORT, {}, {**QUIET, "error": [error]})
        told = reports.join_reports(Role.SENDER, told, said, {})
    assert told
    assert (told.body["closed"], told.body["error"]) == (None, "first")


ABOUT = {
    "library": "lib",
    "cannot": {"immediate": "no", "ack_mode=tx": "none"},
    "field_tags": "SFA",
}


ROWS: list[tuple[Role, dict[str, Any], str]] = [
    (Role.SENDER, {}, ""),
    (Role.SENDER, {"immediate": True}, "immediate: no"),
    (Role.SENDER, {"immediate": False}, ""),
    (Role.RECEIVER, {"immediate": True}, ""),
    (Role.RECEIVER, {"ack_mode": "tx"}, "ack_mode: none"),
    (Role.RECEIVER, {"ack_mode": "auto"}, ""),
    (Role.SENDER, {"ack_mode": "tx"}, ""),
    (Role.SENDER, {"header_fields": {"a": ["F", {"b": ["S", ""]}]}}, ""),
    (Role.SENDER, {"header_fields": {"a": ["F", {"b": ["A", [["t", "true"]]]}]}},
     "lib cannot write a header value of type t"),
    (Role.SENDER, {"header_fields": {"a": ["F", {"b": ["t", "true"]}]}},
     "lib cannot write a header value of type t"),
    (Role.SENDER, {"header_fields": {"a": 3, "b": [], "c": ["A", 3]}}, ""),
    (Role.SENDER, {"header_fields": 3}, ""),
    (Role.RECEIVER, {"header_fields": {"a": ["t", "true"]}}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("role", "body", "reason"), ROWS)
def test_who_can_play_which_role_follows_from_what_it_declared(
    role: Role, body: dict[str, Any], reason: str
) -> None:
    assert assignment.why_not(role, body, ABOUT) == reason
    assert assignment.why_not(role, body, {}) == ""


@pytest.mark.parametrize(("tags", "able"), [("tIlS", "S"), (None, ""), (3, "")])
def test_a_client_that_writes_no_tables_inside_tables_can_send(tags: Any, able: str) -> None:
    found = {
        tag: assignment.why_not(
            Role.SENDER, {"header_fields": {"a": [tag, value]}}, {"field_tags": tags}
        )
        for tag, value in (("S", ""), ("F", {}))
    }
    assert assignment.why_not(Role.SENDER, {}, {"field_tags": tags}) == ""
    assert "".join(tag for tag in found if not found[tag]) == able

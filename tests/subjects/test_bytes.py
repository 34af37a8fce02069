"""Go, Node, Java and our own core give the same bytes and verdicts for the same body."""

from __future__ import annotations

import base64
import json
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tallystick.core import splice
from tallystick.core.canonical import canonical, number_text
from tallystick.core.envelope import DeadLetter, accepts, classify, decode, encode
from tallystick.core.errors import Refused, Rejected

if TYPE_CHECKING:
    from collections.abc import Callable

    from tallystick.suites.subject import ProcessSubject

    Writers = dict[str, ProcessSubject]

differential = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
BLOCK = {
    "reason": "failed", "error": 'e"\u2028', "exception": None, "failed_at": 1749132727000,
    "original_queue": "orders", "attempts": 3, "lang": "go",
}  # fmt: skip

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.sampled_from(["", "10", "2", "\ue000", "\uffff", "\U00010000", "__proto__", "job", "meta"]),
)
doubles = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.one_of(
    st.integers().map(str),
    st.integers(-(10**40), 10**40).map(str),
    doubles.map(repr),
    doubles.map("{:.20e}".format),
    st.sampled_from(["-0", "-0.0", "1.0", "1E2", "1e21", "1e20", "1e-6", "1e-7", "1e-400", "2e23"]),
)


@st.composite
def strings(draw: st.DrawFn) -> str:
    """Write a string with some characters escaped that need not be."""
    pieces = []
    for char in draw(texts):
        units = char.encode("utf-16-be")
        escaped = "".join(f"\\u{units[i]:02x}{units[i + 1]:02X}" for i in range(0, len(units), 2))
        plain = char not in '"\\' and char >= " " and draw(st.integers(0, 4))
        pieces.append(char if plain else escaped)
    return f'"{"".join(pieces)}"'


def objects(names: st.SearchStrategy[str], values: st.SearchStrategy[str]) -> Any:
    """Write an object with repeated names and spaces where they may stand."""
    space = st.sampled_from(["", "", "", " ", "\r\n", "\t"])
    members = st.builds("{}{}{}:{}{}{}".format, space, names, space, space, values, space)
    return st.lists(members, max_size=5).map(lambda parts: "{" + ",".join(parts) + "}")


values = st.recursive(
    st.one_of(numbers, strings(), st.sampled_from(["null", "true", "[ ]", "{}"])),
    lambda inner: st.one_of(
        objects(strings(), inner), st.lists(inner, max_size=3).map(lambda p: f"[{','.join(p)}]")
    ),
    max_leaves=8,
)
integers = st.sampled_from(["0", "-0", "1", "1", "3", "9223372036854775807", "null"])
odd = st.sampled_from(["null", "5", "1.0", "1e400", "9223372036854775808", "[]", "{}", "true"])


def typed(names: dict[str, st.SearchStrategy[str]]) -> Any:
    """Write members of known names: mostly of the right type, sometimes of another."""
    pairs = [
        st.tuples(st.just(f'"{name}"'), st.one_of(good, good, good, odd if draw_odd else good))
        for name, good in names.items()
        for draw_odd in (False, False, False, True)
    ]
    return st.one_of(*pairs, st.tuples(strings(), values))


META = {
    "id": strings(), "queue": strings(), "lang": strings(), "schema_version": integers,
    "created_at": integers, "ts": values, "max_retries": values,
}  # fmt: skip
LETTER = {
    "reason": strings(), "error": strings(), "failed_at": integers, "attempts": integers,
    "lang": strings(),
}  # fmt: skip


def members(pairs: Any, most: int) -> Any:
    """Write an object from pairs of name and value."""
    return st.lists(pairs, max_size=most).map(
        lambda found: "{" + ", ".join(f"{name}:{value}" for name, value in found) + "}"
    )


TOP = {
    "trace_id": strings(), "data": objects(strings(), values), "meta": members(typed(META), 6),
    "attempts": integers, "dead_letter": members(typed(LETTER), 4), "timestamp": values,
    "urn": strings(), "job": strings(),
}  # fmt: skip


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """Write a body: mostly a message, at times cut or with a byte changed."""
    parts = [f"{name} : {value}" for name, value in draw(st.lists(typed(TOP), max_size=8))]
    if draw(st.integers(0, 9)):
        parts.insert(draw(st.integers(0, len(parts))), '"job":"urn:x"')
    body = ("{" + " ,".join(parts) + "}").encode()
    match draw(st.integers(0, 9)):
        case 0:
            return body[: draw(st.integers(0, len(body)))]
        case 1:
            at = draw(st.integers(0, len(body) - 1))
            return body[:at] + draw(st.binary(min_size=1, max_size=2)) + body[at + 1 :]
    return body


def ask(subject: ProcessSubject, operation: str, body: bytes, **more: Any) -> dict[str, Any]:
    """Call a subject; a rejection counts, its wording does not."""
    given = {"body_base64": base64.b64encode(body).decode(), **more}
    answer = subject.call("tests/subjects", operation, given)
    assert answer.result is not None, answer
    if "rejected" in answer.result:
        return {"rejected": True}
    return {k: _opened(k, v) for k, v in answer.result.items() if k not in ("reason", "pointer")}


def _opened(name: str, value: Any) -> Any:
    return base64.b64decode(value) if name.endswith("_base64") else value


def ours(write: Callable[[], bytes]) -> dict[str, Any]:
    """Give what the core makes of it, in the same form."""
    try:
        return {"bytes_base64": write()}
    except (Rejected, Refused):
        return {"rejected": True}


@differential
@given(bodies())
@example(b'{"job":"urn:x","data":{"\xf0\x90\x80\x80":1,"\xef\xbf\xbf":2}}')
@example(b'{"job":"urn:x","x":1e400,"x":1}')
@example(b'{"job":"urn:x","data":{"a":1e400,"a":1}}')
@example(b'{"job":"urn:x","a":"\\ud83d"}')
@example(b'\xef\xbb\xbf{"job":"urn:x"}')
@example(b"null")
def test_every_language_writes_the_canonical_bytes_of_the_core(
    writers: Writers, body: bytes
) -> None:
    expected = ours(lambda: encode(decode(body)))
    if "rejected" not in expected and not accepts(decode(body)):
        expected = {"rejected": True}
    assert {name: ask(writer, "canonical", body) for name, writer in writers.items()} == (
        dict.fromkeys(writers, expected)
    )


@differential
@given(bodies())
def test_every_language_gives_the_verdict_of_the_core(writers: Writers, body: bytes) -> None:
    answers = [ask(writer, "decode", body) for writer in writers.values()]
    assert answers[1:] == answers[:-1]
    verdict = classify(body).verdict
    assert answers[0]["verdict"] == verdict
    if verdict == "ok":
        envelope = decode(body)
        assert answers[0]["accepted"] == accepts(envelope)
        assert answers[0]["urn"] == envelope.urn
        assert answers[0]["attempts"] == envelope.attempts
        assert answers[0]["warnings"] == [notice.pointer for notice in envelope.warnings]


@differential
@given(bodies())
@example(b'{"dead_letter":{} , "dead_letter":{}, "job":"urn:x" ,"dead_letter":null }')
def test_every_language_splices_as_the_core_does(writers: Writers, body: bytes) -> None:
    letter = DeadLetter(**BLOCK)  # type: ignore[arg-type]
    poison = {"original_queue": "orders", "failed_at": 5, "lang": "go"}
    record = DeadLetter(reason="poison", attempts=0, **poison)  # type: ignore[arg-type]
    good = classify(body).verdict == "ok"
    splices: list[tuple[str, dict[str, Any], Callable[[], bytes]]] = [
        ("retry", {"attempts": 2**53 + 1}, lambda: splice.retry(body, 2**53 + 1)),
        ("redrive", {}, lambda: splice.redrive(body)),
        ("dead_letter", BLOCK, lambda: splice.dead_letter(body, letter)),
        ("poison_record", poison, lambda: splice.poison_record(body, record)),
    ]
    for operation, more, write in splices:
        expected = ours(write) if good or operation == "poison_record" else {"rejected": True}
        for name, writer in writers.items():
            assert (name, ask(writer, operation, body, **more)) == (name, expected)


ACCEPTED = '"meta":{"schema_version":1},"attempts":0'


def _check_doubles(writers: Writers, found: list[float]) -> None:
    literals = ",".join(f"{one:.17e}" for one in found)
    expected = ",".join(number_text(one) for one in found)
    body, written = (
        f'{{"job":"urn:x","trace_id":"t","data":{{"a":[{x}]}},{ACCEPTED}}}'.encode()
        for x in (literals, expected)
    )
    for name, writer in writers.items():
        assert (name, ask(writer, "canonical", body)) == (name, {"bytes_base64": written})


@settings(differential, max_examples=20)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=50, max_size=200))
def test_every_double_is_written_as_ecmascript_does(writers: Writers, bits: list[int]) -> None:
    found = [struct.unpack(">d", struct.pack(">Q", one))[0] for one in bits]
    _check_doubles(writers, [one for one in found if one - one == 0])


def test_a_power_of_two_has_its_shortest_digits_though_its_neighbours_are_uneven(
    writers: Writers,
) -> None:
    _check_doubles(writers, [2.0**exponent for exponent in range(-1074, 1024)])


@pytest.mark.parametrize(("levels", "verdict"), [(998, "ok"), (999, "poison"), (10**5, "poison")])
def test_a_body_nests_at_most_1000_levels(writers: Writers, levels: int, verdict: str) -> None:
    body = b'{"job":"urn:x","data":{"a":' + b"[" * levels + b"]" * levels + b"}}"
    assert classify(body).verdict == verdict
    for name, writer in writers.items():
        assert (name, ask(writer, "decode", body)["verdict"]) == (name, verdict)


@settings(differential, max_examples=50)
@given(objects(strings(), values), texts.filter(lambda text: text not in META))
def test_what_is_made_is_canonical_and_keeps_data_and_extensions(
    writers: Writers, data: str, extension: str
) -> None:
    given = {
        "urn": "\v urn:x\t",
        "queue": "orders",
        "data_base64": base64.b64encode(data.encode()).decode(),
        "meta_base64": base64.b64encode(json.dumps({extension: [1.0]}).encode()).decode(),
    }
    expected = decode(f'{{"job":"urn:x","data":{data}}}'.encode()).data
    for name, writer in writers.items():
        if extension in ("attempts", "source"):
            assert (name, ask(writer, "make", b"", **given)) == (name, {"rejected": True})
            continue
        made = ask(writer, "make", b"", **given)["bytes_base64"]
        envelope = decode(made)
        assert accepts(envelope)
        assert encode(envelope) == made
        assert envelope.urn == "urn:x"
        assert canonical(envelope.data) == canonical(expected)
        assert envelope.document["meta"][extension] == [1]
        assert envelope.document["meta"]["lang"] == name.removeprefix("tallystick-")

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tallystick.core.canonical import canonical
from tallystick.core.envelope import DeadLetter, decode
from tallystick.core.errors import Refused, Rejected
from tallystick.core.scan import load, scan
from tallystick.core.splice import dead_letter, poison_record, redrive, renew, retry
from tests.core.messages import good_texts, payloads, texts

RECORD = DeadLetter(reason="failed", failed_at=7, original_queue="orders", attempts=3, lang="go")
good = good_texts().map(str.encode)


def last(body: bytes, name: str) -> Any:
    return [m for m in scan(body) if m.path == (name,)][-1:]


@given(good, st.integers(0, 2**40))
def test_a_retry_changes_attempts_and_nothing_else(body: bytes, attempts: int) -> None:
    after = retry(body, attempts)
    assert decode(after).attempts == attempts
    places = last(body, "attempts")
    if places:
        (place,) = places
        assert after == body[: place.value] + str(attempts).encode() + body[place.end :]
    else:
        brace = body.rindex(b"}")
        assert after == body[:brace] + b',"attempts":%d' % attempts + body[brace:]


@given(good)
def test_a_redrive_undoes_a_dead_letter(body: bytes) -> None:
    assume(b'"dead_letter"' not in body)
    dead = dead_letter(body, RECORD)
    assert decode(dead).dead_letter == RECORD
    assert decode(dead).attempts == 3
    alive = redrive(dead)
    assert alive == retry(body.strip(), 0)


@given(good)
def test_a_redriven_message_has_no_dead_letter_left(body: bytes) -> None:
    after = redrive(body)
    assert not last(after, "dead_letter")
    kept = {k: v for k, v in load(body).items() if k not in ("dead_letter", "attempts")}
    assert {k: v for k, v in load(after).items() if k != "attempts"} == kept


@given(good)
def test_a_redrive_leaves_the_text_of_every_other_member_alone(body: bytes) -> None:
    after = redrive(body)
    changed = (("attempts",), ("dead_letter",))
    before_texts = [(m.path, body[m.start : m.end]) for m in scan(body) if m.path not in changed]
    after_texts = [(m.path, after[m.start : m.end]) for m in scan(after) if m.path not in changed]
    assert after_texts == [row for row in before_texts if row[0][0] != "dead_letter"]


@given(good)
def test_another_id_changes_the_id_and_no_other_byte(body: bytes) -> None:
    after = renew(body, 'new "id"')
    places = [member for member in scan(body) if member.path == ("meta", "id")]
    if not places:
        assert after == body
        return
    place = places[-1]
    assert after == body[: place.value] + b'"new \\"id\\""' + body[place.end :]
    meta = load(body)["meta"]
    if isinstance(meta, dict) and "id" in meta:  # a name may be there twice; the last one counts
        assert load(after)["meta"]["id"] == 'new "id"'


@given(st.one_of(st.binary(max_size=60), texts().map(str.encode)))
def test_every_body_has_a_record_that_gives_it_back(body: bytes) -> None:
    record = json.loads(poison_record(body, RECORD))
    block = record.pop("dead_letter")
    assert block["original_queue"] == "orders"
    if set(record) == {"raw", "raw_encoding"} and record["raw_encoding"] == "base64":
        assert base64.b64decode(record["raw"], validate=True) == body
    elif set(record) == {"raw"} and not body.strip().startswith(b'{"raw"'):
        assert record["raw"].encode() == body
    else:
        assert repr(record) == repr(json.loads(body))


@given(payloads)
def test_a_spliced_record_keeps_every_byte(data: dict[str, Any]) -> None:
    body = b' {"data":%s,"n":1e400,"n":1.50}\n' % canonical(data)
    assert poison_record(body, RECORD).startswith(body.strip()[:-1])


@pytest.mark.parametrize("function", [redrive, lambda body: retry(body, 1)])
def test_what_is_poison_is_not_spliced(function: Callable[[bytes], bytes]) -> None:
    with pytest.raises(Rejected):
        function(b'{"job":"x","data":{"n":1e400}}')


@pytest.mark.parametrize("count", [True, 1.9, -1, 2**63, "3", None])
def test_only_a_count_that_can_be_read_again_is_written(count: Any) -> None:
    with pytest.raises(Refused):
        retry(b'{"job":"x"}', count)
    with pytest.raises(Refused):
        dead_letter(b'{"job":"x"}', DeadLetter(reason="failed", attempts=count))

"""The Redis element is the envelope, byte for byte, unless headers ride along."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.brokers.redis.element import read_element, write_element
from tallystick.core.errors import Refused
from tallystick.core.frame import Frame


@given(st.binary())
def test_a_body_without_headers_is_the_element(body: bytes) -> None:
    assert write_element(Frame(body)) == body
    assert write_element(Frame(body, {"headers": {}})) == body


@given(st.text(), st.dictionaries(st.text(), st.text(), min_size=1))
def test_headers_and_body_come_back_as_they_went(text: str, headers: dict[str, str]) -> None:
    frame = Frame(text.encode(), {"headers": headers})
    assert read_element(write_element(frame)) == frame


def test_the_frame_is_the_one_of_the_contract() -> None:
    element = write_element(Frame(b'{"job":"urn:x"}', {"headers": {"traceparent": "00-x"}}))
    assert element == (
        b'{"__bq_frame":1,"headers":{"traceparent":"00-x"},"body":"{\\"job\\":\\"urn:x\\"}"}'
    )
    spaced = json.dumps({"body": "b", "headers": {"h": "1"}, "__bq_frame": 1}, indent=2).encode()
    assert read_element(spaced) == Frame(b"b", {"headers": {"h": "1"}})


@pytest.mark.parametrize(
    "element",
    [
        b"",
        b'{"job":"urn:x"}',
        b'{"job":"urn:x","__bq_frame":1}',
        b'{"__bq_frame":2,"headers":{},"body":"x"}',
        b'{"__bq_frame":true,"headers":{},"body":"x"}',
        b'{"__bq_frame":1,"headers":{"h":1},"body":"x"}',
        b'{"__bq_frame":1,"headers":{},"body":{}}',
        b'{"__bq_frame":1,"headers":{},"body":"x"',
        b'["__bq_frame"]',
        b'"__bq_frame"\xff',
    ],
)
def test_what_is_not_a_frame_is_a_bare_body(element: bytes) -> None:
    assert read_element(element) == Frame(element)


@given(st.binary())
def test_reading_never_raises(element: bytes) -> None:
    assert read_element(element).body == element


def test_a_body_that_is_not_utf8_cannot_be_framed() -> None:
    with pytest.raises(Refused) as caught:
        write_element(Frame(b"ab\xff", {"headers": {"h": "1"}}))
    assert (caught.value.code, caught.value.offset) == ("not_utf8", 2)

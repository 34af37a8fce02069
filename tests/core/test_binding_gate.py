"""One gate: what says that it is of another version is not decoded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallystick.core.binding import (
    Binding,
    gate,
    gate_frame,
    project,
)
from tallystick.core.envelope import decode
from tallystick.core.slot import Long
from tests.core.bindings import BINDINGS, TABLE, message

gated = pytest.mark.parametrize(
    "binding", [each for each in BINDINGS if each.gate], ids=lambda each: each.name
)
ASCII_BLANK = st.text(" \t\n\v\f\r")
NOT_BLANK = st.text(min_size=1).filter(lambda text: text.strip(" \t\n\v\f\r") and text != "1")


@gated
def test_absent_and_null_decode(binding: Binding) -> None:
    assert gate(binding, present=False)
    assert gate(binding, present=True, value=None)


@gated
@given(ASCII_BLANK)
def test_an_ascii_blank_version_decodes(binding: Binding, blank: str) -> None:
    assert gate(binding, present=True, value=blank)


@gated
@given(NOT_BLANK)
def test_every_text_but_one_is_turned_away(binding: Binding, text: str) -> None:
    assert not gate(binding, present=True, value=text)
    assert gate(binding, present=True, value="1")


@gated
@pytest.mark.parametrize(
    "text", ["2", "01", "x", " 1", "1 ", "\t1\n", "1\u3000", "\u00a0", "\u0085", "\u3000", "\ufeff"]
)
def test_the_value_is_compared_untrimmed(binding: Binding, text: str) -> None:
    assert not gate(binding, present=True, value=text)


@gated
@given(st.one_of(st.booleans(), st.floats(), st.integers().filter(lambda n: n != 1)))
def test_numbers_other_than_an_integral_one_are_turned_away(binding: Binding, value: Any) -> None:
    assert not gate(binding, present=True, value=value)


@pytest.mark.parametrize(
    ("name", "integer", "raw"),
    [
        ("sqs", False, False),
        ("servicebus", True, False),
        ("pulsar", False, False),
        ("kafka", False, True),
        ("artemis", True, True),
    ],
)
def test_each_broker_takes_the_native_types_it_has(name: str, integer: bool, raw: bool) -> None:
    binding = TABLE[name]
    assert gate(binding, present=True, value=1) is integer
    assert gate(binding, present=True, value=Long(1)) is integer
    assert gate(binding, present=True, value=b"1") is raw
    assert gate(binding, present=True, value=b" \t") is raw
    assert gate(binding, present=True, value=b"\xc2\xa0") is False
    assert gate(binding, present=True, value=b"\xff") is False


@pytest.mark.parametrize("name", ["memory", "redis", "rabbitmq"])
@given(st.one_of(st.text(), st.integers(), st.none()))
def test_a_broker_without_a_gate_always_decodes(name: str, value: Any) -> None:
    assert gate(TABLE[name], present=True, value=value)
    assert gate_frame(TABLE[name], {"headers": {"bq-schema-version": value}})


@gated
def test_the_gate_lets_through_what_we_project_and_nothing_newer(binding: Binding) -> None:
    assert gate_frame(binding, project(binding, decode(message())).sections)
    newer = message(meta={"schema_version": 2, "id": "i"})
    assert not gate_frame(binding, project(binding, decode(newer)).sections)
    assert gate_frame(binding, {})


def test_the_gate_reads_an_sqs_attribute_of_text_only() -> None:
    held = {"bq-schema-version": {"DataType": "Binary", "BinaryValue": b"1"}}
    assert not gate_frame(TABLE["sqs"], {"message_attributes": held})


@gated
def test_the_gate_reads_a_field_that_the_table_writes(binding: Binding) -> None:
    assert binding.gate is not None
    written = {(slot.section, slot.key): slot.source for slot in binding.slots}
    assert written[binding.gate.section, binding.gate.key] == "meta.schema_version"

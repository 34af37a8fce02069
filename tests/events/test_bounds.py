"""Hostile input costs little; long batches cost the memory of one event."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from tallystick.core.errors import Rejected
from tallystick.events.extensions import NONE
from tallystick.events.formats import find_format
from tallystick.events.formats.avro_wire import write_long
from tallystick.events.golden import EVENTS
from tallystick.events.stream import read_json_batch

MINIMAL = {
    name: find_format(name).write(EVENTS["minimal"]) for name in ("json", "protobuf", "avro")
}
XML = '<event xmlns="http://cloudevents.io/xmlformat/V1" specversion="1.0">'
LAUGHS = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))


def peak_of(function: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("protobuf", MINIMAL["protobuf"] + b"\x32\x80\x80\x80\x80\x04"),
        ("protobuf", MINIMAL["protobuf"] + b"\x0b" * 1000),
        ("avro", write_long(1) + write_long(1 << 30) + b"x"),
        ("avro", write_long(1 << 40)),
        ("avro", write_long(-(1 << 40)) + write_long(1) + b"x"),
        ("avro-compact", write_long(1 << 30) + b"x"),
        ("json", MINIMAL["json"][:-1] + b',"data":' + b"[" * 50_000),
        ("json", b'{"a":' * 50_000),
        (
            "xml",
            f'<!DOCTYPE event [<!ENTITY a0 "ha">{LAUGHS}]>{XML}<id>&a11;</id></event>'.encode(),
        ),
        ("xml", (XML + "<a>" * 50_000).encode()),
    ],
)
def test_a_claim_a_bomb_or_deep_nesting_costs_little(name: str, body: bytes) -> None:
    form = find_format(name)

    def read() -> None:
        with pytest.raises(Rejected):
            form.read(body, NONE)

    read()
    assert peak_of(read) < 8_000_000


def chunks(count: int) -> Iterator[bytes]:
    for number in range(count):
        yield (b"," if number else b"[") + MINIMAL["json"]
    yield b"]"


def test_a_batch_of_ten_thousand_events_is_read_in_the_memory_of_a_few() -> None:
    found = 0

    def read() -> None:
        nonlocal found
        found = sum(1 for _ in read_json_batch(chunks(10_000)))

    assert peak_of(read) < 200_000
    assert found == 10_000


def test_a_string_without_end_is_rejected_with_one_look_at_each_byte() -> None:
    def endless() -> Iterator[bytes]:
        yield b'[{"a":"'
        for _ in range(600):
            yield b"\\" + b"x" * 65_534 + b"\\"

    with pytest.raises(Rejected) as rejected:
        list(read_json_batch(endless()))
    assert rejected.value.code == "too_large"

"""Files of our own in the layout of the official cases, made of the golden samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from google.protobuf import json_format  # type: ignore[import-untyped]

from tallystick.events.event import Event
from tallystick.events.formats import find_format
from tallystick.events.formats.protobuf_format import message_class
from tallystick.events.golden import BATCHES, EVENTS

__all__ = ["write_layout", "write_tests"]

INVALID = {"specversion": "1.0", "source": "/s", "type": "t"}


def write_layout(folder: Path) -> Path:
    """Write each sample event and batch, and one invalid event, in each format."""
    for form in ("json", "protobuf", "xml"):
        home = folder / "format" / form
        home.mkdir(parents=True)
        _WRITERS[form](home)
    return folder


def write_tests(home: Path, tests: list[dict[str, Any]], kind: str = "ValidSingleEvent") -> None:
    """Write a file of JSON tests that are valid single events, unless `kind` says otherwise."""
    home.mkdir(parents=True, exist_ok=True)
    names = {
        "ValidSingleEvent": "valid-events",
        "InvalidSingleEvent": "invalid-events",
        "ValidBatch": "valid-batches",
    }
    document = {"testType": kind, "tests": tests}
    (home / f"{names[kind]}.json").write_text(json.dumps(document), encoding="utf-8")


def _as_json(event: Event) -> Any:
    return json.loads(find_format("json").write(event))


def _write_json(home: Path) -> None:
    write_tests(
        home,
        [
            {
                "id": name,
                "sampleId": name,
                "event": _as_json(event),
                "sampleExtensionAttributes": True,
            }
            for name, event in EVENTS.items()
        ],
    )
    write_tests(home, [{"id": "noId", "event": INVALID}], "InvalidSingleEvent")
    batches = [
        {
            "id": name,
            "sampleId": name,
            "batch": [_as_json(event) for event in batch],
            "sampleExtensionAttributes": True,
        }
        for name, batch in BATCHES.items()
    ]
    write_tests(home, batches, "ValidBatch")


def _write_protobuf(home: Path) -> None:
    def as_json(body: bytes, kind: str) -> Any:
        return json_format.MessageToDict(message_class(kind).FromString(body))

    form = find_format("protobuf")
    assert form.write_batch is not None
    tests = {
        "valid-events": [
            {"id": name, "sampleId": name, "validSingle": as_json(form.write(event), "CloudEvent")}
            for name, event in EVENTS.items()
        ],
        "invalid-events": [{"id": "noId", "invalidSingle": {"specVersion": "1.0", "type": "t"}}],
        "valid-batches": [
            {
                "id": name,
                "sampleId": name,
                "validBatch": as_json(form.write_batch(batch), "CloudEventBatch"),
            }
            for name, batch in BATCHES.items()
        ],
    }
    for name, cases in tests.items():
        (home / f"{name}.json").write_text(json.dumps({"tests": cases}), encoding="utf-8")


def _write_xml(home: Path) -> None:
    form = find_format("xml")
    assert form.write_batch is not None

    def test(name: str, sample: str, body: bytes) -> str:
        element = body.decode().split("?>\n", 1)[1]
        return f'<test id="{name}"{sample}>{element}</test>'

    nothing = b'?>\n<event xmlns="http://cloudevents.io/xmlformat/V1" specversion="1.0"/>'
    tests = {
        ("valid-events", "ValidSingleEvent"): [
            test(name, f' sampleId="{name}"', form.write(event)) for name, event in EVENTS.items()
        ],
        ("invalid-events", "InvalidSingleEvent"): [test("noId", "", nothing)],
        ("valid-batches", "ValidBatch"): [
            test(name, f' sampleId="{name}"', form.write_batch(batch))
            for name, batch in BATCHES.items()
        ],
    }
    for (name, kind), cases in tests.items():
        text = f'<testFile testType="{kind}">{"".join(cases)}</testFile>'
        (home / f"{name}.xml").write_text(text, encoding="utf-8")


_WRITERS = {"json": _write_json, "protobuf": _write_protobuf, "xml": _write_xml}

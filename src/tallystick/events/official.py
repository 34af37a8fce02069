"""The official CloudEvents format cases, and our own, as cases that any subject can run.

`load_official` reads a folder in the layout of cloudevents/conformance (`format/json`,
`format/protobuf`, `format/xml`; or `json` and so on directly) in place. Files that are not there
are skipped, a folder without any is an error. A case is named after its format, file and id:
`cloudevents/json/valid-events/validMinimal`. Our own cases are in `standard/events.json`.

`EVENT_RULES` are the rules that these cases expect; each yields differences as data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from tallystick.core.errors import Refused, Rejected, Unavailable
from tallystick.core.verdict import Case, Difference
from tallystick.events.equality import differences
from tallystick.events.event import CORE
from tallystick.events.formats import find_format
from tallystick.events.formats.protobuf_format import message_class
from tallystick.events.formats.xml_tree import cut_out, parse_xml
from tallystick.events.golden import BATCHES, EVENTS
from tallystick.events.neutral import from_neutral, to_neutral
from tallystick.events.payload import ABSENT
from tallystick.events.subject import extensions_given
from tallystick.events.values import read_base64, write_base64

__all__ = ["EVENT_RULES", "load_official", "load_own"]

_CLAUSE: Final = "CloudEvents format conformance"
_FILES: Final = ("valid-events", "invalid-events", "valid-batches", "invalid-batches")


def load_official(folder: Path) -> list[Case]:
    """Load every official case in a folder: the repository's, `format`, or that of one format."""
    root = folder / "format" if (folder / "format").is_dir() else folder
    cases: list[Case] = []
    for form, (suffix, load) in _LOADERS.items():
        home = root if root.resolve().name == form else root / form
        for stem in _FILES:
            path = home / f"{stem}.{suffix}"
            if path.is_file():
                cases += load(path.read_bytes(), f"cloudevents/{form}/{stem}")
    if not cases:
        raise Unavailable(
            f"no CloudEvents cases in {folder}",
            code="no_cases",
            hint="A folder with format/json, format/protobuf or format/xml is asked for.",
        )
    return cases


def load_own() -> list[Case]:
    """Load our own cases, which ship with the package."""
    text = files("tallystick").joinpath("standard", "events.json").read_bytes()
    return [
        _own_case(group, case) for group in json.loads(text)["groups"] for case in group["cases"]
    ]


def _own_case(group: dict[str, Any], case: dict[str, Any]) -> Case:
    given = {**group.get("given", {}), **case.get("given", {})}
    if "body" in given:
        given["body_base64"] = write_base64(given.pop("body").encode())
    name = f"cloudevents/own/{group['name']}/{case['name']}"
    expect = dict(case["expect"])
    if "reads_as" in expect:
        expect["reads_as"] = {"format": given["format"], **expect["reads_as"]}
    return Case(name, group["operation"], given, expect, group["clause"])


def _case(
    name: str, form: str, body: bytes, test_type: str, sample: str | None, *, samples: bool,
    constraints: bool,
) -> Case:  # fmt: skip
    batch = test_type.endswith("Batch")
    given = {
        "format": form,
        "kind": "batch" if batch else "event",
        "body_base64": write_base64(body),
        "extensions": samples,
        "constraints": constraints,
    }
    expect: dict[str, Any]
    if test_type.startswith("Invalid"):
        expect = {"rejected": {}}
    elif sample is None:
        expect = {"parsed": True}
    elif batch:
        expect = {"events": [to_neutral(event) for event in BATCHES[sample]]}
    else:
        expect = {"event": to_neutral(EVENTS[sample])}
    return Case(name, "ce_read", given, expect, _CLAUSE)


def _load_json(text: bytes, place: str) -> Iterator[Case]:
    document = json.loads(text)
    for test in document["tests"]:
        test_type = test.get("testType", document["testType"])
        value = test["batch"] if "batch" in test else test["event"]
        yield _case(
            f"{place}/{test['id']}",
            "json",
            json.dumps(value).encode(),
            test_type,
            test.get("sampleId"),
            samples=bool(test.get("sampleExtensionAttributes")),
            constraints=bool(test.get("extensionConstraints")),
        )


_ONEOF: Final = {
    "validSingle": "ValidSingleEvent",
    "validBatch": "ValidBatch",
    "invalidSingle": "InvalidSingleEvent",
    "invalidBatch": "InvalidBatch",
}


def _load_protobuf(text: bytes, place: str) -> Iterator[Case]:
    from google.protobuf import json_format  # type: ignore[import-untyped]  # noqa: PLC0415

    for test in json.loads(text)["tests"]:
        member = next(name for name in _ONEOF if name in test)
        kind = "CloudEventBatch" if member.endswith("Batch") else "CloudEvent"
        message = json_format.ParseDict(test[member], message_class(kind)())
        yield _case(
            f"{place}/{test['id']}",
            "protobuf",
            message.SerializeToString(deterministic=True),
            _ONEOF[member],
            test.get("sampleId"),
            samples=False,
            constraints=False,
        )


def _load_xml(text: bytes, place: str) -> Iterator[Case]:
    root, octets = parse_xml(text)
    for test in root.children:
        about = {name: value for (_, name), value in test.attributes.items()}
        yield _case(
            f"{place}/{about['id']}",
            "xml",
            cut_out(test.children[0], octets).encode(),
            about.get("testType") or root.attributes[None, "testType"],
            about.get("sampleId"),
            samples=about.get("sampleExtensionAttributes") == "true",
            constraints=about.get("extensionConstraints") == "true",
        )


_LOADERS: Final[dict[str, tuple[str, Callable[[bytes, str], Iterator[Case]]]]] = {
    "json": ("json", _load_json),
    "protobuf": ("json", _load_protobuf),
    "xml": ("xml", _load_xml),
}


def _compare(want: Any, have: Any, pointer: str) -> Iterator[Difference]:
    try:
        found = from_neutral(have)
    except (Rejected, Refused) as error:
        yield Difference(pointer, want, f"no event in the neutral form: {error}")
        return
    for each in differences(from_neutral(want), found):
        expected, have = (_plain(each.pointer, side) for side in (each.expected, each.found))
        yield Difference(f"{pointer}{each.pointer}", expected, have)


def _plain(pointer: str, value: Any) -> Any:
    """Give a value as JSON can say it; what is not there is `...`, and null is only data."""
    if value is ABSENT or (value is None and pointer != "/data"):
        return ...
    return f"base64 {write_base64(value)}" if isinstance(value, bytes) else value


def _event(want: Any, result: dict[str, Any]) -> Iterator[Difference]:
    """Ask that the result is this event."""
    yield from _compare(want, result.get("event"), "/event")


def _events(want: Any, result: dict[str, Any]) -> Iterator[Difference]:
    """Ask that the result is these events, in order."""
    have = result.get("events")
    if not isinstance(have, list) or len(have) != len(want):
        yield Difference("/events", f"{len(want)} events", have)
        return
    for index, (one, other) in enumerate(zip(want, have, strict=True)):
        yield from _compare(one, other, f"/events/{index}")


def _parsed(_want: Any, result: dict[str, Any]) -> Iterator[Difference]:
    """Ask that the bytes are read as some event."""
    if "event" not in result and "events" not in result:
        yield Difference("/event", "an event", ...)


def _reads_as(want: Any, result: dict[str, Any]) -> Iterator[Difference]:
    """Ask that the bytes written are, to a strict reader, this event or these events."""
    form = find_format(want["format"])
    known = extensions_given(want)
    try:
        body = read_base64(str(result.get("bytes_base64", "")))
        if "event" in want:
            yield from _compare(want["event"], to_neutral(form.read(body, known)), "/event")
        elif form.read_batch is not None:
            events = [to_neutral(event) for event in form.read_batch(body, known)]
            yield from _events(want["events"], {"events": events})
    except (Rejected, Refused) as error:
        yield Difference("/bytes_base64", "bytes that can be read", str(error))


def _json_members(want: dict[str, Any], result: dict[str, Any]) -> Iterator[Difference]:
    """Ask that the JSON written has these top-level members, and not those said to be absent.

    An attribute that is unset may be written as null (JSON format, 2.2).
    """
    try:
        document = json.loads(read_base64(str(result.get("bytes_base64", ""))))
    except (Refused, ValueError) as error:
        yield Difference("/bytes_base64", "JSON", str(error))
        return
    for name, value in want.items():
        have = document.get(name, ...) if isinstance(document, dict) else ...
        unset = have is ... or (have is None and name in CORE)
        if (
            unset
            if value == {"absent": True}
            else json.dumps(have, default=str) == json.dumps(value)
        ):
            continue
        yield Difference(f"/{name}", value, have)


EVENT_RULES: Final[dict[str, Callable[[Any, dict[str, Any]], Iterator[Difference]]]] = {
    "event": _event,
    "events": _events,
    "parsed": _parsed,
    "reads_as": _reads_as,
    "json_members": _json_members,
}
"""The rules of event cases, beside those of the suites (`rejected`, `members`, `contains`)."""

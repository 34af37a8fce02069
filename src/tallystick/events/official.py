"""The official CloudEvents format cases, and our own, as cases that any subject can run.

`load_official` reads a folder in the layout of cloudevents/conformance (`format/json`,
`format/protobuf`, `format/xml`; or `json` and so on directly) in place. Files that are not there
are skipped, a folder without any is an error. A case is named after its format, file and id:
`cloudevents/json/valid-events/validMinimal`. A valid case names the sample event that it holds. The
samples of the conformance document are in `golden`; the folder of a format may define more of them
in `samples.json`: `{"events": {"protobuf-mine": <neutral form>}, "batches": {"two": ["minimal",
"protobuf-mine"]}}`.

`load_own` gives our own cases, `cloudevents/own/<format>/<group>/<name>`, from
`standard/events/<format>.json`; `modes` holds those of the protocol bindings.

`EVENT_RULES` are the rules that these cases expect; each yields differences as data.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from tallystick.core.errors import Refused, Rejected, Unavailable, UsageError
from tallystick.core.verdict import Case, Difference
from tallystick.events.equality import differences
from tallystick.events.event import CORE, Event
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
_OWN: Final = ("json", "protobuf", "xml", "avro", "avro-compact", "modes")
_UNREADABLE: Final = (Rejected, Refused, ValueError, LookupError, TypeError, AttributeError)


@dataclass(frozen=True, slots=True)
class _Samples:
    """The events and batches that a `sampleId` can name."""

    events: Mapping[str, Event]
    batches: Mapping[str, tuple[Event, ...]]
    file: Path

    def find(self, sample: str, *, batch: bool) -> dict[str, Any]:
        """Give what a case with this sample expects."""
        table: Mapping[str, Any] = self.batches if batch else self.events
        if sample not in table:
            raise UsageError(
                f"unknown sampleId {sample!r}",
                code="no_sample",
                hint=f"use one of: {', '.join(table)}; or define it in {self.file}",
            )
        if batch:
            return {"events": [to_neutral(event) for event in table[sample]]}
        return {"event": to_neutral(table[sample])}


def load_official(folder: Path) -> list[Case]:
    """Load every official case in a folder: the repository's, `format`, or that of one format."""
    root = folder / "format" if (folder / "format").is_dir() else folder
    cases: list[Case] = []
    for form, (suffix, load) in _LOADERS.items():
        home = root if root.resolve().name == form else root / form
        samples = _load_samples(home / "samples.json")
        for stem in _FILES:
            path = home / f"{stem}.{suffix}"
            if path.is_file():
                with _naming(path):
                    cases += load(path.read_bytes(), f"cloudevents/{form}/{stem}", samples)
    if not cases:
        raise Unavailable(
            f"no CloudEvents cases in {folder}",
            code="no_cases",
            hint="name a folder that has format/json, format/protobuf or format/xml",
        )
    return cases


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Turn a fault in a file of cases into one line that names the file."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{path}: {error}", code=error.code, hint=error.hint) from None
    except _UNREADABLE as error:
        raise UsageError(
            f"{path} holds no CloudEvents cases: {type(error).__name__}: {error}",
            code="bad_cases",
            hint="use the layout of cloudevents/conformance, branch format-tests",
        ) from error


def _load_samples(path: Path) -> _Samples:
    """Give the samples of the conformance document, and those that a file defines."""
    if not path.is_file():
        return _Samples(EVENTS, BATCHES, path)
    with _naming(path):
        document = json.loads(path.read_bytes())
        defined = document.get("events", {}).items()
        events = {**EVENTS, **{name: from_neutral(event) for name, event in defined}}
        batches = document.get("batches", {}).items()
        made = {name: tuple(events[each] for each in members) for name, members in batches}
        return _Samples(events, {**BATCHES, **made}, path)


def load_own() -> list[Case]:
    """Load our own cases, which ship with the package."""
    folder = files("tallystick").joinpath("standard", "events")
    return [
        _own_case(form, group, case)
        for form in _OWN
        for group in json.loads(folder.joinpath(f"{form}.json").read_bytes())["groups"]
        for case in group["cases"]
    ]


def _own_case(form: str, group: dict[str, Any], case: dict[str, Any]) -> Case:
    given = {**group.get("given", {}), **case.get("given", {})}
    if "body" in given:
        given["body_base64"] = write_base64(given.pop("body").encode())
    name = f"cloudevents/own/{form}/{group['name']}/{case['name']}"
    expect = dict(case["expect"])
    if "reads_as" in expect:
        expect["reads_as"] = {"format": given["format"], **expect["reads_as"]}
    return Case(name, group["operation"], given, expect, group["clause"])


def _case(
    name: str, form: str, body: bytes, test_type: str, expected: dict[str, Any], *,
    extensions: bool = False, constraints: bool = False,
) -> Case:  # fmt: skip
    given = {
        "format": form,
        "kind": "batch" if test_type.endswith("Batch") else "event",
        "body_base64": write_base64(body),
        "extensions": extensions,
        "constraints": constraints,
    }
    return Case(name, "ce_read", given, expected, _CLAUSE)


def _expected(test_type: str, sample: str | None, samples: _Samples) -> dict[str, Any]:
    if test_type.startswith("Invalid"):
        return {"rejected": {}}
    if sample is None:
        return {"parsed": True}
    return samples.find(sample, batch=test_type.endswith("Batch"))


def _load_json(text: bytes, place: str, samples: _Samples) -> Iterator[Case]:
    document = json.loads(text)
    for test in document["tests"]:
        test_type = test.get("testType", document["testType"])
        value = test["batch"] if "batch" in test else test["event"]
        yield _case(
            f"{place}/{test['id']}",
            "json",
            json.dumps(value).encode(),
            test_type,
            _expected(test_type, test.get("sampleId"), samples),
            extensions=bool(test.get("sampleExtensionAttributes")),
            constraints=bool(test.get("extensionConstraints")),
        )


_ONEOF: Final = {
    "validSingle": "ValidSingleEvent",
    "validBatch": "ValidBatch",
    "invalidSingle": "InvalidSingleEvent",
    "invalidBatch": "InvalidBatch",
}


def _load_protobuf(text: bytes, place: str, samples: _Samples) -> Iterator[Case]:
    from google.protobuf import json_format  # type: ignore[import-untyped]  # noqa: PLC0415

    for test in json.loads(text)["tests"]:
        members = [name for name in _ONEOF if name in test]
        if len(members) != 1:
            raise ValueError(f"{test['id']} must have exactly one of {', '.join(_ONEOF)}")
        test_type = _ONEOF[members[0]]
        kind = "CloudEventBatch" if test_type.endswith("Batch") else "CloudEvent"
        try:
            message = json_format.ParseDict(test[members[0]], message_class(kind)())
        except json_format.Error as error:
            raise ValueError(f"{test['id']}: {error}") from error
        yield _case(
            f"{place}/{test['id']}",
            "protobuf",
            message.SerializeToString(deterministic=True),
            test_type,
            _expected(test_type, test.get("sampleId"), samples),
        )


def _load_xml(text: bytes, place: str, samples: _Samples) -> Iterator[Case]:
    root, octets = parse_xml(text)
    for test in root.children:
        about = {name: value for (_, name), value in test.attributes.items()}
        test_type = about.get("testType") or root.attributes[None, "testType"]
        yield _case(
            f"{place}/{about['id']}",
            "xml",
            cut_out(test.children[0], octets).encode(),
            test_type,
            _expected(test_type, about.get("sampleId"), samples),
            extensions=about.get("sampleExtensionAttributes") == "true",
            constraints=about.get("extensionConstraints") == "true",
        )


_LOADERS: Final[dict[str, tuple[str, Callable[[bytes, str, _Samples], Iterator[Case]]]]] = {
    "json": ("json", _load_json),
    "protobuf": ("json", _load_protobuf),
    "xml": ("xml", _load_xml),
}


def _compare(want: Any, have: Any, pointer: str) -> Iterator[Difference]:
    try:
        found = from_neutral(have)
    except (Rejected, Refused) as error:
        yield Difference(pointer, want, f"not an event in the neutral form: {error}")
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

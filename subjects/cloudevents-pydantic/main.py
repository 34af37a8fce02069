"""The PyPI package `cloudevents-pydantic` as a subject: its JSON format, single and batched.

Its events forbid every member that is not a field, and an extension is declared as a field of a
subclass. Where a case needs declared extensions, and to write any extension, this program declares
them as a user of the package would.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from typing import Annotated, Any
from urllib.parse import ParseResult, urlunparse

from cloudevents_pydantic.events import CloudEvent
from cloudevents_pydantic.events.fields import types
from cloudevents_pydantic.formats import json
from neutral import CORE, data_from, data_of, values_of
from pydantic import Field, TypeAdapter, ValidationError, create_model
from serve import Given, Result, Unsupported, serve

KINDS: dict[str, Any] = {
    "Boolean": types.Boolean,
    "Integer": types.Integer,
    "String": types.String,
    "Binary": types.Binary,
    "URI": types.URI,
    "URI-reference": types.URIReference,
    "Timestamp": types.Timestamp,
}
SAMPLES = {
    "extinteger": "Integer", "extboolean": "Boolean", "extstring": "String",
    "extbinary": "Binary", "exttimestamp": "Timestamp", "exturi": "URI",
    "exturiref": "URI-reference",
}  # fmt: skip
CONSTRAINED: dict[str, Any] = {
    "posinteger": Annotated[types.Integer, Field(gt=0)],
    "shortstring": Annotated[types.String, Field(max_length=5)],
    "shortbinary": Annotated[types.Binary, Field(max_length=5)],
    "moderntimestamp": Annotated[types.Timestamp, Field(ge=datetime(2000, 1, 1, tzinfo=UTC))],
}


@cache
def _declare(*, samples: bool, constraints: bool) -> type[CloudEvent]:
    fields = {name: KINDS[kind] for name, kind in SAMPLES.items()} if samples else {}
    fields |= CONSTRAINED if constraints else {}
    declared: dict[str, Any] = {name: (kind | None, None) for name, kind in fields.items()}
    return create_model("Event", __base__=CloudEvent, **declared) if fields else CloudEvent


def _check(given: Given) -> None:
    if given["format"] != "json":
        raise Unsupported(f"cloudevents-pydantic has no {given['format']} format")


def _read(given: Given) -> Result:
    _check(given)
    samples, constraints = (bool(given.get(name)) for name in ("extensions", "constraints"))
    model = _declare(samples=samples, constraints=constraints)
    body = base64.b64decode(given["body_base64"])
    if given["kind"] == "batch":
        events = json.deserialize_batch(body, TypeAdapter(list[model]))
        return {"events": [_show(event) for event in events]}
    return {"event": _show(json.deserialize(body, TypeAdapter(model)))}


def _show(event: CloudEvent) -> dict[str, Any]:
    values = {name: getattr(event, name) for name in type(event).model_fields if name != "data"}
    neutral: dict[str, Any] = {
        name: _text(values[name]) for name in CORE if values[name] is not None
    }
    extensions = {name: value for name, value in values.items() if name not in CORE}
    uris = {
        name: {SAMPLES[name]: urlunparse(value)}
        for name, value in extensions.items()
        if isinstance(value, ParseResult)
    }
    shown = {**values_of({n: value for n, value in extensions.items() if n not in uris}), **uris}
    if shown:
        neutral["extensions"] = shown
    if "data" in event.model_fields_set:
        neutral["data"] = data_of(event.data, event.datacontenttype)
    return neutral


def _text(value: Any) -> Any:
    if isinstance(value, ParseResult):
        return urlunparse(value)
    if isinstance(value, types.SpecVersion):
        return value.value
    return value.isoformat() if isinstance(value, datetime) else value


def _make(neutral: dict[str, Any]) -> CloudEvent:
    members = {name: neutral[name] for name in CORE if name in neutral}
    typed = {name: next(iter(one.items())) for name, one in neutral.get("extensions", {}).items()}
    declared: dict[str, Any] = {name: (KINDS[kind], ...) for name, (kind, _) in typed.items()}
    model = create_model("Event", __base__=CloudEvent, **declared) if declared else CloudEvent
    members |= {name: value for name, (_, value) in typed.items()}
    if "data" in neutral:
        members["data"] = data_from(neutral["data"])
    return model(**members)


def _write(given: Given) -> Result:
    _check(given)
    if "events" in given:
        events = [_make(event) for event in given["events"]]
        text = json.serialize_batch(events, TypeAdapter(list[Any]))
    else:
        text = json.serialize(_make(given["event"]))
    return {"bytes_base64": base64.b64encode(text.encode()).decode()}


if __name__ == "__main__":
    serve(
        {
            "name": "cloudevents-pydantic",
            "version": version("cloudevents-pydantic"),
            "language": "python",
            "library": "pydantic",
        },
        {"ce_read": _read, "ce_write": _write},
        (ValidationError,),
    )

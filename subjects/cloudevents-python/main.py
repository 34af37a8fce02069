"""The PyPI package `cloudevents` as a subject: its JSON format, read and written.

The package has one format and no batches. Its extensions have no declared types, so cases that
need some are declared unsupported. An attribute that it holds as None counts as unset, which is
all that its own `get_extension` can say.
"""

from __future__ import annotations

import base64
from datetime import datetime
from importlib.metadata import version
from typing import Any

from cloudevents.core.base import BaseCloudEvent
from cloudevents.core.exceptions import BaseCloudEventException
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from neutral import CORE, data_from, data_of, values_from, values_of
from serve import Given, Result, Unsupported, serve

FORMAT = JSONFormat()


def _check(given: Given) -> None:
    if given["format"] != "json":
        raise Unsupported(f"cloudevents has no {given['format']} format")
    if given.get("kind") == "batch" or "events" in given:
        raise Unsupported("cloudevents has no batches")
    if given.get("extensions") or given.get("constraints"):
        raise Unsupported("cloudevents cannot declare the types of extensions")


def _read(given: Given) -> Result:
    _check(given)
    return {"event": _show(FORMAT.read(None, base64.b64decode(given["body_base64"])))}


def _show(event: BaseCloudEvent) -> dict[str, Any]:
    attributes = event.get_attributes()
    extensions = values_of({n: value for n, value in attributes.items() if n not in CORE})
    neutral = {n: _text(attributes[n]) for n in CORE if attributes.get(n) is not None}
    if extensions:
        neutral["extensions"] = extensions
    data = event.get_data()
    if data is not None:
        neutral["data"] = data_of(data, event.get_datacontenttype())
    return neutral


def _text(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _write(given: Given) -> Result:
    _check(given)
    event = given["event"]
    attributes = {name: event[name] for name in CORE if name in event}
    if "time" in attributes:
        attributes["time"] = datetime.fromisoformat(attributes["time"])
    attributes |= values_from(event.get("extensions", {}))
    data = data_from(event["data"]) if "data" in event else None
    return {"bytes_base64": base64.b64encode(FORMAT.write(CloudEvent(attributes, data))).decode()}


if __name__ == "__main__":
    serve(
        {
            "name": "cloudevents-python",
            "version": version("cloudevents"),
            "language": "python",
            "library": "json, python-dateutil",
        },
        {"ce_read": _read, "ce_write": _write},
        (BaseCloudEventException,),
    )

"""The two Avro schemas as an independent library needs them, built from the format's own rules.

The names of records are our own: they do not show in the bytes. Where the published files are
given (`TALLY_OFFICIAL`), a test holds the two equal.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["COMPACT", "FULL", "same_shape"]


def _map(*values: Any) -> dict[str, Any]:
    return {"type": "map", "values": values[0] if len(values) == 1 else list(values)}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _record(name: str, **fields: Any) -> dict[str, Any]:
    listed = [{"name": field, "type": kind} for field, kind in fields.items()]
    return {"type": "record", "name": name, "fields": listed}


_MOMENT: Final = {"type": "long", "logicalType": "timestamp-micros"}
_JSON_VALUE: Final = _record(
    "JsonValue",
    value=_map("null", "boolean", _map("JsonValue"), _array("JsonValue"), "double", "string"),
)
FULL: Final = _record(
    "TestEvent",
    attribute=_map("null", "boolean", "int", "string", "bytes"),
    data=[
        "bytes", "null", "boolean", _map("null", "boolean", _JSON_VALUE, "double", "string"),
        _array("JsonValue"), "double", "string",
    ],
)  # fmt: skip
"""The Avro format: attributes are a map, data is octets or a JSON value in records."""
COMPACT: Final = _record(
    "TestCompactEvent",
    id="string",
    source="string",
    type="string",
    datacontenttype=["null", "string"],
    dataschema=["null", "string"],
    subject=["null", "string"],
    time=["null", _MOMENT],
    extensions=_map("boolean", "int", _MOMENT, "string", "bytes"),
    data=["bytes", "null"],
)
"""The compact Avro format: core attributes are fields, the version is implied."""


def same_shape(schema: Any) -> Any:
    """Give a schema without what the bytes do not show: names of records, defaults, notes."""
    names: dict[str, str] = {}

    def reduce(part: Any) -> Any:
        if isinstance(part, str):
            return names.get(part, part)
        if isinstance(part, list):
            return [reduce(each) for each in part]
        if part["type"] != "record":
            kept = {key: part[key] for key in ("type", "logicalType") if key in part}
            inner = {key: reduce(part[key]) for key in ("values", "items") if key in part}
            return kept | inner
        names[part["name"]] = f"record {len(names)}"
        return [
            names[part["name"]],
            *([each["name"], reduce(each["type"])] for each in part["fields"]),
        ]

    return reduce(schema)

"""An `Event` is an immutable CloudEvent: typed context attributes and data.

Core attributes (spec, Context Attributes): `id`, `source`, `type` and `specversion` are required
and not empty, `datacontenttype`, `dataschema`, `subject` and `time` are optional and not empty.
An attribute that is None is unset. Every other attribute is an extension.

The kind of `data` follows from its Python value and the content type (JSON format, 3.1):

| data | means |
|---|---|
| `ABSENT` | no data |
| bytes | binary data, under any content type |
| a JSON value, None included | JSON data: the content type is JSON, or unset and so implied |
| str under any other content type | text |

Any other combination is refused, for example an object under `text/plain`. `make` raises
`Refused` with the attribute's pointer; the readers of formats turn that into `Rejected`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NoReturn, cast

from msgspec import Struct
from msgspec.structs import force_setattr

from tallystick.core.errors import Refused
from tallystick.events.extensions import NONE, Extensions, fit
from tallystick.events.grammar import (
    MediaType,
    is_media_type,
    is_name,
    is_uri,
    is_uri_reference,
    parse_media_type,
)
from tallystick.events.payload import ABSENT, check_data
from tallystick.events.timestamp import Timestamp, is_timestamp
from tallystick.events.values import Kind, Value, adopt, check, string_fault

__all__ = [
    "CORE",
    "REQUIRED",
    "SPEC_VERSION",
    "Event",
    "Held",
    "check_attributes",
    "make",
    "make_of",
    "replace",
]

SPEC_VERSION: Final = "1.0"
REQUIRED: Final = ("specversion", "id", "source", "type")
CORE: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "specversion": Kind.STRING,
        "id": Kind.STRING,
        "source": Kind.URI_REFERENCE,
        "type": Kind.STRING,
        "datacontenttype": Kind.STRING,
        "dataschema": Kind.URI,
        "subject": Kind.STRING,
        "time": Kind.TIMESTAMP,
    }
)
"""The attributes that the specification names, in the order in which they are written."""


class Held:
    """Members in the form of a reader; they are converted on first use."""

    __slots__ = ()

    def get(self, name: str, otherwise: Any = None) -> Any:
        """Give a core attribute as text, or the data; `otherwise` if it is missing."""
        raise NotImplementedError

    def by_name(self) -> dict[str, Any]:
        """Give the members by name."""
        raise NotImplementedError


def _own_copy(value: Any) -> Any:
    """Copy nested lists and dicts, however deep; everything else in JSON data is a value."""
    if type(value) is not dict and type(value) is not list:
        return value
    holder: list[Any] = [None]
    todo: list[tuple[Any, Any, Any]] = [(value, holder, 0)]
    while todo:
        item, into, place = todo.pop()
        if type(item) is dict:
            into[place] = dict.fromkeys(item)
            todo.extend((inner, into[place], name) for name, inner in item.items())
        elif type(item) is list:
            into[place] = [None] * len(item)
            todo.extend((inner, into[place], index) for index, inner in enumerate(item))
        else:
            into[place] = item
    return holder[0]


class Event(Struct, frozen=True, eq=False, gc=False):
    """One CloudEvent, made by `make` or by the reader of a format, which check its content."""

    held: Any

    @property
    def members(self) -> Mapping[str, Any]:
        """Give the attributes by name, and the data under `data` (no attribute may have that name).

        Core attributes are plain strings. The view is read-only.
        """
        if isinstance(self.held, Held):
            force_setattr(self, "held", self.held.by_name())
        return MappingProxyType(self.held)

    @property
    def attributes(self) -> dict[str, Value]:
        """Give every attribute that is set, by name."""
        given = {name: value for name, value in self.members.items() if name != "data"}
        if self.time is not None:
            given["time"] = self.time
        return given

    @property
    def extensions(self) -> dict[str, Value]:
        """Give the extension attributes that are set."""
        return {
            name: value
            for name, value in self.members.items()
            if name not in CORE and name != "data"
        }

    @property
    def specversion(self) -> str:
        """Give the version of the specification: always 1.0."""
        return cast("str", self.held.get("specversion"))

    @property
    def id(self) -> str:
        """Give the id, unique within the source."""
        return cast("str", self.held.get("id"))

    @property
    def source(self) -> str:
        """Give the source: a URI-reference."""
        return cast("str", self.held.get("source"))

    @property
    def type(self) -> str:
        """Give the type of the event."""
        return cast("str", self.held.get("type"))

    @property
    def datacontenttype(self) -> str | None:
        """Give the media type of the data, or None."""
        return cast("str | None", self.held.get("datacontenttype"))

    @property
    def dataschema(self) -> str | None:
        """Give the URI of the schema of the data, or None."""
        return cast("str | None", self.held.get("dataschema"))

    @property
    def subject(self) -> str | None:
        """Give the subject within the source, or None."""
        return cast("str | None", self.held.get("subject"))

    @property
    def time(self) -> Timestamp | None:
        """Give the time, or None."""
        text = self.held.get("time")
        return None if text is None else str.__new__(Timestamp, text)

    @property
    def media(self) -> MediaType | None:
        """Give the parsed content type, or None if it is unset."""
        content_type = self.datacontenttype
        return None if content_type is None else parse_media_type(content_type)

    @property
    def data(self) -> Any:
        """Give the data, or `ABSENT`. A list or dict is a copy, so the event cannot change."""
        return _own_copy(self.held.get("data", ABSENT))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        from tallystick.events.equality import differences  # noqa: PLC0415 (it knows Event)

        return not differences(self, other)

    def __ne__(self, other: object) -> bool:  # a Struct without eq would compare identities
        return not self == other

    def __hash__(self) -> int:
        return hash((self.id, self.source, self.type))

    def __repr__(self) -> str:
        shown = (f"{name}={value!r:.200}" for name, value in self.members.items())
        return f"Event({', '.join(shown)})"


def make(
    *,
    id: str,  # noqa: A002 (the specification's name)
    source: str,
    type: str,  # noqa: A002 (the specification's name)
    specversion: str = SPEC_VERSION,
    datacontenttype: str | None = None,
    dataschema: str | None = None,
    subject: str | None = None,
    time: str | datetime | None = None,
    data: Any = ABSENT,
    extensions: Mapping[str, Any] = NONE,
) -> Event:
    """Make an event, or raise `Refused` with the pointer of the wrong attribute."""
    for name in extensions:
        if name in CORE:
            _refuse(name, "is a core attribute, not an extension", "not_an_extension")
    given = {
        "specversion": specversion,
        "id": id,
        "source": source,
        "type": type,
        "datacontenttype": datacontenttype,
        "dataschema": dataschema,
        "subject": subject,
        "time": time,
        **extensions,
    }
    return make_of(given, data)


def make_of(
    attributes: Mapping[str, Any],
    data: Any = ABSENT,
    known: Extensions = NONE,
    spelled: Container[Kind] = (),
) -> Event:
    """Make an event from a mapping of attributes; `known` extensions must have their types.

    A string is read as a declared type if it is among the `spelled` (see `extensions.fit`).
    """
    members = check_attributes(attributes, known, spelled)
    if data is not ABSENT:
        content_type = members.get("datacontenttype")
        media = None if content_type is None else parse_media_type(content_type)
        members["data"] = check_data(data, media)
    return Event(members)


def replace(event: Event, *, data: Any = ..., **changes: Any) -> Event:
    """Give a copy with some attributes changed (None unsets one); `data` stays unless given."""
    return make_of({**event.attributes, **changes}, event.data if data is ... else data)


def check_attributes(
    given: Mapping[str, Any], known: Extensions = NONE, spelled: Container[Kind] = ()
) -> dict[str, Any]:
    """Check every attribute and give those that are set, core first; raise `Refused`."""
    attributes: dict[str, Any] = {}
    for name in CORE:
        value = given.get(name)
        if value is not None:
            attributes[name] = _check_core(name, value)
        elif name in REQUIRED:
            _refuse(name, "is required", "missing_attribute")
    for name, value in given.items():
        if name in CORE:
            continue
        if not is_name(name):
            _refuse(name, "is not a valid attribute name: use a to z and 0 to 9", "bad_name")
        if value is not None:
            attributes[name] = _check_extension(name, value, known, spelled)
    return attributes


def _check_core(name: str, value: Any) -> str:
    if isinstance(value, datetime):
        value = adopt(value)
    if not isinstance(value, str):
        _refuse(name, f"must be a {CORE[name]}, found {type(value).__name__}", "bad_type")
    if value == "":
        _refuse(name, "must not be empty", "empty_attribute")
    fault = string_fault(value) or _CORE_RULES[name](value)
    if fault:
        _refuse(name, fault, "bad_value")
    return str(value)


def _rule(holds: Callable[[str], bool], what: str) -> Callable[[str], str | None]:
    return lambda text: None if holds(text) else f"{text!r:.60} is not {what}"


_ANY: Final = _rule(lambda _text: True, "")
_CORE_RULES: Final[Mapping[str, Callable[[str], str | None]]] = {
    "specversion": _rule(lambda text: text == SPEC_VERSION, f"{SPEC_VERSION!r}"),
    "id": _ANY,
    "source": _rule(is_uri_reference, "a URI-reference (RFC 3986, 4.1)"),
    "type": _ANY,
    "datacontenttype": _rule(is_media_type, "a media type (RFC 2046)"),
    "dataschema": _rule(is_uri, "an absolute URI (RFC 3986, 4.3)"),
    "subject": _ANY,
    "time": _rule(is_timestamp, "an RFC 3339 timestamp"),
}


def _check_extension(name: str, value: Any, known: Extensions, spelled: Container[Kind]) -> Value:
    try:
        own = adopt(value)
        if name in known:
            return fit(known[name], own, spelled)
    except Refused as error:
        _refuse(name, error.message, error.code)
    fault = check(own)
    if fault:
        _refuse(name, fault, "bad_value")
    return own


def _refuse(name: str, fault: str, code: str) -> NoReturn:
    raise Refused(f"{name}: {fault}", code=code, pointer=f"/{name}")

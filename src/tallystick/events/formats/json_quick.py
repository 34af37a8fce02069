"""Fast readers of JSON events; a body that they cannot decide is read by `json_format`.

A stream of events repeats its shape: the same members in the same order. For a shape that was met
twice there is a typed C decoder that knows these members only, each required. What it reads and
writes back byte for byte is an event of that shape: no member is unknown, missing, doubled or of a
wrong type, and a time read as a moment is one that RFC 3339 knows, in its only spelling. Events of
other shapes go through a typed decoder of the attribute names met so far, in any order; it drops
what it does not know, so the strings of the body are counted.

What is learned is bounded, and learned from good events only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from keyword import iskeyword
from typing import Annotated, Any, ClassVar, Final, Literal, NotRequired, TypedDict, cast

import msgspec
import orjson
from msgspec import Struct, defstruct, field
from msgspec.structs import asdict

from tallystick.events.event import Event, Held
from tallystick.events.grammar import is_uri, is_uri_reference, parse_media_type
from tallystick.events.timestamp import is_timestamp
from tallystick.events.values import string_fault

__all__ = ["encode_shape", "learn", "read_shape", "read_typed"]

_MOST_NAMES: Final = 256
_MOST_SHAPES: Final = 64
_MOST_SOURCES: Final = 4096
_LONGEST: Final = 256
_QUOTE, _BACKSLASH = 34, 92
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Int32 = Annotated[int, msgspec.Meta(ge=-0x80000000, le=0x7FFFFFFF)]
_Moment = Annotated[datetime, msgspec.Meta(tz=True)]
_CORE: Final[Mapping[str, Any]] = {
    "specversion": Literal["1.0"],
    "id": _Text,
    "source": _Text,
    "type": _Text,
    "datacontenttype": _Text,
    "dataschema": _Text,
    "subject": _Text,
    "time": _Text,
    "data": Any,
}
_SHAPED: Final = {"datacontenttype": Literal["application/json"]}
_REQUIRED: Final = ("specversion", "id", "source", "type")
_EXTENSION: Final = str | _Int32 | bool
_FAULTS: Final = (
    msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, AttributeError,
)  # fmt: skip
encode_shape: Final = msgspec.json.Encoder().encode
_sources: Final[set[str]] = set()


class _Shape(Held, Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """An event whose members are fields, in the order in which the body has them."""

    RENAMED: ClassVar[Mapping[str, str]] = {}
    time: ClassVar[Any] = None

    def get(self, name: str, otherwise: Any = None) -> Any:
        """Give a core attribute or the data, a moment as its text."""
        value = getattr(self, name, otherwise)
        return encode_shape(value)[1:-1].decode() if type(value) is datetime else value

    def by_name(self) -> dict[str, Any]:
        """Give the members by name, a moment as its text."""
        given = asdict(self)
        if type(self.time) is datetime:
            given["time"] = self.get("time")
        for ours, name in self.RENAMED.items():
            given[name] = given.pop(ours)
        return given


class _Learned:
    """What was met: attribute names, shapes, and the decoders for them."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.shapes: dict[tuple[str, ...], Callable[[bytes], Any]] = {}
        self.last: tuple[str, ...] = ()
        self.decode_shape: Callable[[bytes], Any] = _no_shape
        self.decode_typed = _typed_decoder(())


def _no_shape(_body: bytes) -> Any:
    raise ValueError


def _typed_decoder(names: Iterable[str]) -> Callable[[bytes], dict[str, Any]]:
    """Make a decoder that checks the types of core attributes and of these extensions."""
    members: dict[str, Any] = {
        name: kind if name in _REQUIRED else NotRequired[kind] for name, kind in _CORE.items()
    }
    members |= dict.fromkeys(names, NotRequired[_EXTENSION])
    shape: Any = TypedDict("shape", members)  # type: ignore[misc]
    return cast("Callable[[bytes], dict[str, Any]]", msgspec.json.Decoder(shape).decode)


def _shape_decoder(names: tuple[str, ...], body: bytes) -> Callable[[bytes], Any]:
    """Make the decoder of a shape; its time is a moment if that has the spelling of this body."""
    for time in (_Moment, _Text):
        kinds = {**dict.fromkeys(names, _EXTENSION), **_CORE, **_SHAPED, "time": time}
        fields = [(_field_name(name), kinds[name], field(name=name)) for name in names]
        renamed = {ours: name for (ours, _, _), name in zip(fields, names, strict=True)}
        kind = defstruct(
            "shape",
            fields,
            bases=(_Shape,),
            namespace={"RENAMED": {ours: name for ours, name in renamed.items() if ours != name}},
            frozen=True,
            gc=False,
        )
        decode = msgspec.json.Decoder(kind).decode
        try:
            if encode_shape(decode(body)) == body:
                break
        except _FAULTS:
            continue
    return decode


def _field_name(name: str) -> str:
    """Give the field for a member: its own name, where Python can have a field of that name."""
    taken = iskeyword(name) or (hasattr(_Shape, name) and name not in _CORE)
    return name if name.isidentifier() and not taken else f"x_{name}"


_learned: Final = _Learned()


def read_shape(body: bytes) -> Event | None:
    """Read an event of the shape met last, or give None."""
    try:
        shape = _learned.decode_shape(body)
        if (
            encode_shape(shape) == body
            and body.isascii()
            and 92 not in body  # a backslash
            and 127 not in body
            and shape.source in _sources
            and (type(shape.time) is not str or is_timestamp(shape.time))
        ):
            return Event(shape)
    except _FAULTS:
        return None
    return None


def read_typed(body: bytes) -> Event | None:
    """Read an event of known attribute names in any order, or give None."""
    try:
        members = _learned.decode_typed(body)
        if (
            _all_kept(members, body)
            and _strings_hold(members)
            and _knows(members["source"])
            and ("time" not in members or is_timestamp(members["time"]))
            and ("dataschema" not in members or is_uri(members["dataschema"]))
            and ("datacontenttype" not in members or _data_fits(members))
        ):
            _meet(tuple(members), body)
            return Event(members)
    except _FAULTS:
        return None
    return None


def learn(event: Event) -> None:
    """Let the typed decoder know the extension names of a good event."""
    names = _learned.names
    new = [name for name in event.extensions if name not in names and len(name) <= 64]
    if new and len(names) + len(new) <= _MOST_NAMES:
        names.update(dict.fromkeys(new))
        _learned.decode_typed = _typed_decoder(names)


def _meet(names: tuple[str, ...], body: bytes) -> None:
    """Take the shape of a good event as the next one to expect, if it came twice in a row."""
    if names != _learned.last:
        _learned.last = names
        return
    shapes = _learned.shapes
    if names not in shapes and len(shapes) < _MOST_SHAPES and "dataschema" not in names:
        shapes[names] = _shape_decoder(names, body)
    _learned.decode_shape = shapes.get(names, _no_shape)


def _knows(source: str) -> bool:
    """Judge a source, and remember a good one; sources repeat from event to event."""
    if source in _sources:
        return True
    if not is_uri_reference(source):
        return False
    if len(source) <= _LONGEST:
        if len(_sources) == _MOST_SOURCES:
            _sources.clear()
        _sources.add(source)
    return True


def _strings_hold(members: dict[str, Any]) -> bool:
    return not any(
        string_fault(value)
        for name, value in members.items()
        if type(value) is str and name != "data"
    )


def _data_fits(members: dict[str, Any]) -> bool:
    media = parse_media_type(members["datacontenttype"])
    return media is not None and (
        media.is_json or "data" not in members or type(members["data"]) is str
    )


def _all_kept(members: dict[str, Any], body: bytes) -> bool:
    """Tell whether the decoder dropped nothing: the body comes back, or all its strings are there.

    Without a backslash every quote is the edge of a string, and no member goes without a name.
    """
    try:
        if orjson.dumps(members) == body:
            return True
    except TypeError:  # a long integer
        pass
    if _BACKSLASH in body:
        return False
    strings = 0
    work: list[Any] = [members]
    while work:
        value = work.pop()
        kind = type(value)
        if kind is dict:
            strings += len(value)
            work.extend(value.values())
        elif kind is list:
            work.extend(value)
        elif kind is str:
            strings += 1
    return body.count(_QUOTE) == 2 * strings

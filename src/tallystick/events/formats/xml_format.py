"""The XML format: `application/cloudevents+xml`, and batches of it.

Rules (XML format, working draft): `event` in the CloudEvents namespace carries `specversion` as
an attribute without a namespace; each context attribute is an element of its own, text only, at
most once; an extension shows its type in `xsi:type`, a core attribute may and then it must be its
own; `data` must: `xs:string`, `xs:base64Binary`, or `xs:any` with exactly one element. Elements of
other namespaces, other XML attributes and comments are ignored; text beside elements is not.

A prefix in `xsi:type` is resolved by its declaration. `ce` and `xs` are understood without one,
because the published examples and cases leave it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NoReturn

from tallystick.core.errors import Refused, Rejected
from tallystick.events.event import CORE, SPEC_VERSION, Event, make_of
from tallystick.events.extensions import NONE, Extensions
from tallystick.events.formats.xml_tree import Node, cut_out, parse_xml
from tallystick.events.grammar import MediaType, parse_media_type
from tallystick.events.payload import ABSENT, IMPLIED, Xml, carry_text, json_octets, read_text
from tallystick.events.reject import inside, reading
from tallystick.events.values import Kind, Value, kind_of, parse, read_base64, spell, write_base64

__all__ = ["BATCH_MEDIA_TYPE", "MEDIA_TYPE", "read", "read_batch", "write", "write_batch"]

MEDIA_TYPE: Final = "application/cloudevents+xml"
BATCH_MEDIA_TYPE: Final = "application/cloudevents-batch+xml"

_CE: Final = "http://cloudevents.io/xmlformat/V1"
_XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
_XS: Final = "http://www.w3.org/2001/XMLSchema"
_ASSUMED: Final = {"ce": _CE, "xs": _XS}
_TYPE_OF: Final = {
    Kind.BOOLEAN: "boolean",
    Kind.INTEGER: "integer",
    Kind.STRING: "string",
    Kind.BINARY: "binary",
    Kind.URI: "uri",
    Kind.URI_REFERENCE: "uriRef",
    Kind.TIMESTAMP: "timestamp",
}
_KIND_OF: Final = {(_CE, name): kind for kind, name in _TYPE_OF.items()}
_STRING, _BASE64, _ANY = (_XS, "string"), (_XS, "base64Binary"), (_XS, "any")
_NAMESPACES: Final = f'xmlns:ce="{_CE}" xmlns:xsi="{_XSI}" xmlns:xs="{_XS}"'
_PROLOGUE: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]").search
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"})
_SPACE: Final = str.maketrans("", "", " \t\r\n")


def read(body: bytes, known: Extensions = NONE) -> Event:
    """Read one event, or raise `Rejected` with the attribute's pointer and the byte offset."""
    root, octets = parse_xml(body)
    _check_name(root, "event")
    return _judge(root, octets, known)


def read_batch(body: bytes, known: Extensions = NONE) -> tuple[Event, ...]:
    """Read a batch; elements of other namespaces are ignored, all else must be events."""
    root, octets = parse_xml(body)
    _check_name(root, "batch")
    _check_blank(root)
    events: list[Event] = []
    for child in root.children:
        if child.namespace == _CE:
            with inside(len(events), 0):
                _check_name(child, "event")
                events.append(_judge(child, octets, known))
    return tuple(events)


def _check_name(node: Node, name: str) -> None:
    if (node.namespace, node.name) != (_CE, name):
        raise Rejected(
            f"expected <{name}>, found {node.name!r:.60} ({node.namespace or 'no namespace'})",
            code="wrong_element",
            offset=node.start,
            hint=f"use the namespace {_CE}",
        )


def _check_blank(node: Node) -> None:
    if not node.is_blank:
        fault = f"text directly inside <{node.name}> is not allowed"
        raise Rejected(fault, code="stray_text", offset=node.start)


def _judge(node: Node, octets: bytes, known: Extensions) -> Event:
    _check_blank(node)
    elements: dict[str, Node] = {}
    for child in node.children:
        if child.namespace != _CE:
            continue
        if child.name in elements:
            raise Rejected(
                f"{child.name}: occurs twice",
                code="duplicate_attribute",
                pointer=f"/{child.name}",
                offset=child.start,
            )
        elements[child.name] = child
    data = elements.pop("data", None)
    places = {**elements, "specversion": node, "data": data or node}
    with reading(lambda name: places[name].start if name in places else node.start):
        if "specversion" in elements:
            _refuse(
                "specversion", "must be an XML attribute, found an element", "misplaced_attribute"
            )
        attributes: dict[str, Any] = {"specversion": node.attributes.get((None, "specversion"))}
        for name, element in elements.items():
            attributes[name] = _read_attribute(name, element)
        content_type = attributes.get("datacontenttype")
        media = parse_media_type(content_type) if content_type else None
        found = ABSENT if data is None else _read_data(data, octets, media)
        return make_of(attributes, found, known)


def _read_attribute(name: str, element: Node) -> Value:
    shown = _type_of(element)
    kind = CORE.get(name)
    if shown is None and kind is None:
        _refuse(name, "an extension needs an xsi:type", "no_type")
    if shown is not None and (shown not in _KIND_OF or kind not in (None, _KIND_OF[shown])):
        _refuse(name, f"wrong xsi:type {shown[1]!r:.40}", "bad_type")
    if element.children:
        _refuse(name, "must hold text, found an element", "child_element")
    if shown is None or kind is not None:
        return element.text
    try:
        return parse(_KIND_OF[shown], element.text)
    except Refused as error:
        _refuse(name, error.message, error.code)


def _type_of(element: Node) -> tuple[str | None, str] | None:
    """Give the `xsi:type` as namespace and name, or None when it is not there."""
    value = element.attributes.get((_XSI, "type"))
    if value is None:
        return None
    prefix, colon, name = value.strip(" \t\r\n").rpartition(":")
    scope = element.scope
    if not colon:
        return scope.get(None), name
    return scope[prefix] if prefix in scope else _ASSUMED.get(prefix), name


def _read_data(element: Node, octets: bytes, media: MediaType | None) -> Any:
    shown = _type_of(element)
    if shown not in _DATA_READERS:
        fault = "missing xsi:type" if shown is None else f"unknown xsi:type {shown[1]!r:.40}"
        _refuse("data", f"{fault}; use xs:string, xs:base64Binary or xs:any", "bad_type")
    if shown == _ANY:
        if len(element.children) != 1 or not element.is_blank:
            _refuse("data", "xs:any must hold exactly one element", "bad_any")
        return Xml(cut_out(element.children[0], octets))
    if element.children:
        _refuse("data", "must hold text, found an element", "child_element")
    if shown == _STRING:
        return read_text(element.text, media)
    try:
        return read_base64(element.text.translate(_SPACE))
    except Refused as error:
        _refuse("data", error.message, error.code)


_DATA_READERS: Final = (_STRING, _BASE64, _ANY)


def _refuse(name: str, fault: str, code: str) -> NoReturn:
    raise Refused(f"{name}: {fault}", code=code, pointer=f"/{name}")


def write(event: Event) -> bytes:
    """Write one event as a document."""
    return f"{_PROLOGUE}{_element(event, f' {_NAMESPACES}')}".encode()


def write_batch(events: Iterable[Event]) -> bytes:
    """Write a batch as a document."""
    inner = "".join(_element(event, "") for event in events)
    return f"{_PROLOGUE}<ce:batch {_NAMESPACES}>{inner}</ce:batch>".encode()


def _element(event: Event, namespaces: str) -> str:
    content_type, data = _data_element(event)
    attributes = event.attributes | ({"datacontenttype": content_type} if content_type else {})
    attributes.pop("specversion")
    inner = "".join(_attribute_element(name, value) for name, value in attributes.items())
    return f'<ce:event{namespaces} specversion="{SPEC_VERSION}">{inner}{data}</ce:event>'


def _attribute_element(name: str, value: Value) -> str:
    if name[0].isdigit():
        _refuse(name, "the name of an XML element cannot begin with a digit", "no_xml_name")
    shown = "" if name in CORE else f' xsi:type="ce:{_TYPE_OF[kind_of(value)]}"'
    return f"<ce:{name}{shown}>{spell(value).translate(_ESCAPES)}</ce:{name}>"


def _data_element(event: Event) -> tuple[str | None, str]:
    data, media, content_type = event.data, event.media, event.datacontenttype
    if data is ABSENT:
        return content_type, ""
    if isinstance(data, bytes):
        return content_type, _typed_data("base64Binary", write_base64(data))
    is_xml = isinstance(data, Xml) or (media is not None and media.is_xml)
    if is_xml and _is_element(data):
        return content_type, _typed_data("any", data)
    text, content_type = carry_text(data, media, content_type)
    if _NO_XML(text) and media is None:
        text, content_type = json_octets(data).decode(), IMPLIED
    if content_type is not None and _is_json(content_type):
        text = text.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
    if _NO_XML(text):
        _refuse("data", "XML cannot hold a control character or noncharacter", "no_xml_text")
    return content_type, _typed_data("string", text.translate(_ESCAPES))


def _is_json(content_type: str) -> bool:
    media = parse_media_type(content_type)
    return media is not None and media.is_json


def _typed_data(kind: str, content: str) -> str:
    return f'<ce:data xsi:type="xs:{kind}">{content}</ce:data>'


def _is_element(text: str) -> bool:
    """Tell whether the text is one element that comes out of `xs:any` as it went in."""
    if not text.startswith("<") or not text.endswith(">"):
        return False
    try:
        root, octets = parse_xml(f"<ce:data {_NAMESPACES}>{text}</ce:data>".encode())
    except Rejected:
        return False
    return len(root.children) == 1 and root.is_blank and cut_out(root.children[0], octets) == text

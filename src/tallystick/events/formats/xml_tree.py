"""A small, safe XML reader: elements with their namespaces, and where they stand in the bytes.

There is no document type, so there are no entities but XML's own five, and nothing is fetched.
Nesting is bounded, and never uses the call stack. Documents are UTF-8, or UTF-16 with a byte order
mark (the two that every XML processor knows); offsets are those of the UTF-8 form.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from xml.parsers import expat

from tallystick.core.canonical import MAX_DEPTH
from tallystick.core.errors import Rejected

__all__ = ["Node", "cut_out", "parse_xml"]

_XML_SPACE: Final = " \t\r\n"
_LABELS: Final = {
    "utf-8": ("utf-8", "utf8"),
    "ascii": ("utf-8", "utf8", "us-ascii", "ascii"),
    "utf-16": ("utf-16", "utf-16le", "utf-16be"),
}
"""What a body may be declared as, by what it is (XML 1.0, 4.3.3)."""
_UTF16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_START_TAG: Final = re.compile(rb"<[^\s/>]+")


@dataclass(slots=True, eq=False)
class Node:
    """An element: its name, its attributes by (namespace, name), its content, its place."""

    namespace: str | None
    name: str
    prefix: str | None
    attributes: Mapping[tuple[str | None, str], str]
    scope: Mapping[str | None, str]
    declared: frozenset[str | None]
    start: int
    end: int = 0
    pieces: list[str] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Give the character data directly inside, comments left out."""
        return "".join(self.pieces)

    @property
    def is_blank(self) -> bool:
        """Tell whether nothing but white space stands directly inside."""
        return not self.text.strip(_XML_SPACE)


def parse_xml(body: bytes) -> tuple[Node, bytes]:
    """Read a document; give its root, and the UTF-8 bytes that the offsets count."""
    octets = _as_utf8(body)
    actual = "utf-16" if body.startswith(_UTF16) else "ascii" if octets.isascii() else "utf-8"
    builder = _Builder(_LABELS[actual])
    parser = expat.ParserCreate(encoding="utf-8", namespace_separator=" ")
    parser.namespace_prefixes = True
    builder.listen_to(parser)
    try:
        parser.Parse(octets, True)
    except expat.ExpatError as error:
        raise Rejected(
            f"not XML: {expat.ErrorString(error.code)}",
            code="not_xml",
            offset=max(parser.ErrorByteIndex, 0),
        ) from None
    if builder.root is None:
        raise Rejected("not XML: no element", code="not_xml", offset=0)
    return builder.root, octets


def _as_utf8(body: bytes) -> bytes:
    try:
        if body.startswith(_UTF16):
            return body.decode("utf-16").encode()
        body.decode()
        if b"\0" in body:  # UTF-16 without its mark reads as UTF-8 with NULs
            raise Rejected("not XML: a NUL byte", code="not_utf8", offset=body.index(b"\0"))
    except UnicodeError as error:
        start = error.start if isinstance(error, UnicodeDecodeError) else 0
        raise Rejected("not UTF-8 or UTF-16", code="not_utf8", offset=start) from None
    return body.removeprefix(codecs.BOM_UTF8)


class _Builder:
    """What the parser tells, put together as nodes."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        self.root: Node | None = None
        self.open: list[Node] = []
        self.ended: Node | None = None
        self.declared: dict[str | None, str] = {}
        self.parser: Any = None

    def listen_to(self, parser: Any) -> None:
        self.parser = parser
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.characters
        parser.StartNamespaceDeclHandler = self.declare
        parser.XmlDeclHandler = self.declaration
        parser.StartDoctypeDeclHandler = self.doctype
        parser.DefaultHandler = self.other  # comments, instructions, CDATA marks

    def place(self) -> int:
        """Give the offset of what is told now, which is where the last element ended."""
        offset: int = self.parser.CurrentByteIndex
        if self.ended is not None:
            self.ended.end, self.ended = offset, None
        return offset

    def declare(self, prefix: str | None, uri: str | None) -> None:
        self.declared[prefix] = uri or ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        offset = self.place()
        if len(self.open) >= MAX_DEPTH:
            raise Rejected(f"nested deeper than {MAX_DEPTH} levels", code="too_deep", offset=offset)
        outer: Mapping[str | None, str] = self.open[-1].scope if self.open else {}
        namespace, local, prefix = _split(name)
        node = Node(
            namespace,
            local,
            prefix,
            {_split(each)[:2]: value for each, value in attributes.items()},
            {**outer, **self.declared} if self.declared else outer,
            frozenset(self.declared),
            offset,
        )
        self.declared = {}
        if self.open:
            self.open[-1].children.append(node)
        else:
            self.root = node
        self.open.append(node)

    def end(self, _name: str) -> None:
        self.place()
        self.ended = self.open.pop()

    def characters(self, text: str) -> None:
        self.place()
        self.open[-1].pieces.append(text)

    def other(self, _text: str) -> None:
        self.place()

    def declaration(self, version: str, encoding: str | None, _standalone: int) -> None:
        if version != "1.0" or (encoding or self.labels[0]).lower() not in self.labels:
            fault = (
                f"the XML declaration says {version}, {encoding}; the text is in {self.labels[0]}"
            )
            raise Rejected(fault, code="bad_encoding", offset=0, hint="use XML 1.0 in UTF-8")

    def doctype(self, *_about: Any) -> None:
        raise Rejected(
            "a DOCTYPE is not allowed", code="doctype", offset=self.parser.CurrentByteIndex
        )


def _split(name: str) -> tuple[str | None, str, str | None]:
    """Take a name apart that the parser gives as `namespace local prefix`."""
    parts = name.split(" ")
    if len(parts) == 1:
        return None, name, None
    return parts[0], parts[1], parts[2] if len(parts) > 2 else None


def cut_out(node: Node, octets: bytes) -> str:
    """Give an element as a text that stands alone: its bytes, and the declarations it needs.

    Whatever prefix is written anywhere in it, in a name or in a value such as `xsi:type`, is
    declared on it if an element around it declares that prefix.
    """
    slice_ = octets[node.start : node.end]
    added = []
    for prefix, uri in node.scope.items():
        if prefix in node.declared:
            continue
        if prefix is None:
            needed = bool(uri) and _inherits_default(node, uri)
        else:
            needed = re.search(rf"(?<![\w.:-]){re.escape(prefix)}:".encode(), slice_) is not None
        if needed:
            quoted = uri.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
            added.append(f' xmlns{":" if prefix else ""}{prefix or ""}="{quoted}"')
    tag = _START_TAG.match(slice_)
    cut = tag.end() if tag else 0
    return (slice_[:cut] + "".join(added).encode() + slice_[cut:]).decode()


def _inherits_default(node: Node, uri: str) -> bool:
    work = [node]
    while work:
        each = work.pop()
        if each.prefix is None and each.namespace == uri:
            return True
        work.extend(each.children)
    return False

"""Resolve `$ref` inside the registry folder, never over the network.

A reference is relative to its base: the nearest `$id`, else its file. It may name
a place in the same document (`#/definitions/money`, `#anchor`), another file of the registry
(`common/money.json#/definitions/money`) or the `$id` of one. Anything else is rejected, and so are
two files with the same `$id`, and two subschemas of one file with the same `$id` or anchor.

`complete` brings in what documents lead to. Every verb reads a registry with it, and the order of
the files decides nothing: an `$id` is looked for among all files before a path is tried.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote, urljoin

from tallystick.core.errors import Rejected
from tallystick.schemas.values import escape, line_of

__all__ = [
    "CONSTRAINING",
    "DIALECTS",
    "SUBSCHEMAS",
    "Document",
    "Index",
    "Library",
    "Load",
    "Shape",
    "check_dialects",
    "children",
    "complete",
    "dialect_of",
    "find_pointer",
    "index_of",
    "is_alias",
    "links",
    "path_of",
    "repeats",
    "resolve",
    "unresolved",
    "walk",
]

DIALECTS: Final[dict[str, str]] = {
    "http://json-schema.org/draft-07/schema": "draft-07",
    "https://json-schema.org/draft-07/schema": "draft-07",
    "https://json-schema.org/draft/2019-09/schema": "2019-09",
    "https://json-schema.org/draft/2020-12/schema": "2020-12",
}

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")

Shape = str
"""How a keyword holds schemas: `one`, `list`, `map`, `one-or-list` or `map-or-names`."""

SUBSCHEMAS: Final[dict[str, Shape]] = {
    "additionalItems": "one", "additionalProperties": "one", "contains": "one", "else": "one",
    "if": "one", "items": "one-or-list", "not": "one", "propertyNames": "one", "then": "one",
    "unevaluatedItems": "one", "unevaluatedProperties": "one", "contentSchema": "one",
    "allOf": "list", "anyOf": "list", "oneOf": "list", "prefixItems": "list",
    "$defs": "map", "definitions": "map", "dependentSchemas": "map", "patternProperties": "map",
    "properties": "map", "dependencies": "map-or-names",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Document:
    """One schema file of the registry: its path inside the folder, and what it holds."""

    path: str
    schema: Any
    text: str = ""


class Library(dict[str, Document]):
    """Documents by their path; `by_id` finds them by the `$id` they declare, made absolute."""

    def __init__(self, documents: Mapping[str, Document] | None = None) -> None:
        super().__init__()
        self.by_id: dict[str, str] = {}
        for path, document in (documents or {}).items():
            self[path] = document

    def __setitem__(self, path: str, document: Document) -> None:
        super().__setitem__(path, document)
        named = _identity(document)
        if named:
            self.by_id.setdefault(named, path)


def _identity(document: Document) -> str:
    """Give the `$id` of a file made absolute, or an empty text."""
    named = document.schema.get("$id") if isinstance(document.schema, dict) else None
    return resolve(_home(document), named)[0] if isinstance(named, str) else ""


def _home(document: Document) -> str:
    return f"file:///{quote(document.path)}"


def dialect_of(schema: Any, where: str = "the schema") -> str:
    """Give the dialect that `$schema` names; the default is draft-07."""
    if not isinstance(schema, dict) or "$schema" not in schema:
        return "draft-07"
    named = schema["$schema"]
    dialect = DIALECTS.get(named.rstrip("#")) if isinstance(named, str) else None
    if dialect is None:
        raise Rejected(
            f"{where}: unknown $schema {named!r}",
            code="schema.dialect",
            pointer="/$schema",
            hint="supported: draft-07, 2019-09 and 2020-12",
        )
    return dialect


def check_dialects(schema: Any, where: str, text: str = "") -> None:
    """Reject a schema that mixes dialects."""
    dialect = dialect_of(schema, where)
    for pointer, node in walk(schema):
        if "$schema" in node and dialect_of(node, where) != dialect:
            place = f"{pointer}/$schema"
            raise Rejected(
                f"{where}:{line_of(text, place)}: the dialect differs from the one of the document",
                code="schema.mixed",
                pointer=place,
                hint="use one dialect in the whole document",
            )


CONSTRAINING: Final = frozenset(SUBSCHEMAS) - {"$defs", "definitions", "contentSchema"} | {
    "$dynamicRef", "$recursiveRef", "$ref", "const", "dependentRequired", "enum",
    "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains", "maxItems", "maxLength",
    "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum",
    "multipleOf", "pattern", "required", "type", "uniqueItems",
}  # fmt: skip
"""Keywords that can make a document invalid."""


def is_alias(schema: dict[str, Any], dialect: str) -> bool:
    """Tell whether a schema is nothing but its `$ref`; draft-07 ignores all that stands beside."""
    return "$ref" in schema and (dialect == "draft-07" or schema.keys() & CONSTRAINING == {"$ref"})


def children(schema: Any) -> Iterator[tuple[str, Any]]:
    """Give each direct subschema with its pointer; values of enum, const and default are not."""
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        shape = SUBSCHEMAS.get(keyword)
        if shape is None:
            continue
        place = f"/{escape(keyword)}"
        if isinstance(value, dict) and shape in ("map", "map-or-names"):
            for name, item in value.items():
                if isinstance(item, dict | bool):
                    yield f"{place}/{escape(name)}", item
        elif isinstance(value, list) and shape in ("list", "one-or-list"):
            for at, item in enumerate(value):
                yield f"{place}/{at}", item
        elif shape in ("one", "one-or-list"):
            yield place, value


def walk(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give every subschema that is an object, itself first, with its pointer, in written order."""
    pending = [("", schema)]
    while pending:
        pointer, node = pending.pop()
        if isinstance(node, dict):
            yield pointer, node
            below = [(pointer + place, item) for place, item in children(node)]
            pending.extend(reversed(below))


def find_pointer(document: Any, pointer: str) -> Any:
    """Follow an RFC 6901 pointer; raise KeyError if it points to nothing."""
    node = document
    for token in pointer.split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901
        if isinstance(node, dict):
            node = node[token]
        elif isinstance(node, list) and token.isdecimal() and int(token) < len(node):
            node = node[int(token)]
        else:
            raise KeyError(pointer)
    return node


@dataclass(frozen=True, slots=True)
class Index:
    """Where everything in one document stands: its resources, anchors and references."""

    anchors: Mapping[tuple[str, str], str]  # (base, anchor) -> pointer
    resources: Mapping[str, str]  # base -> pointer of its resource root
    references: tuple[tuple[str, str, str], ...]  # (pointer, base, reference)
    repeated: tuple[tuple[str, str], ...] = ()  # (pointer of the keyword, where its name was taken)


def index_of(document: Document) -> Index:
    """Look through one document, whatever it holds."""
    base = _home(document)
    anchors: dict[tuple[str, str], str] = {}
    resources: dict[str, str] = {base: ""}
    references: list[tuple[str, str, str]] = []
    old = dialect_of(document.schema, document.path) == "draft-07"
    stack: list[tuple[str, Any, str]] = [("", document.schema, base)]
    taken = {(base, ""): ""}
    repeated: list[tuple[str, str]] = []

    def take(name: tuple[str, str], place: str, keyword: str) -> None:
        first = taken.setdefault(name, place)
        if first != place:
            repeated.append((f"{place}/{keyword}", first))

    while stack:
        pointer, node, base = stack.pop()
        if not isinstance(node, dict):
            continue
        named = node.get("$id")
        if isinstance(named, str) and not (old and "$ref" in node):
            absolute, fragment = resolve(base, named)
            if fragment and old:
                anchors[(base, fragment)] = pointer
            if fragment and not fragment.startswith("/"):
                take((absolute, fragment), pointer, "$id")
            if not named.startswith("#"):
                base = absolute
                resources[absolute] = pointer
                take((absolute, ""), pointer, "$id")
                if fragment:
                    anchors[(base, fragment)] = pointer
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(keyword), str):
                anchors[(base, node[keyword])] = pointer
                if not old:
                    take((base, node[keyword]), pointer, keyword)
        if isinstance(node.get("$ref"), str):
            references.append((pointer, base, node["$ref"]))
        inner = [(pointer + place, item, base) for place, item in children(node)]
        stack.extend(reversed(inner))
    return Index(anchors, resources, tuple(references), tuple(repeated))


def repeats(document: Document, index: Index) -> Iterator[Rejected]:
    """Give an error for each `$id` or anchor that another subschema of the document has already."""
    for place, first in index.repeated:
        keyword = place.rpartition("/")[2]
        name = find_pointer(document.schema, place)
        words = f"the {keyword} {name!r} already belongs to {first or 'the root'}"
        yield _fault(document, place, words, "schema.id")


def resolve(base: str, reference: str) -> tuple[str, str]:
    """Make a reference absolute, its fragment apart; a base without a path keeps a fragment too."""
    if reference[:1] in ("", "#"):
        return base, reference[1:]
    try:
        joined = urljoin(base, reference)
    except ValueError:  # no URI at all: nothing has that name
        joined = reference
    target, _, fragment = joined.partition("#")
    return target, fragment


def _scheme(uri: str) -> str:
    found = _SCHEME.match(uri)
    return found[1].lower() if found else ""


@dataclass(frozen=True, slots=True)
class _Foreign:
    """A reference that leads out of its document: where it stands, and what it means."""

    document: Document
    pointer: str
    reference: str
    target: str


def _foreign(document: Document, index: Index) -> list[_Foreign]:
    return [
        _Foreign(document, f"{pointer}/$ref", reference, target)
        for pointer, base, reference in index.references
        for target in (resolve(base, reference)[0],)
        if target not in index.resources
    ]


Load = Callable[[str, Document, str], Document | None]
"""Read a file, given also the document and the pointer that lead to it; None: it cannot be had."""


def complete(library: Library, load: Load) -> Iterator[tuple[str, Rejected]]:
    """Bring in every file that the documents lead to; give each fault with the file it is in."""
    waiting: list[_Foreign] = []
    faults: list[tuple[str, Rejected]] = []
    known: set[str] = set()
    tried: set[str] = set()
    while fresh := [document for path, document in library.items() if path not in known]:
        known.update(document.path for document in fresh)
        for document in fresh:
            index = index_of(document)
            waiting += _foreign(document, index)
            faults += [(document.path, error) for error in repeats(document, index)]
        for find in (_named, path_of):  # a path beside is tried when nothing else brought more
            for one in waiting:
                path = find(one.target, one.reference, one.document, library)
                if path is not None and path not in library and path not in tried:
                    tried.add(path)
                    found = load(path, one.document, one.pointer)
                    if found is not None:
                        library[path] = found
            if len(library) > len(known):
                break
    for path, document in library.items():
        first = library.by_id.get(_identity(document), path)
        if first != path:
            words = f"the $id {document.schema['$id']!r} already belongs to {first}"
            yield path, _fault(document, "/$id", words, "schema.id")
    yield from faults
    for one in waiting:
        if path_of(one.target, one.reference, one.document, library) is None:
            yield one.document.path, unresolved(one.document, one.pointer, one.reference)


def links(document: Document, library: Library) -> dict[str, tuple[str, str]]:
    """Give the other files that a document refers to: path -> pointer and text of a reference."""
    paths: dict[str, tuple[str, str]] = {}
    for one in _foreign(document, index_of(document)):
        path = path_of(one.target, one.reference, document, library)
        if path is None:
            raise unresolved(document, one.pointer, one.reference)
        paths.setdefault(path, (one.pointer, one.reference))
    paths.pop(document.path, None)
    return paths


def _named(target: str, reference: str, document: Document, library: Library) -> str | None:
    """Turn an absolute URI into a file by its `$id`, or by its place if that is beyond doubt."""
    if _scheme(reference) == "file":
        return None
    if target in library.by_id:
        return library.by_id[target]
    if _scheme(target) != "file":
        return None
    beside = _beside(reference, document)
    return beside if beside.startswith("..") else unquote(target.removeprefix("file:")).lstrip("/")


def path_of(target: str, reference: str, document: Document, library: Library) -> str | None:
    """Turn an absolute URI into a file of the registry, by its `$id` or by its place."""
    found = _named(target, reference, document, library)
    if found is not None:
        return found
    plain = reference.partition("#")[0]
    is_path = plain and not _scheme(plain) and plain[0] != "/"
    return _beside(reference, document) if is_path else None


def _beside(reference: str, document: Document) -> str:
    plain = unquote(reference.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(document.path), plain))


_NOT_FOUND: Final = {
    "": ("points to nothing", ""),
    "file": (
        "names a file outside the registry, which is never read",
        "refer to a file of the registry by a relative path",
    ),
    "remote": (
        "is remote; remote schemas are never fetched",
        "copy the document into the registry folder and refer to its path",
    ),
}


def unresolved(document: Document, pointer: str, reference: str) -> Rejected:
    """Make the error for a reference, at this pointer, that points to nothing."""
    scheme = _scheme(reference)
    words, hint = _NOT_FOUND[scheme if scheme in _NOT_FOUND else "remote"]
    return _fault(document, pointer, f"$ref {reference!r} {words}", "schema.ref", hint)


def _fault(document: Document, pointer: str, words: str, code: str, hint: str = "") -> Rejected:
    place = f"{document.path}:{line_of(document.text, pointer)}"
    return Rejected(f"{place}: {words}", code=code, pointer=pointer, hint=hint)

"""`$ref` resolves inside the registry's folder and never over the network.

A reference is read against its base: the nearest `$id`, else the file it stands in. It may name
a place in the same document (`#/definitions/money`, `#anchor`), another file of the registry
(`common/money.json#/definitions/money`) or the `$id` of one. Anything else is rejected.

`bundle` gives one self-contained schema: foreign documents move under the definitions, and every
`$ref` becomes a pointer from the root. Validation, comparison and export all work on that.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urldefrag, urljoin, urlsplit

from tallystick.core.errors import Rejected
from tallystick.schemas.values import escape, line_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = [
    "DIALECTS",
    "Document",
    "Library",
    "Shape",
    "bundle",
    "children",
    "dialect_of",
    "find_pointer",
    "links",
    "reach",
]

DIALECTS: Final[dict[str, str]] = {
    "http://json-schema.org/draft-07/schema": "draft-07",
    "https://json-schema.org/draft-07/schema": "draft-07",
    "https://json-schema.org/draft/2019-09/schema": "2019-09",
    "https://json-schema.org/draft/2020-12/schema": "2020-12",
}

_FRAGMENT: Final = "/~!$&'()*+,;=:@?"
"""What may stand unescaped in a fragment (RFC 3986, section 3.5), beside letters and digits."""

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
    """Documents by their path; `by_id` finds them by the `$id` they declare."""

    def __init__(self, documents: Mapping[str, Document] | None = None) -> None:
        super().__init__()
        self.by_id: dict[str, str] = {}
        for path, document in (documents or {}).items():
            self[path] = document

    def __setitem__(self, path: str, document: Document) -> None:
        super().__setitem__(path, document)
        named = document.schema.get("$id") if isinstance(document.schema, dict) else None
        if isinstance(named, str):
            self.by_id.setdefault(urldefrag(named)[0], path)


def dialect_of(schema: Any, where: str = "the schema") -> str:
    """Name the dialect by `$schema`; draft-07 when it is silent."""
    if not isinstance(schema, dict) or "$schema" not in schema:
        return "draft-07"
    named = schema["$schema"]
    dialect = DIALECTS.get(named.rstrip("#")) if isinstance(named, str) else None
    if dialect is None:
        raise Rejected(
            f"{where}: unknown $schema {named!r}",
            code="schema.dialect",
            pointer="/$schema",
            hint="draft-07, 2019-09 and 2020-12 are read",
        )
    return dialect


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


def find_pointer(document: Any, pointer: str) -> Any:
    """Follow an RFC 6901 pointer; raise KeyError when it leads nowhere."""
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
class _Index:
    """Where everything in one document stands: bases, anchors, identifiers and references."""

    identifiers: Mapping[str, str]  # absolute URI -> pointer
    anchors: Mapping[tuple[str, str], str]  # (base, anchor) -> pointer
    resources: Mapping[str, str]  # base -> pointer of its resource root
    references: tuple[tuple[str, str, str, str], ...]  # (pointer, keyword, base, reference)


def _index(document: Document) -> _Index:
    base = f"file:///{document.path}"
    identifiers: dict[str, str] = {base: ""}
    anchors: dict[tuple[str, str], str] = {}
    resources: dict[str, str] = {base: ""}
    references: list[tuple[str, str, str, str]] = []
    old = dialect_of(document.schema, document.path) == "draft-07"
    stack: list[tuple[str, Any, str]] = [("", document.schema, base)]
    while stack:
        pointer, node, base = stack.pop()
        if not isinstance(node, dict):
            continue
        named = node.get("$id")
        if isinstance(named, str) and not (old and "$ref" in node):
            absolute, fragment = urldefrag(urljoin(base, named))
            if fragment and old:
                anchors[(base, fragment)] = pointer
            if not named.startswith("#"):
                base = absolute
                identifiers[absolute] = resources[absolute] = pointer
                if fragment:
                    anchors[(base, fragment)] = pointer
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(keyword), str):
                anchors[(base, node[keyword])] = pointer
        if isinstance(node.get("$ref"), str):
            references.append((pointer, "$ref", base, node["$ref"]))
        stack.extend((pointer + place, item, base) for place, item in children(node))
    return _Index(identifiers, anchors, resources, tuple(references))


def _is_plain(index: _Index) -> bool:
    """Tell whether every reference is already a pointer from the root of its document."""
    return len(index.resources) <= 2 and all(
        (ref.startswith("#/") or ref == "#") and "%" not in ref
        and index.resources.get(base) == ""
        for _, _, base, ref in index.references
    ) and all(pointer == "" for pointer in index.resources.values())  # fmt: skip


def reach(document: Document, known: Mapping[str, Document]) -> tuple[str, ...]:
    """Give the paths of the foreign files that a document refers to, in order."""
    return tuple(links(document, known))


def links(document: Document, known: Mapping[str, Document]) -> dict[str, str]:
    """Give each foreign file that a document refers to, with the pointer of the reference."""
    index = _index(document)
    places: dict[str, str] = {}
    for pointer, _, base, reference in index.references:
        target, _ = urldefrag(urljoin(base, reference))
        if target in index.resources:
            continue
        path = _path_of(target, reference, document, known)
        if path is None:
            raise _unresolved(document, pointer, reference)
        if path != document.path:
            places.setdefault(path, f"{pointer}/$ref")
    return places


def _path_of(
    target: str, reference: str, document: Document, known: Mapping[str, Document]
) -> str | None:
    """Turn an absolute URI into a file of the registry, by its `$id` or by its place."""
    if urlsplit(reference).scheme == "file":
        return None
    plain = unquote(urldefrag(reference)[0])
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(document.path), plain))
    if urlsplit(target).scheme == "file":
        return beside if beside.startswith("..") else unquote(urlsplit(target).path).lstrip("/")
    library = known if isinstance(known, Library) else Library(known)
    if target in library.by_id:
        return library.by_id[target]
    return beside if plain and not urlsplit(plain).scheme and plain[0] != "/" else None


_NOT_FOUND: Final = {
    "": ("leads nowhere", ""),
    "file": (
        "names a file of this machine and is never read",
        "refer to a file of the registry by its path from here",
    ),
    "remote": (
        "is remote and is never fetched",
        "copy the document into the registry's folder and refer to its path",
    ),
}


def _unresolved(document: Document, pointer: str, reference: str) -> Rejected:
    scheme = urlsplit(reference).scheme
    words, hint = _NOT_FOUND[scheme if scheme in _NOT_FOUND else "remote"]
    line = line_of(document.text, f"{pointer}/$ref")
    return Rejected(
        f"{document.path}:{line}: $ref {reference!r} {words}",
        code="schema.ref",
        pointer=f"{pointer}/$ref",
        hint=hint,
    )


def bundle(document: Document, known: Mapping[str, Document]) -> Any:
    """Give one self-contained schema; the same object when nothing needs to move."""
    index = _index(document)
    if _is_plain(index):
        for pointer, _, _, reference in index.references:
            try:
                find_pointer(document.schema, reference[1:])
            except KeyError:
                raise _unresolved(document, pointer, reference) from None
        return document.schema
    places: dict[str, str] = {document.path: ""}
    foreign: dict[str, Any] = {}
    keyword = "definitions" if dialect_of(document.schema, document.path) == "draft-07" else "$defs"
    held = document.schema.get(keyword, {}) if isinstance(document.schema, dict) else {}
    if not isinstance(held, dict):
        raise Rejected(
            f"{document.path}:{line_of(document.text, f'/{keyword}')}: {keyword} must be an object",
            code="schema.malformed",
            pointer=f"/{keyword}",
        )
    taken = set(held)
    queue = [document]
    indexes: dict[str, _Index] = {document.path: index}
    while queue:
        current = queue.pop()
        for path in reach(current, known):
            if path in places:
                continue
            other = known.get(path)
            if other is None:
                raise _unresolved(current, "", path)
            if isinstance(other.schema, dict) and "$schema" in other.schema and dialect_of(
                other.schema, path
            ) != dialect_of(document.schema, document.path):  # fmt: skip
                raise Rejected(
                    f"{path}: its dialect differs from that of {document.path}, which refers to it",
                    code="schema.dialect",
                    pointer="/$schema",
                )
            name = _free_name(path, taken)
            places[path] = f"/{keyword}/{escape(name)}"
            foreign[name] = other
            indexes[path] = _index(other)
            queue.append(other)

    def aim(owner: Document) -> Callable[[str], str]:
        own = indexes[owner.path]
        table = {pointer: (base, ref) for pointer, _, base, ref in own.references}

        def rewrite(pointer: str) -> str:
            base, reference = table[pointer]
            target, fragment = urldefrag(urljoin(base, reference))
            path, start = owner.path, own.resources.get(target)
            if start is None:
                found = _path_of(target, reference, owner, known)
                if found is None or found not in indexes:
                    raise _unresolved(owner, pointer, reference)
                path, start = found, ""
            spot = _spot(indexes[path], known.get(path, document), start, target, unquote(fragment))
            if spot is None:
                raise _unresolved(owner, pointer, reference)
            return "#" + quote(places[path] + spot, safe=_FRAGMENT)

        return rewrite

    root = _copy(document.schema, "", aim(document), keep_id=True)
    moved = {
        name: _copy(other.schema, "", aim(other), keep_id=False) for name, other in foreign.items()
    }
    if moved:
        root = {**root, keyword: {**root.get(keyword, {}), **moved}}
    return root


def _spot(index: _Index, document: Document, start: str, target: str, fragment: str) -> str | None:
    """Give the pointer inside a document that a fragment names, or None."""
    if not fragment or fragment.startswith("/"):
        try:
            find_pointer(document.schema, start + fragment)
        except KeyError:
            return None
        return start + fragment
    for base in (target, *(base for base, pointer in index.resources.items() if pointer == start)):
        if (base, fragment) in index.anchors:
            return index.anchors[(base, fragment)]
    return None


def _free_name(path: str, taken: set[str]) -> str:
    stem = posixpath.splitext(path)[0].replace("/", ".")
    name, count = stem, 2
    while name in taken:
        name, count = f"{stem}.{count}", count + 1
    taken.add(name)
    return name


def _copy(node: Any, pointer: str, rewrite: Callable[[str], str], *, keep_id: bool) -> Any:
    """Copy a schema, its references rewritten and its bases and anchors dropped."""
    if not isinstance(node, dict):
        return node
    out: dict[str, Any] = {}
    for keyword, value in node.items():
        shape = SUBSCHEMAS.get(keyword)
        place = f"{pointer}/{escape(keyword)}"
        if keyword == "$ref" and isinstance(value, str):
            out[keyword] = rewrite(pointer)
        elif keyword in ("$id", "$anchor") or (keyword == "$schema" and not keep_id):
            continue
        elif isinstance(value, dict) and shape in ("map", "map-or-names"):
            out[keyword] = {
                name: _copy(item, f"{place}/{escape(name)}", rewrite, keep_id=keep_id)
                for name, item in value.items()
            }
        elif isinstance(value, list) and shape in ("list", "one-or-list"):
            out[keyword] = [
                _copy(item, f"{place}/{at}", rewrite, keep_id=keep_id)
                for at, item in enumerate(value)
            ]
        elif shape in ("one", "one-or-list"):
            out[keyword] = _copy(value, place, rewrite, keep_id=keep_id)
        else:
            out[keyword] = value
    return out

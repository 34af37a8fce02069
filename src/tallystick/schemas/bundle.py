"""Bundle a schema and the files it refers to into one self-contained schema.

Other files move under the definitions, and every `$ref` becomes a pointer from the root.
Validation, comparison and export use the bundle. `home_of` leads back: from a place in the bundle
to the original file and the pointer inside it.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote

from tallystick.core.errors import Rejected
from tallystick.schemas.refs import (
    SUBSCHEMAS,
    Document,
    Index,
    Library,
    dialect_of,
    find_pointer,
    index_of,
    links,
    path_of,
    resolve,
    unresolved,
)
from tallystick.schemas.values import escape, line_of

__all__ = ["Bundle", "bundle"]

_FRAGMENT: Final = "/~!$&'()*+,;=:@?"
"""What may stand unescaped in a fragment (RFC 3986, section 3.5), beside letters and digits."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A self-contained schema; `homes` maps where a file was put to the path of that file."""

    schema: Any
    homes: Mapping[str, str]

    def home_of(self, pointer: str) -> tuple[str, str]:
        """Give the file and the pointer inside it; a pointer may pass through references."""
        place = self._follow(pointer)
        top = max((one for one in self.homes if f"{place}/".startswith(f"{one}/")), key=len)
        return self.homes[top], place[len(top) :]

    def _follow(self, pointer: str) -> str:
        """Turn a pointer that passes through references into the place where it ends."""
        place, node = "", self.schema
        for token in pointer.split("/")[1:]:
            name = token.replace("~1", "/").replace("~0", "~")
            for _ in range(50):
                if not isinstance(node, dict) or name in node or "$ref" not in node:
                    break
                place = unquote(str(node["$ref"])[1:])
                node = find_pointer(self.schema, place)
            try:
                node = find_pointer(node, f"/{token}")
            except KeyError:
                break
            place += f"/{token}"
        return place


def bundle(document: Document, known: Mapping[str, Document]) -> Bundle:
    """Bring in the files that a document refers to; without references, the schema is unchanged."""
    index = index_of(document)
    if _is_plain(index):
        for pointer, _, reference in index.references:
            try:
                find_pointer(document.schema, reference[1:])
            except KeyError:
                raise unresolved(document, f"{pointer}/$ref", reference) from None
        return Bundle(document.schema, {"": document.path})
    library = known if isinstance(known, Library) else Library(known)
    keyword = "definitions" if dialect_of(document.schema, document.path) == "draft-07" else "$defs"
    others = _gather(document, library)
    taken = _held(document, keyword)
    names = {path: _free_name(path, taken) for path in others}
    places = {document.path: ""} | {
        path: f"/{keyword}/{escape(name)}" for path, name in names.items()
    }
    owners = {document.path: document, **others}
    indexes = {path: index_of(owner) for path, owner in owners.items()}

    def aim(owner: Document) -> Callable[[str], str]:
        own = indexes[owner.path]
        table = {pointer: (base, reference) for pointer, base, reference in own.references}

        def rewrite(pointer: str) -> str:
            base, reference = table[pointer]
            target, fragment = resolve(base, reference)
            path, start = owner.path, own.resources.get(target)
            if start is None:
                path, start = path_of(target, reference, owner, library) or "", ""
            spot = (
                _spot(indexes[path], owners[path], start, target, unquote(fragment))
                if path in owners
                else None
            )
            if spot is None:
                raise unresolved(owner, f"{pointer}/$ref", reference)
            return "#" + quote(places[path] + spot, safe=_FRAGMENT)

        return rewrite

    root = _copy(document.schema, "", aim(document), keep_id=True)
    moved = {
        names[path]: _copy(other.schema, "", aim(other), keep_id=False)
        for path, other in others.items()
    }
    if moved:
        root = {**root, keyword: {**root.get(keyword, {}), **moved}}
    return Bundle(root, {place: path for path, place in places.items()})


def _is_plain(index: Index) -> bool:
    """Tell whether every reference is already a pointer from the root of its document."""
    return len(index.resources) <= 2 and all(
        (reference.startswith("#/") or reference == "#") and "%" not in reference
        and index.resources.get(base) == ""
        for _, base, reference in index.references
    ) and all(pointer == "" for pointer in index.resources.values())  # fmt: skip


def _gather(document: Document, library: Library) -> dict[str, Document]:
    """Give the other files that a document leads to, directly or not, by their paths."""
    found: dict[str, Document] = {}
    queue = [document]
    while queue:
        current = queue.pop()
        for path, (pointer, reference) in links(current, library).items():
            if path == document.path or path in found:
                continue
            other = library.get(path)
            if other is None:
                raise unresolved(current, pointer, reference)
            if isinstance(other.schema, dict) and "$schema" in other.schema and dialect_of(
                other.schema, path
            ) != dialect_of(document.schema, document.path):  # fmt: skip
                raise Rejected(
                    f"{path}:{line_of(other.text, '/$schema')}: "
                    f"the dialect differs from the one of {document.path}, which refers here",
                    code="schema.dialect",
                    pointer="/$schema",
                    hint="use the same $schema in both files",
                )
            found[path] = other
            queue.append(other)
    return found


def _held(document: Document, keyword: str) -> set[str]:
    """Give the names that are taken among the definitions."""
    held = document.schema.get(keyword, {}) if isinstance(document.schema, dict) else {}
    if not isinstance(held, dict):
        raise Rejected(
            f"{document.path}:{line_of(document.text, f'/{keyword}')}: {keyword} must be an object",
            code="schema.malformed",
            pointer=f"/{keyword}",
        )
    return set(held)


def _spot(index: Index, document: Document, start: str, target: str, fragment: str) -> str | None:
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

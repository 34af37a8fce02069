"""Check the registry itself: every fault in one pass, with file, line and pointer.

A schema is exact JSON, is valid against the metaschema of its dialect (`"type": "strnig"` is an
error), compiles, and its references resolve inside the folder. URNs are well formed and stay apart
under every derived name. The examples that the manifest names, and those at the root of a schema,
are valid. A valid but useless part is a warning: a keyword without meaning
(`tallystick.schemas.check_keywords`), a schema that no value can satisfy.

A faulty registry gives findings (law 2), also a manifest that is not JSON. If there is an
`ids.lock` beside the manifest, every URN has its own id in it.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, Final, Literal

from tallystick.core.errors import Rejected
from tallystick.core.extras import importing
from tallystick.schemas.catalog import MANIFEST, Catalog, Entry, parse_schema, read_manifest
from tallystick.schemas.check_keywords import find_idle
from tallystick.schemas.check_names import collisions, is_house_urn, is_urn
from tallystick.schemas.containment.aim import guess
from tallystick.schemas.containment.nodes import make_source
from tallystick.schemas.containment.search import make_space
from tallystick.schemas.ids import LOCK, read_lock
from tallystick.schemas.intricacy import MANY, is_circular
from tallystick.schemas.refs import (
    Document,
    Library,
    complete,
    dialect_of,
    links,
)
from tallystick.schemas.validate import (
    build_judge,
    compile_entry,
    is_envelope,
    judge_value,
    shape_of,
    urn_of,
)
from tallystick.schemas.values import escape, line_of, parse_json, pointer_of
from tallystick.schemas.witness import is_empty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tallystick.schemas.catalog import Read, Row
    from tallystick.schemas.validate import Checker, Judge

__all__ = ["Checked", "Fault", "check_registry"]

_METASCHEMAS: Final = {
    "draft-07": "http://json-schema.org/draft-07/schema#",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
}
_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_GUESSES: Final = 4
_EMPTY_STEPS: Final = 3_000
_EMPTY_TIME: Final = 0.2
"""Limit, in steps and seconds, of the proof that no value satisfies a schema."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: its place, its rule, and a message that says what to do."""

    file: str
    line: int
    pointer: str
    rule: str
    message: str
    urn: str = ""
    level: Literal["error", "warning"] = "error"


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check: the counts, and all faults in the order of the manifest."""

    urns: tuple[str, ...]
    files: int
    examples: int
    faults: tuple[Fault, ...]

    @property
    def errors(self) -> int:
        """The number of faults that are errors."""
        return sum(fault.level == "error" for fault in self.faults)


@dataclass(slots=True)
class _Run:
    """The state of one pass: what has been read, for which URN first, and what was found."""

    read: Read
    manifest: str
    documents: Library = field(default_factory=Library)
    urns: dict[str, str] = field(default_factory=dict)
    broken: set[str] = field(default_factory=set)
    checkers: dict[str, Checker] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def add(self, file: str, text: str, pointer: str, rule: str, message: str, urn: str) -> None:
        """Note a fault at a pointer of a text."""
        self.faults.append(Fault(file, line_of(text, pointer), pointer, rule, message, urn))


def check_registry(manifest_text: bytes, read: Read, manifest: str = MANIFEST) -> Checked:
    """Check the whole registry: the manifest, every schema, every example."""
    run = _Run(read, manifest)
    try:
        rows, broken = read_manifest(manifest_text, manifest)
    except Rejected as error:
        return Checked((), 0, 0, (_fault_of(error, manifest, "manifest"),))
    run.faults.extend(_fault_of(error, manifest, "manifest") for error in broken)
    run.faults.extend(_check_urns(rows, manifest))
    run.faults.extend(_check_lock(read, rows))
    _read_all(run, rows)
    catalog = Catalog(
        Path(), manifest, {row.urn: Entry(row.urn, row.path, None, "") for row in rows},
        run.documents,
    )  # fmt: skip
    for row in rows:
        if _is_whole(run, row.path):
            _check_entry(run, catalog, row)
    judge = replace(build_judge(catalog), checkers=run.checkers)
    examples = sum(_check_examples(run, row, judge) for row in rows)
    order = {row.urn: row.at for row in rows}
    faults = sorted(dict.fromkeys(run.faults), key=lambda fault: order.get(fault.urn, -1))
    return Checked(tuple(order), len(run.urns), examples, tuple(faults))


def _check_urns(rows: tuple[Row, ...], manifest: str) -> Iterator[Fault]:
    places = {row.urn: (row.line, f"/schemas/{row.at}/urn") for row in rows}
    for urn, (line, pointer) in places.items():
        if not is_urn(urn):
            message = (
                f"{urn!r} is not a URN: write urn:<namespace>:<name>, like urn:babel:orders:created"
            )
            yield Fault(manifest, line, pointer, "urn.form", message, urn)
        elif not is_house_urn(urn):
            message = f"{urn!r}: use only a-z, 0-9 and : . _ - in a URN"
            yield Fault(manifest, line, pointer, "urn.form", message, urn, "warning")
    for urn, earlier, naming, name in collisions(places):
        line, pointer = places[urn]
        message = f"{urn!r} collides with {earlier!r} (line {places[earlier][0]}): {naming} {name}"
        yield Fault(manifest, line, pointer, "urn.collision", message, urn)


def _check_lock(read: Read, rows: tuple[Row, ...]) -> Iterator[Fault]:
    """Judge `ids.lock`, where there is one, by the URNs of the manifest.

    A URN that left keeps its id, so an unknown one is worth a look and no more; a URN that has none
    would be given one by whoever serves first.
    """
    try:
        raw = read(LOCK)
    except FileNotFoundError:
        return
    except (OSError, Rejected) as error:
        yield Fault(LOCK, 1, "", "ids.lock", f"cannot read {LOCK}: {error}")
        return
    try:
        ids, faults = read_lock(raw)
    except Rejected as error:
        yield _fault_of(error, LOCK, "ids.lock")
        return
    yield from (_fault_of(error, LOCK, "ids.lock") for error in faults)
    known = {row.urn for row in rows}
    for urn in sorted(ids - known):
        pointer = f"/ids/{escape(urn)}"
        message = f"{urn!r} is not in the manifest; its id stays reserved"
        yield Fault(LOCK, line_of(raw.decode(), pointer), pointer, "ids.unknown", message, urn,
                    "warning")  # fmt: skip
    for urn in sorted(known - ids):
        message = f"{urn!r} has no id: run `tally schema serve --write-ids-lock` and commit {LOCK}"
        yield Fault(LOCK, 1, "/ids", "ids.missing", message, urn)


def _read_all(run: _Run, rows: tuple[Row, ...]) -> None:
    """Read the schema of every row and all they lead to, each file once."""
    for row in rows:
        if row.path not in run.urns:
            pointer = f"/schemas/{row.at}/schema"
            place = Fault(run.manifest, row.line, pointer, "", "", row.urn)
            document = _read_document(run, row.path, place)
            if document is not None:
                run.documents[row.path] = document

    def load(path: str, origin: Document, pointer: str) -> Document | None:
        line = line_of(origin.text, pointer)
        urn = run.urns[origin.path]
        return _read_document(run, path, Fault(origin.path, line, pointer, "", "", urn))

    for path, error in complete(run.documents, load):
        run.broken.add(path)
        run.faults.append(_fault_of(error, path, error.code, run.urns[path]))


def _read_document(run: _Run, path: str, place: Fault) -> Document | None:
    """Read and judge one file alone; `place` is what names it."""
    run.urns[path] = place.urn
    run.broken.add(path)
    if "\x00" in path or path.startswith(("../", "/")):
        message = f"{path!r} points outside the registry folder"
        run.faults.append(replace(place, rule="registry.path", message=message))
        return None
    try:
        raw = run.read(path)
        document = Document(path, parse_schema(raw, path), raw.decode())
    except OSError as error:
        message = f"cannot read {path}: {error.strerror}"
        run.faults.append(replace(place, rule="schema.missing", message=message))
        return None
    except Rejected as error:
        rule = error.code if error.code in ("registry.path", "schema.mixed") else "schema.json"
        run.faults.append(_fault_of(error, path, rule, place.urn))
        return None
    faults = [*_meta_faults(document, place.urn), *_idle_faults(document, place.urn)]
    run.faults.extend(faults)
    if all(fault.level != "error" for fault in faults):
        run.broken.discard(path)
    return document


def _is_whole(run: _Run, path: str) -> bool:
    """Tell whether a file and all it leads to can be worked with."""
    seen: set[str] = set()
    pending = [path]
    while pending:
        path = pending.pop()
        if path in run.broken:
            return False
        if path not in seen:
            seen.add(path)
            pending.extend(links(run.documents[path], run.documents))
    return True


def _meta_faults(document: Document, urn: str) -> Iterator[Fault]:
    """Judge a schema file by the metaschema of its dialect, every error once."""
    errors = _metaschema(dialect_of(document.schema, document.path))(document.schema)
    seen: set[tuple[str, str]] = set()
    for error in errors:
        pointer, message = pointer_of(error.instance_path), _meta_message(error)
        if (pointer, message) not in seen:
            seen.add((pointer, message))
            line = line_of(document.text, pointer)
            yield Fault(document.path, line, pointer, "schema.meta", message, urn)


def _idle_faults(document: Document, urn: str) -> Iterator[Fault]:
    """Warn about keywords without effect."""
    for pointer, rule, message in find_idle(document.schema, dialect_of(document.schema)):
        line = line_of(document.text, pointer)
        yield Fault(document.path, line, pointer, rule, message, urn, "warning")


@cache
def _metaschema(dialect: str) -> Callable[[Any], Iterator[Any]]:
    with importing("schemas"):
        import jsonschema_rs as rs  # noqa: PLC0415 - loads only when a schema is checked

    kinds = {
        "draft-07": rs.Draft7Validator,
        "2019-09": rs.Draft201909Validator,
        "2020-12": rs.Draft202012Validator,
    }
    return kinds[dialect]({"$ref": _METASCHEMAS[dialect]}, offline=True).iter_errors


def _meta_message(error: Any) -> str:
    where, value = error.instance_path, error.instance
    if where and where[-1] == "type" and isinstance(value, str) and value not in _TYPES:
        near = difflib.get_close_matches(value, _TYPES, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"the types are {', '.join(_TYPES)}"
        return f"{value!r} is not a type: {hint}"
    if error.kind.name == "anyOf":
        return "; or ".join(dict.fromkeys(one.message for branch in error.kind.context
                                          for one in branch))  # fmt: skip
    return str(error.message)


def _check_entry(run: _Run, catalog: Catalog, row: Row) -> None:
    """Bring in what the schema of an entry refers to, compile it, try its own examples."""
    document = run.documents[row.path]
    try:
        held, checker = compile_entry(catalog, row.urn)
    except Rejected as error:
        rule = "schema.ref" if error.code == "schema.ref" else "schema.compile"
        run.faults.append(_fault_of(error, row.path, rule, row.urn))
        return
    run.checkers[row.urn] = checker
    run.faults.extend(_shape_faults(held.schema, checker, row))
    own = document.schema.get("examples") if isinstance(document.schema, dict) else None
    for at, example in enumerate(own if isinstance(own, list) else ()):
        try:
            for violation in checker.violations(example):
                pointer = f"/examples/{at}{violation.pointer}"
                run.add(row.path, document.text, pointer, "example", violation.message, row.urn)
        except Rejected as error:
            run.add(row.path, document.text, f"/examples/{at}", error.code, str(error), row.urn)
            return


def _shape_faults(schema: Any, checker: Checker, row: Row) -> Iterator[Fault]:
    """Warn about a valid but useless schema: circular, too slow, or impossible to satisfy.

    Impossible means that this is proven.
    """
    shape = shape_of(checker)
    if is_circular(schema):
        message = "a reference refers to itself at the same place, so it checks nothing"
        yield Fault(row.path, 1, "", "schema.circular", message, row.urn, "warning")
    elif shape is None and _is_unsatisfiable(schema, checker):
        message = "no value can satisfy this schema: its rules exclude each other"
        yield Fault(row.path, 1, "", "schema.empty", message, row.urn, "warning")
    if shape is not None and shape.ways > MANY:
        message = (
            f"one place of a message may be checked {shape.ways} times, because references multiply"
        )
        yield Fault(row.path, 1, "", "schema.intricate", message, row.urn, "warning")


def _is_unsatisfiable(schema: Any, checker: Checker) -> bool:
    """Tell whether nothing conforms; the proof is asked only when no guess does."""
    try:
        if any(checker.is_valid(value) for value in guess(schema, _GUESSES)):
            return False
    except Rejected:  # it takes too long to judge one: that is told apart
        return False
    space = make_space(_EMPTY_STEPS, process_time, process_time() + _EMPTY_TIME)
    return is_empty(space, [schema], make_source(schema))


def _check_examples(run: _Run, row: Row, judge: Judge) -> int:
    for path in row.examples if row.urn in run.checkers else ():
        try:
            raw = run.read(path)
            message = parse_json(raw, path)
        except OSError as error:
            text = f"cannot read {path}: {error.strerror}"
            run.faults.append(Fault(run.manifest, row.line, "", "example.missing", text, row.urn))
            continue
        except Rejected as error:
            run.faults.append(_fault_of(error, path, "example", row.urn))
            continue
        bare = not is_envelope(message)
        text = raw.decode()
        if not bare and urn_of(message) != row.urn:
            said = f"the message has the URN {urn_of(message)!r}, the manifest says {row.urn!r}"
            run.add(path, text, "/job" if "job" in message else "/urn", "example", said, row.urn)
            continue
        try:
            found = judge_value(replace(judge, urn=row.urn if bare else None), message, path)
        except Rejected as error:
            run.add(path, text, "", error.code, str(error), row.urn)
            continue
        for one in found.violations:
            run.add(path, text, one.pointer, "example", one.message, row.urn)
    return len(row.examples)


def _fault_of(error: Rejected, file: str, rule: str, urn: str = "") -> Fault:
    """Make a fault of an error whose message may begin with `file:line: `."""
    head, _, rest = error.message.partition(": ")
    place, _, line = head.rpartition(":")
    if line.isdecimal() and place:
        return Fault(place, int(line), error.pointer or "", rule, rest, urn)
    return Fault(file, 1, error.pointer or "", rule, error.message, urn)

"""Check the standard itself: a wrong suite would give wrong verdicts.

Checked: every file is strict JSON; the manifest has a version and announces each section; what a
case names exists, and what exists is named; each case has a clause and something to expect, each
clause a case; fixtures fit the envelope schema unless their case says `producer_schema_valid:
false`, and then they do not; vectors are well-formed and listed. Every fault is a `Problem`.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from tallystick.core.errors import Rejected
from tallystick.core.extras import importing
from tallystick.core.scan import scan
from tallystick.suites.compare import parse
from tallystick.suites.judge import STEPS
from tallystick.suites.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tallystick.core.verdict import Case

__all__ = ["MANIFEST", "SCHEMA", "SUITE", "Checked", "Problem", "check_standard"]

MANIFEST: Final = "manifest.json"
SCHEMA: Final = "schema/message-envelope.schema.json"
SUITE: Final = "tallystick"
"""The suite name in our manifest; a copy is recognized by it."""

_ABOUT: Final = frozenset(
    {"schema_version", "conformance_version", "suite", "description", "sections", "clauses"}
)
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+")
_WHOLE_EXPECT: Final = frozenset({"urn", "attempts", "lang", "schema_version"})


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault of the suite: the file, the place in it, what is wrong."""

    path: str
    place: str
    fault: str


@dataclass(frozen=True, slots=True)
class Checked:
    """The result: the version, the counts, and every problem."""

    version: str
    files: int
    fixtures: int
    vectors: int
    cases: int
    clauses: int
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Standard:
    """The files as values; a file that is no JSON is left out and is a problem already."""

    manifest: dict[str, Any]
    documents: dict[str, Any]
    cases: tuple[Case, ...]
    raw_cases: tuple[tuple[str, dict[str, Any]], ...]


def check_standard(paths: Sequence[str], read: Callable[[str], bytes]) -> Checked:
    """Check the files of a standard."""
    problems: list[Problem] = []
    documents: dict[str, Any] = {}
    for path in paths:
        try:
            documents[path] = parse(read(path))
        except ValueError as error:
            problems.append(Problem(path, "", f"is not strict JSON: {error}"))
    manifest = documents.get(MANIFEST)
    if not isinstance(manifest, dict) or not isinstance(manifest.get("sections"), dict):
        problems.append(Problem(MANIFEST, "", "is missing, or has no `sections`"))
        return Checked("", len(paths), 0, 0, 0, 0, tuple(problems))
    cases: tuple[Case, ...] = ()
    try:
        cases = load("standard", read).cases
    except Rejected as rejection:
        problems.append(Problem(MANIFEST, "", rejection.message))
    except OSError as error:
        problems.append(
            Problem(MANIFEST, "", f"names a file that does not exist: {error.filename}")
        )
    standard = _Standard(manifest, documents, cases, tuple(_raw_cases(manifest)))
    for check in _CHECKS:
        problems.extend(check(standard))
    themes = [path for path in documents if path.startswith("bytes/")]
    return Checked(
        version=str(manifest.get("conformance_version", "")),
        files=len(paths),
        fixtures=sum(path.startswith("fixtures/") for path in paths),
        vectors=sum(len(documents[path].get("vectors", ())) for path in themes),
        cases=len(cases),
        clauses=len(manifest.get("clauses", {})),
        problems=tuple(problems),
    )


def _raw_cases(manifest: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each case as it is written, with its place in the manifest."""
    waiting: list[tuple[str, Any]] = [
        (f"/{section}", manifest.get(section)) for section in manifest["sections"]
    ]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, list):
            yield from ((f"{place}/{n}", one) for n, one in enumerate(value) if type(one) is dict)
        elif isinstance(value, dict) and "clause" in value:
            yield place, value
        elif isinstance(value, dict):
            inner = ((name, each) for name, each in value.items() if name != "incoming_bodies")
            waiting.extend((f"{place}/{name}", each) for name, each in inner)


def _check_manifest(standard: _Standard) -> Iterator[Problem]:
    manifest = standard.manifest
    if manifest.get("schema_version") != 1:
        yield Problem(MANIFEST, "/schema_version", "must be 1")
    if not _VERSION.fullmatch(str(manifest.get("conformance_version", ""))):
        yield Problem(MANIFEST, "/conformance_version", "must have the form 1.2.3")
    if manifest.get("suite") != SUITE:
        yield Problem(MANIFEST, "/suite", f"must be {SUITE!r}")
    for name in manifest["sections"].keys() - manifest.keys():
        yield Problem(MANIFEST, f"/sections/{name}", "is listed in `sections` but missing")
    for name in manifest.keys() - manifest["sections"].keys() - _ABOUT:
        yield Problem(MANIFEST, f"/{name}", "is not listed in `sections`")


def _check_clauses(standard: _Standard) -> Iterator[Problem]:
    clauses = standard.manifest.get("clauses", {})
    used = Counter(str(case.get("clause", "")) for _, case in standard.raw_cases)
    for place, case in standard.raw_cases:
        if case.get("clause") not in clauses:
            yield Problem(MANIFEST, place, f"names an unknown clause: {case.get('clause')!r}")
    for clause in clauses.keys() - used.keys():
        yield Problem(MANIFEST, f"/clauses/{clause}", "has no case that checks it")


def _check_expectations(standard: _Standard) -> Iterator[Problem]:
    for case in standard.cases:
        expects = case.expect[STEPS] if case.operation == STEPS else [case.expect]
        if not expects or not all(expects):
            yield Problem(MANIFEST, case.name, "has a call without expectations")
    for case in standard.manifest.get("cases", ()):
        lacking = _WHOLE_EXPECT - case.get("expect", {}).keys()
        if case.get("valid") and lacking:
            place = f"/cases/{case.get('name')}"
            yield Problem(MANIFEST, place, f"does not expect {', '.join(sorted(lacking))}")


def _named_files(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _named_files(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name == "file" or name.endswith("_file"):
                yield str(item)
            else:
                yield from _named_files(item)


def _check_files(standard: _Standard) -> Iterator[Problem]:
    named = frozenset(_named_files(standard.manifest))
    there = frozenset(
        path for path in standard.documents if path.startswith(("fixtures/", "bytes/"))
    )
    for path in sorted(named - standard.documents.keys()):
        yield Problem(path, "", "is named by a case, but missing")
    for path in sorted(there - named):
        yield Problem(path, "", "is not named by any case")


def _check_fixtures(standard: _Standard) -> Iterator[Problem]:
    if SCHEMA not in standard.documents:
        yield Problem(SCHEMA, "", "is missing")
        return
    is_valid = _validator(standard.documents[SCHEMA])
    said: dict[str, set[bool]] = {}
    for _, case in standard.raw_cases:
        if "file" in case:
            said.setdefault(case["file"], set()).add(case.get("producer_schema_valid", True))
    for path, document in standard.documents.items():
        fits = is_valid(document) if path.startswith("fixtures/") else None
        if fits is False and False not in said.get(path, ()):
            yield Problem(
                path, "", "breaks the envelope schema, but its cases say that it is valid"
            )
        elif fits and False in said.get(path, ()):
            yield Problem(
                path, "", "matches the envelope schema, but a case says that it is invalid"
            )


def _validator(schema: Any) -> Callable[[Any], bool]:
    with importing("schemas"):
        import jsonschema_rs  # noqa: PLC0415 (heavy, and only this check needs it)
    jsonschema_rs.meta.validate(schema)
    made = jsonschema_rs.validator_for(schema, formats={"uuid": _is_uuid}, validate_formats=True)
    is_valid: Callable[[Any], bool] = made.is_valid
    return is_valid


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


def _check_vectors(standard: _Standard) -> Iterator[Problem]:
    blocks = standard.manifest.get("bytes", {})
    for theme, block in blocks.items():
        if not isinstance(block, dict):
            continue
        path = block.get("file", "")
        vectors = standard.documents.get(path, {}).get("vectors", [])
        listed = [(case["name"], case["clause"]) for case in block["cases"]]
        found = [(one.get("name"), one.get("clause")) for one in vectors]
        if path != f"bytes/{theme}.json":
            yield Problem(MANIFEST, f"/bytes/{theme}/file", f"must be bytes/{theme}.json")
        if listed != found:
            yield Problem(MANIFEST, f"/bytes/{theme}", f"must list the same vectors as {path}")
        for index, one in enumerate(vectors):
            yield from (Problem(path, f"/vectors/{index}", fault) for fault in _vector_faults(one))


def _vector_faults(vector: dict[str, Any]) -> Iterator[str]:
    if len(vector.keys() & {"input", "input_base64"}) != 1:
        yield "needs either `input` or `input_base64`"
    if len(vector.keys() & {"expect", "rejected"}) != 1:
        yield "needs either `expect` or `rejected`"
    unknown = vector.keys() - {"name", "clause", "input", "input_base64", "expect", "rejected"}
    if unknown:
        yield f"has unknown members: {', '.join(sorted(unknown))}"
    if "input_base64" in vector and not _is_base64(vector["input_base64"]):
        yield "has an `input_base64` that is not standard padded base64"
    rejection = vector.get("rejected", {"code": "none"})
    if not rejection.get("code") or rejection.keys() - {"code", "pointer"}:
        yield "has a rejection that is not a code with an optional pointer"
    if "expect" in vector:
        try:
            scan(vector["expect"].encode())
        except Rejected as rejection:
            yield f"expects a text that is not a message: {rejection}"


def _is_base64(text: str) -> bool:
    try:
        return base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
    except (binascii.Error, ValueError):
        return False


_CHECKS: Final = (
    _check_manifest,
    _check_clauses,
    _check_expectations,
    _check_files,
    _check_fixtures,
    _check_vectors,
)

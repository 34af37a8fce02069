"""Judge messages against the catalog: every violation, with its place and what was expected.

A message is an envelope (the URN in `job`, else in `urn`; the payload in `data`) or, when the
caller names the URN, the bare payload; an envelope given for it is judged by its `data`. The whole
of JSON Schema holds, in the schema's own dialect. `format` asserts where the dialect says so
(draft-07) and annotates elsewhere, unless told otherwise. References never reach the network.

Patterns cannot run away. They are matched without backtracking, in a time that the text's length
and the compiled pattern's size bound; where both are large, under the limit of time. A schema that
needs look-around or a back reference is left to a second engine, which gives up after a bounded
number of steps; the message is then refused, not passed (`docs/decisions/two-regex-engines.md`). A
schema whose references multiply (`tallystick.schemas.intricacy`) is applied under the limit of time
(`tallystick.schemas.guard`).

A message that cannot be read, or that names no known URN, is a finding too (law 2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from tallystick.core.errors import Rejected
from tallystick.core.extras import importing
from tallystick.schemas.catalog import Catalog, bundled, locate
from tallystick.schemas.fast import compile_fast
from tallystick.schemas.guard import work_within
from tallystick.schemas.intricacy import MANY, Intricacy, measure
from tallystick.schemas.patterns import BYTES, find_malformed, is_long, weigh
from tallystick.schemas.refs import dialect_of
from tallystick.schemas.subset import find_violation
from tallystick.schemas.values import parse_json, pointer_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jsonschema_rs import ValidationError

    from tallystick.schemas.bundle import Bundle

__all__ = [
    "ASSERTED",
    "Checker",
    "Finding",
    "Formats",
    "Judge",
    "Outcome",
    "Violation",
    "build_judge",
    "compile_entry",
    "compile_schema",
    "compile_subset",
    "is_envelope",
    "is_wrapped",
    "judge_bytes",
    "judge_value",
    "shape_of",
    "urn_of",
]

Formats = Literal["dialect", "assert", "annotate"]
ASSERTED: Final[dict[Formats, bool | None]] = {"dialect": None, "assert": True, "annotate": False}
"""Whether `format` can fail a message; None: as the dialect says."""
Outcome = Literal["ok", "invalid", "unknown", "unreadable"]
_BACKTRACK_LIMIT: Final = 100_000
_HINT: Final = "`tally schema check` names the keyword and suggests a correction"
_ABSENT: Final = object()
_LARGE_PATTERN: Final = (
    "a pattern has a large repetition and the text is long: lower the count, or set maxLength"
)
_SHALLOW: Final = 8
"""A document of so many levels is judged in good time by a schema that grows with depth."""


class Violation(NamedTuple):
    """One broken rule: where, which keyword, what it wanted and what stood there."""

    pointer: str
    keyword: str
    expected: Any
    found: Any
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What is to be said about one message; `line` counts from 1 in a stream, 0 in a file."""

    source: str
    line: int
    urn: str
    outcome: Outcome
    violations: tuple[Violation, ...] = ()


class Checker(Protocol):
    """A compiled schema."""

    def is_valid(self, instance: Any) -> bool:
        """Tell whether a value conforms."""

    def violations(self, instance: Any) -> Iterator[Violation]:
        """Give every broken rule."""


@dataclass(frozen=True, slots=True)
class _Compiled:
    """jsonschema-rs behind the two questions we ask."""

    is_valid: Callable[[Any], bool]
    iter_errors: Callable[[Any], Iterator[ValidationError]]

    def violations(self, instance: Any) -> Iterator[Violation]:
        """Give every broken rule, its place written as a JSON pointer."""
        return map(_violation, self.iter_errors(instance))


@dataclass(frozen=True, slots=True)
class _Guarded:
    """A schema of many references or large patterns: what may take for ever a child process does.

    `weight` is that of its patterns.
    """

    inner: _Compiled
    shape: Intricacy
    weight: int
    name: str = "the schema"

    def is_valid(self, instance: Any) -> bool:
        """Tell whether a value conforms; a shallow one is asked outright if depth is the risk."""
        if is_long(instance, self.weight):
            work = partial(self.inner.is_valid, instance)
            return bool(work_within(work, self.name, hint=_LARGE_PATTERN))
        if self.shape.is_plain or (self.shape.ways <= MANY and not _is_deep(instance)):
            return self.inner.is_valid(instance)
        return bool(work_within(lambda: self.inner.is_valid(instance), self.name))

    def violations(self, instance: Any) -> Iterator[Violation]:
        """Give every broken rule, or say that they are too many to be told."""
        if self.shape.is_plain and not is_long(instance, self.weight):
            yield from self.inner.violations(instance)
            return
        try:
            yield from work_within(lambda: list(self.inner.violations(instance)), self.name)
        except Rejected:
            if not self.is_valid(instance):
                reason = "rejected; too many reasons to list"
                yield Violation("", "schema", None, None, reason)


def _is_deep(value: Any) -> bool:
    """Tell whether a value is nested deeper than `_SHALLOW`, without following it to the end."""
    level = [value]
    for _ in range(_SHALLOW):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def compile_schema(schema: Any, *, formats: Formats = "dialect") -> Checker:
    """Compile a self-contained schema, or raise `Rejected` saying where it is malformed."""
    with importing("schemas"):
        import jsonschema_rs as rs  # noqa: PLC0415 - loads only when a schema is used

    kinds = {
        "draft-07": rs.Draft7Validator,
        "2019-09": rs.Draft201909Validator,
        "2020-12": rs.Draft202012Validator,
    }
    dialect = dialect_of(schema)
    malformed = find_malformed(schema)
    if malformed is not None:
        raise _malformed(*malformed)
    compile_with = partial(kinds[dialect], schema, offline=True, validate_formats=ASSERTED[formats])
    try:
        try:
            compiled = compile_with(pattern_options=rs.RegexOptions(size_limit=BYTES))
        except (rs.ValidationError, ValueError):  # it knows no look-ahead; the other finds too much
            look_ahead = rs.FancyRegexOptions(backtrack_limit=_BACKTRACK_LIMIT, size_limit=BYTES)
            compiled = compile_with(pattern_options=look_ahead)
    except rs.ValidationError as error:
        raise _malformed(pointer_of(error.instance_path), error.message) from error
    except rs.ReferencingError as error:
        raise Rejected(
            f"a reference of the schema points to nothing: {error}", code="schema.ref", hint=_HINT
        ) from error
    except ValueError as error:
        raise Rejected(
            f"the schema cannot be compiled: {error}", code="schema.malformed", hint=_HINT
        ) from error
    shape, weight = measure(schema), weigh(schema)
    checker = _Compiled(compiled.is_valid, compiled.iter_errors)
    return checker if shape.is_plain and not weight else _Guarded(checker, shape, weight)


def _malformed(pointer: str, words: str) -> Rejected:
    return Rejected(
        f"the schema is malformed: {words}", code="schema.malformed", pointer=pointer, hint=_HINT
    )


def compile_entry(
    catalog: Catalog, urn: str, compile_with: Callable[[Any], Checker] = compile_schema
) -> tuple[Bundle, Checker]:
    """Bring in what the schema of a URN refers to, and compile it.

    A malformed one is `Rejected` with the file that is to blame, its line and the pointer in it.
    """
    held = bundled(catalog, urn)
    try:
        return held, compile_with(held.schema)
    except Rejected as error:
        place = locate(catalog, held, error.pointer or "")
        raise Rejected(
            f"{place.file}:{place.line}: {error.message}",
            code=error.code,
            pointer=place.pointer,
            hint=error.hint,
        ) from error


def shape_of(checker: Checker) -> Intricacy | None:
    """Give the shape of a schema that is not plain; None of one that is."""
    shape = checker.shape if isinstance(checker, _Guarded) else None
    return None if shape is None or shape.is_plain else shape


@dataclass(frozen=True, slots=True)
class _Subset:
    """The small subset of draft-07 that every SDK checks, behind the same two questions."""

    schema: Any

    def is_valid(self, instance: Any) -> bool:
        """Tell whether the subset finds nothing."""
        return find_violation(self.schema, instance) is None

    def violations(self, instance: Any) -> Iterator[Violation]:
        """Give the first violation; the subset stops there."""
        found = find_violation(self.schema, instance)
        if found is not None:
            path, _, code = found.rpartition(": ")
            steps = [] if path == "<root>" else re.split(r"\.|\[|\]\.?", path.removesuffix("]"))
            yield Violation(pointer_of([*steps]), code, None, None, f"{path}: {code}")


def compile_subset(schema: Any) -> Checker:
    """Take a schema by the subset: what is outside it is not judged."""
    return _Subset(schema)


_EXPECTED: Final[dict[str, str]] = {
    "required": "property", "type": "types", "const": "expected_value", "enum": "options",
    "pattern": "pattern", "format": "format", "multipleOf": "multiple_of", "not": "schema",
    "maximum": "limit", "minimum": "limit", "exclusiveMaximum": "limit",
    "exclusiveMinimum": "limit", "maxLength": "limit", "minLength": "limit", "maxItems": "limit",
    "minItems": "limit", "maxProperties": "limit", "minProperties": "limit",
}  # fmt: skip


def _violation(error: ValidationError) -> Violation:
    kind = error.kind
    expected: Any = getattr(kind, _EXPECTED.get(kind.name, ""), None)
    found: Any = error.instance
    if kind.name == "required":
        found = None
    elif kind.name in ("additionalProperties", "unevaluatedProperties"):
        expected, found = "no other members", kind.value
    return Violation(pointer_of(error.instance_path), kind.name, expected, found, error.message)


@dataclass(frozen=True, slots=True)
class Judge:
    """The rules of one run: the catalog, how it is compiled, and the URN of bare payloads.

    `quick` holds the yes-or-no question of every schema compiled so far, for tight loops; `types`
    the msgspec type of those that `make_type` can say, None of the others.
    """

    catalog: Catalog
    compile: Callable[[Any], Checker]
    urn: str | None = None
    checkers: dict[str, Checker] = field(default_factory=dict)
    quick: dict[Any, Callable[[Any], bool]] = field(default_factory=dict)
    types: dict[str, Any] = field(default_factory=dict)
    make_type: Callable[[Any], Any] = lambda _: None

    def checker(self, urn: str) -> Checker | None:
        """Give the compiled schema of a URN, or None when the catalog has none."""
        known = self.checkers.get(urn)
        if known is None and urn in self.catalog.entries:
            held, known = compile_entry(self.catalog, urn, self.compile)
            schema = held.schema
            if isinstance(known, _Guarded):
                known = replace(known, name=self.catalog.entries[urn].path)
            self.checkers[urn] = known
            self.quick[urn] = known.is_valid
            self.types[urn] = self.make_type(schema)
        return known


def build_judge(
    catalog: Catalog,
    *,
    urn: str | None = None,
    formats: Formats = "dialect",
    compile_with: Callable[[Any], Checker] | None = None,
) -> Judge:
    """Make a judge; schemas are compiled when the first message needs them."""
    if compile_with is not None:
        return Judge(catalog, compile_with, urn)

    def make_type(schema: Any) -> Any:
        fast = compile_fast(schema, formats=ASSERTED[formats])
        return fast and fast.type

    return Judge(
        catalog,
        lambda schema: compile_schema(schema, formats=formats),
        urn,
        make_type=make_type,
    )


def judge_bytes(judge: Judge, raw: bytes, source: str, line: int = 0) -> Finding:
    """Read one message exactly and judge it."""
    try:
        message = parse_json(raw, source)
    except Rejected as error:
        reason = error.message.removeprefix(f"{source}:")
        violation = Violation(error.pointer or "", "json", "exact JSON", None, reason)
        return Finding(source, line, judge.urn or "", "unreadable", (violation,))
    return judge_value(judge, message, source, line)


def judge_value(judge: Judge, message: Any, source: str, line: int = 0) -> Finding:
    """Judge one message that has been read."""
    urn, payload, prefix = judge.urn, message, ""
    if urn is None:
        if not isinstance(message, dict):
            violation = Violation("", "type", "object", message, "a message must be an object")
            return Finding(source, line, "", "unreadable", (violation,))
        urn, payload, prefix = urn_of(message), message.get("data", _ABSENT), "/data"
    elif is_wrapped(message, urn):
        own, payload, prefix = urn_of(message), message["data"], "/data"
        if own != urn:
            words = f"expected data of {urn!r}, found an envelope of {own!r}: use its own URN"
            other = Violation(
                "/job" if message.get("job") == own else "/urn", "urn", urn, own, words
            )
            return Finding(source, line, urn, "invalid", (other,))
    checker = judge.checker(urn)
    if checker is None:
        return Finding(source, line, urn, "unknown")
    if payload is _ABSENT:
        absent = Violation("", "required", "data", None, "the envelope has no `data`")
        return Finding(source, line, urn, "invalid", (absent,))
    if checker.is_valid(payload):
        return Finding(source, line, urn, "ok")
    violations = sorted(
        (one._replace(pointer=prefix + one.pointer) for one in checker.violations(payload)),
        key=_order,
    )
    return Finding(source, line, urn, "invalid", tuple(violations))


def _order(violation: Violation) -> tuple[str, str, str]:
    return violation.pointer, violation.keyword, violation.message


def is_envelope(message: Any) -> bool:
    """Tell an envelope (an identity and a `data` member) from a bare payload."""
    return isinstance(message, dict) and "data" in message and bool(urn_of(message))


def is_wrapped(message: Any, urn: str) -> bool:
    """Tell whether what should be the bare data of a URN came in an envelope, its own or another.

    Data may have members of these names: what names another URN needs `meta` to be an envelope.
    """
    return is_envelope(message) and (
        urn_of(message) == urn or isinstance(message.get("meta"), dict)
    )


def urn_of(message: dict[str, Any]) -> str:
    """Give the URN of an envelope: `job` when it is a non-empty string, else `urn`, else empty."""
    for name in ("job", "urn"):
        value = message.get(name)
        if isinstance(value, str) and value:
            return value
    return ""

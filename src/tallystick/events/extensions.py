"""Extension attributes whose type is known before an event is read.

Most formats have fewer types than an event: JSON writes a Timestamp as a string. A declared
extension gives the type of the string, and may add its own rule. Without a declaration an
extension has the type that the format shows.

    orders = declare(extension("attempt", Kind.INTEGER, lambda n: n > 0, "positive"))
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from tallystick.core.errors import Refused, UsageError
from tallystick.events.grammar import is_name
from tallystick.events.timestamp import Timestamp
from tallystick.events.values import Kind, Value, check, kind_of, parse

__all__ = [
    "CONSTRAINED",
    "DOCUMENTED",
    "NONE",
    "SAMPLES",
    "Extension",
    "Extensions",
    "declare",
    "extension",
    "fit",
    "parse_declaration",
]


@dataclass(frozen=True, slots=True)
class Extension:
    """A declared extension attribute: its name, its type, and perhaps a rule on the value."""

    name: str
    kind: Kind
    holds: Callable[[Any], bool] | None = None
    rule: str = ""


Extensions = Mapping[str, Extension]
NONE: Final[Extensions] = MappingProxyType({})


def extension(
    name: str, kind: Kind, holds: Callable[[Any], bool] | None = None, rule: str = ""
) -> Extension:
    """Describe one extension; `rule` says in words what `holds` checks."""
    if not is_name(name):
        raise UsageError(
            f"{name!r} is not a valid attribute name",
            code="bad_extension_name",
            hint="use only a to z and 0 to 9",
        )
    return Extension(name, kind, holds, rule)


def declare(*extensions: Extension) -> Extensions:
    """Collect declarations; a name may be declared once."""
    table = {each.name: each for each in extensions}
    if len(table) != len(extensions):
        raise UsageError("an extension is declared twice", code="declared_twice")
    return MappingProxyType(table)


def parse_declaration(text: str) -> Extension:
    """Read `name=Type`, as the command line takes it; the type's case does not matter."""
    name, _, kind = text.partition("=")
    kinds = {each.value.lower(): each for each in Kind}
    if kind.lower() not in kinds:
        raise UsageError(
            f"{text!r} is not an extension declaration",
            code="bad_declaration",
            hint=f"write name=type; the type is one of: {', '.join(Kind)}",
        )
    return extension(name, kinds[kind.lower()])


def fit(known: Extension, value: Value, spelled: Container[Kind] = ()) -> Value:
    """Convert a value to its declared type and check the rule; raise `Refused` if it does not fit.

    `spelled` are the kinds that a format writes as strings: only for those a string is read as
    the declared type. A type that the format shows must be the declared one.
    """
    if kind_of(value) is not known.kind:
        if type(value) is not str or known.kind not in spelled:
            raise Refused(
                f"{known.name} is declared as {known.kind}, found {kind_of(value)}",
                code="conflicting_type",
            )
        value = parse(known.kind, value)
    fault = check(value)
    if fault:
        raise Refused(fault, code="bad_value")
    if known.holds is not None and not known.holds(value):
        raise Refused(f"{known.name} must be {known.rule}", code="constraint")
    return value


_MODERN: Final = Timestamp("2000-01-01T00:00:00Z").nanoseconds

SAMPLES: Final = declare(
    extension("extinteger", Kind.INTEGER),
    extension("extboolean", Kind.BOOLEAN),
    extension("extstring", Kind.STRING),
    extension("extbinary", Kind.BINARY),
    extension("exttimestamp", Kind.TIMESTAMP),
    extension("exturi", Kind.URI),
    extension("exturiref", Kind.URI_REFERENCE),
)
"""The sample extension attributes of the conformance document."""

CONSTRAINED: Final = declare(
    extension("posinteger", Kind.INTEGER, lambda n: n > 0, "greater than zero"),
    extension("shortstring", Kind.STRING, lambda s: len(s) <= 5, "at most 5 characters"),
    extension("shortbinary", Kind.BINARY, lambda b: len(b) <= 5, "at most 5 bytes"),
    extension(
        "moderntimestamp",
        Kind.TIMESTAMP,
        lambda t: t.nanoseconds >= _MODERN,
        "at or after 2000-01-01T00:00:00Z",
    ),
)
"""The constrained sample extension attributes of the conformance document."""

DOCUMENTED: Final = declare(
    extension("authtype", Kind.STRING),
    extension("authid", Kind.STRING),
    extension("authclaims", Kind.STRING),
    extension("causationid", Kind.STRING),
    extension("correlationid", Kind.STRING),
    extension("dataref", Kind.URI_REFERENCE),
    extension("expirytime", Kind.TIMESTAMP),
    extension("partitionkey", Kind.STRING, lambda s: s != "", "not empty"),
    extension("recordedtime", Kind.TIMESTAMP),
    extension("sampledrate", Kind.INTEGER, lambda n: n > 0, "greater than zero"),
    extension("sequence", Kind.STRING, lambda s: s != "", "not empty"),
    extension("severitytext", Kind.STRING, lambda s: s != "", "not empty"),
    extension("severitynumber", Kind.INTEGER),
    extension("traceparent", Kind.STRING, lambda s: s != "", "not empty"),
    extension("tracestate", Kind.STRING),
)
"""Extensions that the CloudEvents project documents, for those who want them typed."""

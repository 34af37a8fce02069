"""Validate messages against a catalog, before they are published and before a handler runs.

    App(url, catalog="registry.json", validate="publish,handle", on_unknown_schema="allow")

`publish` refuses a message that does not match its schema, and sends nothing. A received message
that does not match goes to the dead-letter queue at once and never to a handler. A URN without a
schema is allowed, or refused in the same way (`on_unknown_schema`). A violation is reported with
its pointer and keyword, never with the value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tallystick.core.envelope import Envelope
from tallystick.core.errors import Refused, UsageError
from tallystick.schemas.catalog import Catalog, load_catalog, self_contained
from tallystick.schemas.validate import Judge, build_judge, judge_value

__all__ = ["Breach", "Contracts", "find_breach", "open_contracts", "refuse_breach"]

_MOMENTS: Final = ("publish", "handle")
_UNKNOWN: Final = ("allow", "refuse")


@dataclass(frozen=True, slots=True)
class Contracts:
    """A catalog, when to validate, and how to treat a URN without a schema."""

    judge: Judge = field(repr=False)
    moments: tuple[str, ...]
    refuses_unknown: bool
    schemas: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Breach:
    """Where a payload breaks its schema: the pointer, and the keyword (`unknown`: no schema)."""

    pointer: str
    keyword: str

    def __str__(self) -> str:
        if self.keyword == "unknown":
            return "the catalog has no schema for this URN"
        return (
            f"the payload does not match its schema: {self.keyword} at {self.pointer or 'the root'}"
        )

    @property
    def note(self) -> str:
        """The text for a log line: a pointer holds member names, which may be personal."""
        return (
            str(self)
            if self.keyword == "unknown"
            else f"does not match its schema ({self.keyword})"
        )


def open_contracts(
    catalog: str | Path | Catalog | None, validate: str | None, on_unknown_schema: str
) -> Contracts | None:
    """Load a catalog and compile its schemas, or raise an error; None without a catalog."""
    moments = tuple(
        one.strip()
        for one in (",".join(_MOMENTS) if validate is None else validate).split(",")
        if one.strip()
    )
    for given, known, what in (
        (moments, _MOMENTS, "validate"),
        ((on_unknown_schema,), _UNKNOWN, "on_unknown_schema"),
    ):
        for one in given:
            if one not in known:
                raise UsageError(
                    f"{what}: unknown value {one!r}", code="setting", hint=f"use {', '.join(known)}"
                )
    if catalog is None:
        if validate:
            raise UsageError("validation needs a catalog", code="setting")
        return None
    loaded = catalog if isinstance(catalog, Catalog) else load_catalog(Path(catalog))
    judge = build_judge(loaded)
    if moments:
        _compile(judge)
    schemas = {urn: self_contained(loaded, urn) for urn in loaded.entries}
    return Contracts(judge, moments, on_unknown_schema == "refuse", schemas)


def _compile(judge: Judge) -> None:
    for urn in judge.catalog.entries:
        judge.checker(urn)


def find_breach(
    contracts: Contracts | None, moment: str, urn: str, data: Mapping[str, Any] | None
) -> Breach | None:
    """Find the first violation of a payload, if validation is on at this moment."""
    if contracts is None or moment not in contracts.moments:
        return None
    message = {"job": urn} if data is None else {"job": urn, "data": data}
    finding = judge_value(contracts.judge, message, "")
    if finding.outcome == "unknown":
        return Breach("/job", "unknown") if contracts.refuses_unknown else None
    if finding.outcome == "ok":
        return None
    first = finding.violations[0]
    return Breach(first.pointer, first.keyword)


def refuse_breach(contracts: Contracts | None, envelope: Envelope) -> None:
    """Raise `Refused` for a message that may not be published."""
    if contracts is None:
        return
    breach = find_breach(contracts, "publish", envelope.urn, envelope.data)
    if breach is not None:
        raise Refused(
            f"{envelope.urn}: {breach}",
            code=f"schema.{breach.keyword}",
            pointer=breach.pointer,
            hint="nothing was sent; `tally schema validate` shows the details",
        )

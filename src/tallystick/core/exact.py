"""The exact decoder: it checks the whole text, the type of every occurrence, and the identity.

Clauses: message envelope, sections 2.2 (decode) and 2.7 (poison classification); ADR-0031 and
ADR-0032. The fast decoder in `envelope` must always agree with this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tallystick.core.canonical import pointer_to
from tallystick.core.errors import Rejected
from tallystick.core.scan import Member, load, scan

__all__ = [
    "ASCII_SPACE",
    "FORBIDDEN",
    "FORBIDDEN_META",
    "TYPED",
    "Judged",
    "Notice",
    "judge",
]

ASCII_SPACE: Final = " \t\n\v\f\r"
"""The only characters that count as white space; a no-break space is an ordinary character."""

FORBIDDEN: Final = ("timestamp",)
FORBIDDEN_META: Final = ("max_retries", "attempts", "source", "ts")

TYPED: Final[dict[tuple[str, ...], str]] = {
    ("trace_id",): "string",
    ("data",): "object",
    ("meta",): "object",
    ("attempts",): "int64",
    ("dead_letter",): "object",
    ("meta", "id"): "string",
    ("meta", "queue"): "string",
    ("meta", "lang"): "string",
    ("meta", "schema_version"): "int64",
    ("meta", "created_at"): "int64",
    ("dead_letter", "reason"): "string",
    ("dead_letter", "error"): "string",
    ("dead_letter", "exception"): "string",
    ("dead_letter", "failed_at"): "int64",
    ("dead_letter", "original_queue"): "string",
    ("dead_letter", "attempts"): "int64",
    ("dead_letter", "lang"): "string",
}
"""The typed members; each may also be null. `job` and `urn` follow the identity rule instead."""

_WITH_ARTICLE: Final = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "number": "a number",
    "int64": "a 64-bit integer",
}
_INT64: Final = 2**63
_DIGITS: Final = b"0123456789"


@dataclass(frozen=True, slots=True)
class Notice:
    """A deviation that the reader tolerated, and its place: a dropped or ignored member."""

    pointer: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The content of a valid body: its identity, typed scalars, and members that are objects."""

    job: str
    scalars: Mapping[tuple[str, ...], Any]
    objects: frozenset[str]
    notices: tuple[Notice, ...]

    @property
    def values(self) -> dict[str, Any]:
        """The typed scalars of the top level."""
        return {path[0]: value for path, value in self.scalars.items() if len(path) == 1}

    def part(self, name: str) -> dict[str, Any] | None:
        """Give the typed scalars inside `meta` or `dead_letter`; None if that is not an object."""
        if name not in self.objects:
            return None
        return {path[1]: value for path, value in self.scalars.items() if path[:-1] == (name,)}


def judge(body: bytes) -> Judged:
    """Read a body by every rule of the contract, or raise `Rejected` at the first fault.

    The range of numbers inside `data` is judged when the data is read (`Envelope.document`).
    """
    if body.strip(b" \t\n\r") == b"null":
        raise _without_identity()
    members = scan(body, finite=False)
    for member in members:
        _check_type(body, member)
    last = {member.path: member for member in members}  # the last duplicate wins
    last = {path: member for path, member in last.items() if _is_current(member, last)}
    job, notices = _identity(body, last)
    return Judged(
        job=job,
        scalars={
            path: load(body[member.value : member.end])
            for path, member in last.items()
            if path in TYPED and TYPED[path] != "object"
        },
        objects=frozenset(p[0] for p, m in last.items() if len(p) == 1 and m.kind == "object"),
        notices=(*notices, *_forbidden(last)),
    )


def _is_current(member: Member, last: Mapping[tuple[str, ...], Member]) -> bool:
    """Tell whether a nested member is in the last duplicate of its parent."""
    if len(member.path) == 1:
        return True
    parent = last[member.path[:1]]
    return parent.value < member.start < parent.end


def _check_type(body: bytes, member: Member) -> None:
    wanted = TYPED.get(member.path)
    if wanted is None or member.kind in (wanted, "null"):
        return
    found = _WITH_ARTICLE.get(member.kind, member.kind)
    if wanted == "int64" and member.kind == "number":
        literal = body[member.value : member.end]
        if literal.strip(b"-" + _DIGITS):
            found = "a number with a fraction or an exponent"
        elif len(literal) <= 20 and -_INT64 <= int(literal) < _INT64:
            return
        else:
            found = "an integer of more than 64 bits"
    raise Rejected(
        f"`{'.'.join(member.path)}` must be {_WITH_ARTICLE[wanted]}, found {found}",
        code="wrong_type",
        pointer=pointer_to(member.path),
        offset=member.value,
    )


def _identity(
    body: bytes, last: Mapping[tuple[str, ...], Member]
) -> tuple[str, tuple[Notice, ...]]:
    """Resolve `job` and `urn`: a valid `job` wins, else a valid `urn`, else there is none."""
    job, urn = last.get(("job",)), last.get(("urn",))
    job_text, urn_text = _text(body, job), _text(body, urn)
    if job_text:
        dropped = Notice("/urn", "alias_dropped", "`urn` is ignored, because `job` is present")
        return job_text, (dropped,) if urn else ()
    if not urn_text:
        raise _without_identity()
    if job and job.kind != "string":
        message = (
            f"`job` is ignored: it must be a string, found {_WITH_ARTICLE.get(job.kind, job.kind)}"
        )
        return urn_text, (Notice("/job", "job_not_a_string", message),)
    return urn_text, ()


def _text(body: bytes, member: Member | None) -> str:
    """Give a string member that is not blank, else an empty text."""
    if member is None or member.kind != "string":
        return ""
    text: str = load(body[member.value : member.end])
    return text if text.strip(ASCII_SPACE) else ""


def _without_identity() -> Rejected:
    return Rejected(
        "`job` is missing or blank, and so is its alias `urn`",
        code="no_identity",
        pointer="/job",
        hint="set `job` to the URN of the message, for example urn:babel:orders:created",
    )


def _forbidden(last: Mapping[tuple[str, ...], Member]) -> tuple[Notice, ...]:
    paths = [(name,) for name in FORBIDDEN] + [("meta", name) for name in FORBIDDEN_META]
    return tuple(
        Notice(
            pointer_to(path), "forbidden_dropped", f"`{path[-1]}` is forbidden here and is dropped"
        )
        for path in paths
        if path in last
    )

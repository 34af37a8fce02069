"""Check one candidate schema: is it valid, is it registered, is it compatible.

Untrusted bytes are parsed, compiled and compared here, so this runs in a worker process
(`tallystick.server.worker`) that is killed when it takes too long. Request bodies are Confluent's:
`{"schema": "<text>", "schemaType": "JSON"}`; a missing `schemaType` means JSON, the only type here.

A candidate takes the place of the registered file: its `$ref` may name the files that the
registered schema reaches and the shared files of the registry. Nothing is ever fetched.
"""

from __future__ import annotations

import json
import time
from typing import Any, Final

import msgspec

from tallystick.core.errors import Rejected
from tallystick.schemas.bundle import bundle
from tallystick.schemas.catalog import parse_schema
from tallystick.schemas.refs import Document
from tallystick.schemas.validate import compile_schema
from tallystick.schemas.values import parse_json, same

__all__ = ["Difference", "Job", "Report", "examine"]

_WEIGHT: Final = {"compatible": 0, "unknown": 1, "breaking": 2}
_NONE: Final = ("NONE",)
_STEPS: Final = 15_000
"""Limit of proof steps for one mode, so that two modes fit the time of one request."""
_HASTE: Final = 1.6
"""The comparison clock runs faster by this factor, so that it ends before the request."""


class Job(msgspec.Struct, frozen=True):
    """The job of a worker; `registered` is empty if the subject is unknown."""

    body: bytes
    modes: tuple[str, ...]
    path: str
    registered: tuple[str, ...] = ()
    documents: dict[str, str] = {}
    compare: bool = True


class Difference(msgspec.Struct, frozen=True):
    """One change: its pointer, its rule, its effect, and a message."""

    pointer: str
    rule: str
    effect: str
    message: str


class Report(msgspec.Struct, frozen=True):
    """The result of a worker: `fault` is an error of the candidate, `defect` an error of ours.

    Without either, `identical` tells whether it equals the registered schema. `witness` is a JSON
    text: `backward` means that the registered schema accepts it and the candidate rejects it,
    `forward` the opposite. `reason` explains an unknown verdict.
    """

    fault: str = ""
    defect: str = ""
    identical: bool = False
    verdict: str = ""
    changes: tuple[Difference, ...] = ()
    witness: str = ""
    direction: str = ""
    reason: str = ""


def examine(job: Job) -> Report:
    """Do the whole work of one request; only a lack of memory or stack raises an error."""
    try:
        candidate = _read_candidate(_read_body(job.body), job)
    except Rejected as error:
        words = str(error).replace(f"{job.path}:", "schema:", 1)
        return Report(fault=f"{words}; {error.hint}" if error.hint else words)
    registered = [parse_json(one.encode(), job.path) for one in job.registered]
    if any(same(candidate, one) for one in registered):
        return Report(identical=True, verdict="compatible")
    if not registered or not job.compare:
        return Report(verdict="compatible" if not registered else "")
    return _compare(registered[0], candidate, job.modes)


def _read_body(body: bytes) -> str:
    request = parse_json(body, "body")
    if not isinstance(request, dict) or not isinstance(request.get("schema"), str):
        raise Rejected(
            'Invalid request: expected a JSON body with a "schema" string', code="request.shape"
        )
    if not request["schema"].strip():
        raise Rejected("Empty schema", code="request.shape")
    if request.get("references") not in (None, []):
        raise Rejected(
            "`references` must be empty: a $ref must name a file of the registry",
            code="request.references",
        )
    if request.get("schemaType") not in (None, "JSON"):
        raise Rejected(
            f"Invalid schema type {request['schemaType']}",
            code="request.type",
            hint="this registry holds only JSON Schema (`JSON`)",
        )
    text: str = request["schema"]
    return text


def _read_candidate(text: str, job: Job) -> Any:
    """Read the candidate, bring in its references, and compile it as a test."""
    raw = text.encode()
    document = Document(job.path, parse_schema(raw, "schema"), text)
    known = {
        path: Document(path, parse_json(held.encode(), path), held)
        for path, held in job.documents.items()
    }
    schema = bundle(document, known).schema
    compile_schema(schema)
    return schema


def _compare(registered: Any, candidate: Any, modes: tuple[str, ...]) -> Report:
    """Compare in every mode and give the worst verdict: breaking, then unknown, then compatible."""
    from tallystick.schemas.compat import compare_bundled  # noqa: PLC0415 - loads when needed

    def clock() -> float:
        return time.process_time() * _HASTE * len(modes)

    found = [
        compare_bundled(registered, candidate, mode, budget=_STEPS, clock=clock)
        for mode in modes or _NONE
    ]
    worst = max(found, key=lambda one: _WEIGHT[one.verdict])
    return Report(
        verdict=worst.verdict,
        changes=tuple(
            Difference(one.pointer, one.rule, one.effect, one.message) for one in worst.changes
        ),
        witness=json.dumps(worst.witness, ensure_ascii=False) if worst.has_witness else "",
        direction=worst.direction,
        reason=worst.reason,
    )

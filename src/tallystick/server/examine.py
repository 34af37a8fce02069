"""Examine one candidate schema: whether it can be read, is registered, breaks anyone.

This is where hostile bytes are parsed, compiled and compared, so it runs in a worker process
(`tallystick.server.worker`) that is killed when it takes too long. Request bodies are Confluent's:
`{"schema": "<text>", "schemaType": "JSON"}`; a missing `schemaType` means JSON, the only type here.

A candidate stands where the registered file stands: its `$ref` may name the files that the
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
"""Steps of proof for one mode, so that two modes fit the time of one request."""
_HASTE: Final = 1.6
"""How much faster than time the clock of a comparison runs, so that it ends before the request."""


class Job(msgspec.Struct, frozen=True):
    """What a worker is given; `registered` is empty when the subject is unknown."""

    body: bytes
    modes: tuple[str, ...]
    path: str
    registered: tuple[str, ...] = ()
    documents: dict[str, str] = {}
    compare: bool = True


class Difference(msgspec.Struct, frozen=True):
    """One change: where, by which rule, what it does to whom, in words."""

    pointer: str
    rule: str
    effect: str
    message: str


class Report(msgspec.Struct, frozen=True):
    """What a worker found: `fault` says why the candidate cannot be read, `defect` why we failed.

    Without either, `identical` tells whether it equals the registered schema. `witness` is a JSON
    text: going `backward`, the registered schema accepts it and the candidate refuses it; going
    `forward`, the other way round. `reason` explains an unknown.
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
    """Do the whole work of one request; raise nothing but what the machine runs out of."""
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
            "Schema references are not served: a $ref names a file of the registry",
            code="request.references",
        )
    if request.get("schemaType") not in (None, "JSON"):
        raise Rejected(
            f"Invalid schema type {request['schemaType']}",
            code="request.type",
            hint="this registry serves JSON",
        )
    text: str = request["schema"]
    return text


def _read_candidate(text: str, job: Job) -> Any:
    """Give the candidate without foreign references, known to compile."""
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
    """Compare in every mode: a break counts more than a doubt, a doubt more than a proof."""
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

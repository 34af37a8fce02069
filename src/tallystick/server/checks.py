"""The operations that check a candidate schema: lookup, register, compatibility, compare.

A verdict of `unknown` counts as not compatible: a change must be proven
compatible. Verbose messages keep Confluent's shape, one text for each fact, and add the witness: a
message that shows the break.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tallystick.server.answers import JSON, Answer, Fault, give
from tallystick.server.examine import Difference, Job, Report
from tallystick.server.levels import modes_of
from tallystick.server.pool import Busy
from tallystick.server.reads import Call, Service, find_subject, is_latest, read_version

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tallystick.server.snapshot import Subject

__all__ = ["CHECKS"]

_SIDES: Final = {
    "backward": "{witnessAcceptedBy: 'old', witnessRefusedBy: 'new'}",
    "forward": "{witnessAcceptedBy: 'new', witnessRefusedBy: 'old'}",
}
_SHOWN: Final = 10 * 1024
"""A longer registered schema is cut in a message, as Confluent does."""


async def _examine(
    service: Service, call: Call, subject: Subject | None, *, compare: bool = True
) -> Report:
    job = _job(service, subject, call.body, compare=compare)
    try:
        report = await service.pool.examine(job)
    except Busy:
        raise Fault(429) from None
    service.metrics.verdicts["rejected" if report.fault else report.verdict or "looked up"] += 1
    if report.fault:
        raise Fault(42201, report.fault)
    return report


def _job(service: Service, subject: Subject | None, body: bytes, *, compare: bool) -> Job:
    modes = modes_of(service.level, service.rules)
    if subject is None:
        return Job(body, modes, "candidate.json", compare=compare)
    known = service.snapshot.catalog.documents
    documents = {path: known[path].text for path in subject.reaches}
    documents.update(service.snapshot.shared)
    return Job(body, modes, subject.entry.path, (subject.text,), documents, compare=compare)


async def _lookup(service: Service, call: Call) -> Answer:
    subject = find_subject(service, call)
    if (await _examine(service, call, subject, compare=False)).identical:
        found = {"subject": subject.urn, "version": 1, "id": subject.id, "guid": subject.guid,
                 "schemaType": "JSON", "schema": subject.text}  # fmt: skip
        return give(found)
    raise Fault(40403, "")


async def _register(service: Service, call: Call) -> Answer:
    """Give the id of a registered schema, so that serializers with default settings work."""
    subject = service.snapshot.subjects.get(call.path["subject"])
    report = await _examine(service, call, subject, compare=False)
    if subject is not None and report.identical:
        return give({"id": subject.id, "guid": subject.guid})
    raise Fault(42205)


async def _compatibility(service: Service, call: Call) -> Answer:
    """Check against one version; for an unknown subject every schema is compatible (Confluent)."""
    subject = service.snapshot.subjects.get(call.path["subject"])
    number = read_version(call.path["version"])
    if number != 1 or (subject is None and not is_latest(call.path["version"])):
        raise Fault(40402, number)
    return await _judge(service, call, subject)


async def _compatibility_all(service: Service, call: Call) -> Answer:
    return await _judge(service, call, service.snapshot.subjects.get(call.path["subject"]))


async def _judge(service: Service, call: Call, subject: Subject | None) -> Answer:
    report = await _examine(service, call, subject)
    answer: dict[str, Any] = {"is_compatible": report.verdict == "compatible"}
    if call.query["verbose"]:
        messages = _messages(report, subject, service.level)
        if messages:
            answer["messages"] = messages
    return give(answer)


def _messages(report: Report, subject: Subject | None, level: str) -> list[str]:
    if subject is None or report.verdict == "compatible":
        return []
    messages = [_message(one) for one in report.changes if one.effect != "compatible"]
    if report.verdict == "unknown":
        words = f"The check found neither a proof nor a breaking message: {report.reason}"
        messages.append(f'{{errorType:"UNKNOWN", description:"{words}"}}')
    if report.witness:
        messages += [f"{{witness: '{report.witness}'}}", _SIDES[report.direction]]
    cut = len(subject.text) > _SHOWN
    shown = f"<truncated> '{subject.text[:_SHOWN]}...'" if cut else f"'{subject.text}'"
    return [
        *messages,
        "{oldSchemaVersion: 1}",
        f"{{oldSchema: {shown}}}",
        f"{{validateFields: 'false', compatibility: '{level}'}}",
    ]


def _message(change: Difference) -> str:
    words = f"{change.message} at path '#{change.pointer}'"
    kind = change.rule.upper().replace("-", "_")
    return f'{{errorType:"{kind}", description:"{words}"}}'


async def _compare(service: Service, call: Call) -> Answer:
    report = await _examine(service, call, find_subject(service, call))
    return give(
        {
            "verdict": report.verdict,
            "level": service.level,
            "identical": report.identical,
            "changes": [
                {
                    "pointer": one.pointer,
                    "rule": one.rule,
                    "effect": one.effect,
                    "message": one.message,
                }
                for one in report.changes
            ],
            "witness": report.witness,
            "direction": report.direction,
            "reason": report.reason,
        },
        kind=JSON,
    )


CHECKS: Final[dict[str, Callable[[Service, Call], Awaitable[Answer]]]] = {
    "lookup": _lookup,
    "register": _register,
    "compatibility": _compatibility,
    "compatibility_all": _compatibility_all,
    "compare": _compare,
}
"""The operations that send a body to a worker."""

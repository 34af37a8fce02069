"""Compare sent and received messages one by one (IOP-38, 41, 44 to 60).

Lost, duplicated, unexpected, reordered and altered messages are listed by number, not only counted.
A digest ties every list to the bytes. Reports are checked: counts must match the lists, the digest
of a sender must match the bytes that it had to send, and the digest of a receiver must match the
bytes that it reports.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from tallystick.core.verdict import Difference, Outcome
from tallystick.lab.control import Control, Role
from tallystick.lab.instance import BROKEN, Evidence, Finding, Instance, Part, broken_by
from tallystick.lab.payload import digest_of, make_body, read_runs, write_runs

__all__ = ["NOTHING_CLOSED", "conclude", "judge_circuit", "judge_trouble", "look_at_message_lists"]

NOTHING_CLOSED: Final = (None, "")
_KINDS: Final = (
    "lost", "duplicated", "unexpected", "reordered", "altered", "late", "count", "digest",
    "returned", "closed", "error", "sent", "properties", "headers", "attempts", "redelivered",
)  # fmt: skip


def judge_circuit(instance: Instance, evidence: Evidence) -> Finding:
    """Judge test cases 1 to 5 and every circuit."""
    try:
        return conclude([*judge_trouble(instance, evidence), *_judge(instance, evidence)])
    except BROKEN as error:
        return broken_by(error)


def conclude(differences: Sequence[Difference]) -> Finding:
    """Turn differences into a finding: the reason counts them by kind."""
    if not differences:
        return Finding(Outcome.PASSED)
    kinds = [one.pointer.rsplit("/", 1)[1] for one in differences]
    late = [one for one in differences if one.pointer.endswith("/late")]
    if late and all(kind == "late" for kind in kinds):
        return Finding(Outcome.ERRORED, "messages were still in transit", tuple(differences))
    reason = ", ".join(
        f"{_size(kind, differences)} {kind}" if kind in _KINDS[:6] else kind
        for kind in _KINDS
        if kind in kinds
    )
    return Finding(Outcome.FAILED, reason, tuple(differences))


def _size(kind: str, differences: Sequence[Difference]) -> int:
    found = [one.found for one in differences if one.pointer.endswith(f"/{kind}")]
    return sum(len(one) if isinstance(one, list) else len(read_runs(str(one))) for one in found)


def judge_trouble(instance: Instance, evidence: Evidence) -> Iterator[Difference]:
    """Find parts that were closed by the broker or broke."""
    for number, part in enumerate(instance.parts):
        report = evidence.reports[number].body
        where = _where(number, part)
        if report["closed"] is not None:
            yield Difference(f"{where}/closed", None, report["closed"])
        if report["error"]:
            yield Difference(f"{where}/error", "", report["error"])


def _where(number: int, part: Part) -> str:
    return f"/{number}/{part.role.lower()}"


def _judge(instance: Instance, evidence: Evidence) -> Iterator[Difference]:
    total = instance.messages * evidence.batches
    streams: list[tuple[int, Mapping[str, Any]]] = []
    for number, part in enumerate(instance.parts):
        report = evidence.reports[number]
        if part.role is Role.SENDER:
            yield from _judge_sender(number, part, report, total)
        else:
            streams += [(number, stream) for stream in report.body["streams"]]
            yield from _judge_receiver(number, part, report)
    for number, part in enumerate(instance.parts):
        if part.role is Role.SENDER:
            yield from look_at_message_lists(instance, evidence, number, streams, total)
    yield from _strangers(instance, evidence, streams)


def _judge_sender(number: int, part: Part, report: Control, total: int) -> Iterator[Difference]:
    where, body = _where(number, part), part.body
    sent = [read_runs(text) for text in report.body["sent"]]
    publishers = body.get("num_publishers", 1)
    wanted = [list(range(total))] * publishers
    if sent != wanted:
        found = [write_runs(one) for one in sent]
        yield Difference(f"{where}/sent", [write_runs(one) for one in wanted], found)
    if report.fields["MESSAGE_COUNT"] != total * publishers:
        yield Difference(f"{where}/count", total * publishers, report.fields["MESSAGE_COUNT"])
    if report.body["returned"]:
        yield Difference(f"{where}/returned", [], report.body["returned"])
    if body.get("check", "hash") == "hash" and body.get("pattern") != "none":
        digests = [_digest(body, one) for one in sent]
        if report.body["digests"] != digests:
            yield Difference(f"{where}/digest", digests, report.body["digests"])


def _digest(body: Mapping[str, Any], sequences: Sequence[int]) -> str:
    return digest_of(body.get("seed", 1), body.get("message_bytes", 0), sequences)


def _judge_receiver(number: int, part: Part, report: Control) -> Iterator[Difference]:
    where = _where(number, part)
    listed = sum(len(read_runs(one["received"])) for one in report.body["streams"])
    listed += len(report.body["unexpected"])
    if report.fields["MESSAGE_COUNT"] != listed:
        yield Difference(f"{where}/count", listed, report.fields["MESSAGE_COUNT"])
    if report.body["unexpected"]:
        yield Difference(f"{where}/unexpected", [], report.body["unexpected"])
    for stream in report.body["streams"]:
        inside = f"{where}/{stream['consumer']}/{stream['publisher']}"
        if stream["altered"]:
            yield Difference(f"{inside}/altered", [], stream["altered"])
        if part.body.get("check", "hash") == "hash" and stream["digest"] != _told(part, stream):
            yield Difference(f"{inside}/digest", _told(part, stream), stream["digest"])


def _told(part: Part, stream: Mapping[str, Any]) -> str:
    """Return the digest of the messages that the receiver reports."""
    sequences = read_runs(stream["received"])
    altered: dict[int, list[str]] = {}
    for sequence, _, _, digest in stream["altered"]:
        altered.setdefault(sequence, []).append(digest)
    if not altered:
        return _digest(part.body, sequences)
    seed, size = part.body.get("seed", 1), part.body.get("message_bytes", 0)
    made = hashlib.sha256()
    for sequence in sequences:
        told = altered.get(sequence)
        if told:
            made.update(bytes.fromhex(told.pop(0)))
        else:
            made.update(hashlib.sha256(make_body(seed, sequence, size)).digest())
    return made.hexdigest()


def look_at_message_lists(
    instance: Instance,
    evidence: Evidence,
    sender: int,
    streams: Sequence[tuple[int, Mapping[str, Any]]],
    total: int,
) -> Iterator[Difference]:
    """Compare the messages of one sender with those that its receivers list, by consumer."""
    part, report = instance.parts[sender], evidence.reports[sender]
    mine = [
        (number, stream)
        for number, stream in streams
        if stream["sender"] == part.client
        and stream["correlation_id"] == report.fields.get("CORRELATION_ID")
    ]
    places = len(part.body.get("destinations", ())) or 1
    shared = part.body.get("pattern") == "p2p"
    left = _left(instance, evidence)
    for publisher in range(part.body.get("num_publishers", 1)):
        for pointer, destination, found in _heaps(instance, sender, mine, publisher, shared=shared):
            wanted = [i for i in range(total) if (publisher + i) % places == destination]
            yield from _compare(f"{pointer}/{publisher}", wanted, found, left)


def _heaps(
    instance: Instance,
    sender: int,
    streams: Sequence[tuple[int, Mapping[str, Any]]],
    publisher: int,
    *,
    shared: bool,
) -> Iterator[tuple[str, int, list[list[int]]]]:
    """Return the groups to compare: the consumers of one queue, or one subscriber."""
    heaps: dict[tuple[int, int, int], list[list[int]]] = {}
    for number, part in enumerate(instance.parts):
        if part.role is Role.SENDER or not _same_circuit(instance, sender, number):
            continue
        for consumer in part.body.get("consumers", ()):
            place, index = consumer["destination"], consumer["index"]
            key = (-1, place, place) if shared else (number, place, index)
            heaps.setdefault(key, []).extend(
                read_runs(stream["received"])
                for at, stream in streams
                if (at, stream["consumer"], stream["publisher"]) == (number, index, publisher)
            )
    for (number, place, index), found in heaps.items():
        owner = (
            f"/queue/{place}" if number < 0 else f"{_where(number, instance.parts[number])}/{index}"
        )
        yield owner, place, found


def _same_circuit(instance: Instance, sender: int, receiver: int) -> bool:
    return bool(
        instance.parts[sender].body.get("circuit", 0)
        == instance.parts[receiver].body.get("circuit", 0)
    )


def _compare(
    pointer: str, wanted: Sequence[int], found: Sequence[list[int]], left: int
) -> Iterator[Difference]:
    everything = [number for run in found for number in run]
    seen = set(everything)
    lost = [number for number in wanted if number not in seen]
    if lost:
        kind = "late" if len(lost) <= left else "lost"
        yield Difference(f"{pointer}/{kind}", "", write_runs(lost))
    twice = sorted(number for number, times in Counter(everything).items() if times > 1)
    if twice:
        yield Difference(f"{pointer}/duplicated", "", write_runs(twice))
    strange = sorted(seen - set(wanted))
    if strange:
        yield Difference(f"{pointer}/unexpected", "", write_runs(strange))
    behind = [number for run in found for number in _behind(run)]
    if behind:
        yield Difference(f"{pointer}/reordered", "", write_runs(behind))


def _behind(run: Sequence[int]) -> Iterator[int]:
    """Give the numbers that came, for the first time, after a larger one."""
    highest, seen = -1, set()
    for number in run:
        if number < highest and number not in seen:
            yield number
        highest = max(highest, number)
        seen.add(number)


def _strangers(
    instance: Instance, evidence: Evidence, streams: Sequence[tuple[int, Mapping[str, Any]]]
) -> Iterator[Difference]:
    """Find messages that do not belong to this case, and messages that were not received."""
    known = {
        (part.client, evidence.reports[number].fields.get("CORRELATION_ID"))
        for number, part in enumerate(instance.parts)
        if part.role is Role.SENDER
    }
    for number, stream in streams:
        if (stream["sender"], stream["correlation_id"]) not in known:
            where = _where(number, instance.parts[number])
            yield Difference(f"{where}/{stream['sender']}/unexpected", "", stream["received"])
    received = sum(len(set(read_runs(stream["received"]))) for _, stream in streams)
    missing = max(0, instance.total * evidence.batches - received)
    extra = _left(instance, evidence) - missing
    if extra > 0:
        yield Difference("/queue/unexpected", [], ["left on a queue"] * extra)


def _left(instance: Instance, evidence: Evidence) -> int:
    """Count the messages left on the queues of the coordinator and of the receivers."""
    return evidence.left + sum(
        int(evidence.reports[number].body["left"])
        for number, part in enumerate(instance.parts)
        if part.role is Role.RECEIVER
    )

"""Run the lab once, and write the journal line by line.

The head is written when the participants are known, the foot when the run has ended for any reason:
a run whose broker was killed also has a complete journal (law 6).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING

import tallystick
from tallystick.core.capture import write as write_capture
from tallystick.core.errors import Rejected
from tallystick.core.journal import (
    Foot,
    Head,
    Journal,
    Record,
    count,
    write_foot,
    write_head,
    write_record,
)  # fmt: skip
from tallystick.core.verdict import Verdict
from tallystick.lab.captured import capture_case
from tallystick.lab.instance import Group, Instance
from tallystick.lab.state import Action, Judged, Live, Member, Note, Plan, State
from tallystick.suites.known import reason_for

if TYPE_CHECKING:
    from tallystick.lab.shell import Place

__all__ = ["SUITE", "About", "choose", "run_lab"]

SUITE = "lab"


@dataclass(frozen=True, slots=True)
class About:
    """The head data of the journal: time, broker and other versions."""

    time: str
    broker: str
    versions: Mapping[str, str] = field(default_factory=dict)


def choose(
    groups: Sequence[Group], patterns: Sequence[str], names: Sequence[str]
) -> tuple[tuple[Group, ...], int]:
    """Keep the cases whose name, without the broker, a pattern matches; and count them."""

    def wanted(instance: Instance) -> bool:
        name = instance.name.partition("/")[2]
        return any(fnmatchcase(name, one) or fnmatchcase(name, f"{one}/*") for one in patterns)

    def narrowed(group: Group) -> Group:
        def make(senders: Sequence[str], receivers: Sequence[str]) -> list[Instance]:
            return [one for one in group.make(senders, receivers) if wanted(one)]

        return replace(group, make=make)

    kept = [narrowed(group) for group in groups] if patterns else list(groups)
    counted = [(group, len(group.make(names, names))) for group in kept]
    return tuple(group for group, size in counted if size), sum(size for _, size in counted)


@dataclass(slots=True)
class _Book:
    """The journal while it is written."""

    plan: Plan
    about: About
    write: Callable[[str], object]
    advance: Callable[[Verdict], object]
    known: Mapping[str, str]
    capture: Callable[[bytes], object]
    head: Head | None = None
    records: list[Record] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def take(self, state: State, action: Action) -> None:
        """Write the journal lines of an action."""
        if isinstance(action, Judged):
            self.open(state.members)
            record = Record(action.verdict, reason_for(self.known, action.verdict.case))
            self.records.append(record)
            self.write(write_record(record))
            if action.live is not None:
                self.keep(action.live)
            self.advance(action.verdict)
        elif isinstance(action, Note):
            self.notes.append(action.text)

    def keep(self, live: Live) -> None:
        """Write the captures of a case; a report that has none to tell is noted."""
        try:
            found = capture_case(self.about.broker, live.instance, live.reports)
        except (LookupError, TypeError, ValueError, AttributeError, Rejected) as error:
            self.notes.append(f"{live.instance.name}: could not be captured: {error!r}")
            return
        for one in found:
            self.capture(write_capture(one) + b"\n")

    def open(self, members: Mapping[str, Member]) -> Head:
        """Write the head, once."""
        if self.head is None:
            versions = {"tallystick": tallystick.__version__, **self.about.versions}
            for name, member in sorted(members.items()):
                versions[f"client.{name}"] = describe_member(member)
            self.head = Head(self.plan.run, self.about.time, SUITE, self.about.broker, versions)
            self.write(write_head(self.head))
        return self.head


def describe_member(member: Member) -> str:
    """Say which library and runtime a client is."""
    words = ("library", "library_version", "runtime")
    return " ".join(str(member.about[word]) for word in words if word in member.about)


def run_lab(
    plan: Plan,
    place: Place,
    about: About,
    *,
    write: Callable[[str], object] = len,
    advance: Callable[[Verdict], object] = id,
    finish: Callable[[], Sequence[str]] = tuple,
    known: Mapping[str, str] = MappingProxyType({}),
    capture: Callable[[bytes], object] = len,
) -> Journal:
    """Conduct a plan and give its journal; `finish` ends clients and gives notes on them.

    `known` names failures by pattern, with the reason; they run all the same (law 8). `capture`
    gets the lines of what was sent and received.
    """
    from tallystick.lab.shell import conduct  # noqa: PLC0415 (it needs the extra `lab`)

    began = perf_counter()
    book = _Book(plan, about, write, advance, known, capture)
    members = conduct(plan, place, book.take)
    head = book.open(members)
    troubled = [f"{one.name} {one.trouble}" for one in members.values() if one.trouble]
    notes = (*book.notes, *troubled, *finish())
    foot = Foot(count(book.records), (perf_counter() - began) * 1000, notes)
    write(write_foot(foot))
    return Journal(head, tuple(book.records), foot)

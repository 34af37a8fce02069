"""Clients for the tests: the Python client in threads of this process, honest or not."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from tallystick.core.verdict import Verdict
from tallystick.lab.cases import Settings, pair_groups
from tallystick.lab.instance import Group
from tallystick.lab.session import choose
from tallystick.lab.shell import Place, conduct
from tallystick.lab.state import Action, Judged, Limits, Member, Note, Plan, State

ROOT = Path(__file__).parents[2]
INTEROP = ROOT / "interop"
sys.path.insert(0, str(INTEROP / "python" / "client"))

client: Any = import_module("client")
roles: Any = import_module("roles")
wire: Any = import_module("wire")

PATIENCE = 60.0
TESTS = ("TC1_DummyRun", "TC2_BasicP2P", "TC3_BasicPubSub", "TC4_P2PMessageSize",
         "TC5_PubSubMessageSize", "Circuit", "Envelope", "FieldTable")  # fmt: skip
DEFAULTS = {"username": "guest", "password": "guest",
            "client_name": "python", "control_key": "iop.control", "control_timeout": "60",
            "tests": " ".join(TESTS)}  # fmt: skip
MANIFEST = json.loads((INTEROP / "python" / "client" / "manifest.json").read_text())
SMALL = {"P2P_NUM_MESSAGES": 6, "PUBSUB_NUM_MESSAGES": 4, "PUBSUB_NUM_RECEIVERS": 2}


def words(place: Place, given: Mapping[str, str]) -> dict[str, str]:
    """Give what client.sh gives to every client (`test_scripts.py` holds it to that)."""
    at = {"host": place.host, "port": str(place.port), "vhost": place.vhost}
    said = {**at, **DEFAULTS, **given}
    url = f"amqp://guest:guest@{place.host}:{place.port}/{quote(place.vhost, safe='')}"
    about = {**MANIFEST, "protocol": 4, "tests": TESTS, "given": said}
    return {
        **said, "url": url, "instance": fresh(), "capabilities": json.dumps(about),
        "private_key": f"{said['control_key']}.{said['client_name']}",
    }  # fmt: skip


class Guest:
    """A client in a thread."""

    def __init__(self, kind: type[Any], place: Place, given: Mapping[str, str]) -> None:
        self._ready = Event()
        self.exit: int | None = None
        self.client = kind(words(place, given))
        self.client.ready = self._ready.set
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE), "the client did not come up"

    def _run(self) -> None:
        self.exit = asyncio.run(self.client.serve())
        self._ready.set()

    def join(self, patience: float = PATIENCE) -> int | None:
        self._thread.join(patience)
        return self.exit


def fresh() -> str:
    return uuid4().hex[:12]


def place_of(url: str) -> Place:
    parts = wire.pika.URLParameters(url)
    return Place(parts.host, parts.port, parts.virtual_host)


@contextmanager
def company(
    place: Place, kinds: Mapping[str, type[Any]], **given: str
) -> Iterator[dict[str, Guest]]:
    """Have clients by name; each keeps to a control key of its own company."""
    guests = {
        name: Guest(kind, place, {"client_name": name.rstrip("+"), **given})
        for name, kind in kinds.items()
    }
    yield guests
    for guest in guests.values():
        guest.join()


class Book:
    """What a run said."""

    def __init__(self) -> None:
        self.verdicts: list[Verdict] = []
        self.notes: list[str] = []
        self.members: Mapping[str, Member] = {}

    def take(self, _state: State, action: Action) -> None:
        if isinstance(action, Judged):
            self.verdicts.append(action.verdict)
        elif isinstance(action, Note):
            self.notes.append(action.text)

    def named(self, part: str) -> list[Verdict]:
        return [one for one in self.verdicts if part in one.case]


def run(
    place: Place,
    names: Sequence[str],
    *,
    cases: Sequence[str] = ("TC[123]*",),
    groups: Sequence[Group] = (),
    limits: Limits | None = None,
    key: str = "iop.control",
    given: Mapping[str, Any] | None = None,
    watch: Callable[[State, Action], object] = lambda _state, _action: None,
    **more: Any,
) -> Book:
    """Run cases on whoever listens."""
    settings = Settings(fresh(), "broker", given=given or SMALL)
    chosen, _ = choose(groups or pair_groups(settings), () if groups else cases, names)
    plan = Plan(
        settings.run, chosen, tuple(names), limits or Limits(enlist=PATIENCE, answer=PATIENCE),
        key=key, **more,
    )  # fmt: skip
    book = Book()

    def take(state: State, action: Action) -> None:
        book.take(state, action)
        watch(state, action)

    book.members = conduct(plan, place, take)
    return book

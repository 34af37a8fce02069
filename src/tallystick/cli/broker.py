"""`tally broker`: run real brokers on this machine, without Docker and without root.

Exit 0 done, 1 finding (`status`: not running; `down`: had to be killed), 2 error.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, Self

from tallystick.brokers.servers import (
    LIMIT,
    NAMES,
    STORES,
    Running,
    Status,
    Talk,
    down,
    fetch,
    find_server,
    is_fetched,
    status,
    up,
)
from tallystick.cli.numbers import port, wait
from tallystick.cli.progress import Progress
from tallystick.core.errors import TallystickError, exit_code

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["register"]

_MB: Final = 1_000_000


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(metavar="VERB")
    listed = verbs.add_parser(
        "list", help="list the brokers, their versions, and whether they are downloaded"
    )
    listed.set_defaults(run=_list)
    fetched = verbs.add_parser("fetch", help="download without starting")
    fetched.set_defaults(run=_fetch)
    started = verbs.add_parser("up", help="start a broker, and return when it accepts connections")
    started.set_defaults(run=_up)
    stopped = verbs.add_parser("down", help="stop brokers (default: all)")
    stopped.set_defaults(run=_down)
    looked = verbs.add_parser("status", help="show the running brokers and their URLs")
    looked.set_defaults(run=_status)
    for verb in (fetched, started, stopped, looked):
        count = "+" if verb in (fetched, started) else "*"
        verb.add_argument("names", nargs=count, metavar="NAME", help=", ".join(NAMES))
    for verb in (listed, started, stopped, looked):
        verb.add_argument("--json", action="store_true", help="one JSON document on stdout")
    for verb in (started, stopped):
        verb.add_argument(
            "--limit",
            type=wait,
            default=LIMIT,
            metavar="SECONDS",
            help="maximum time to wait (default: 60)",
        )
    started.add_argument("--fresh", action="store_true", help="delete its data before the start")
    started.add_argument("--port", type=port, help="port for clients (default: a free port)")
    stopped.add_argument("--wipe", action="store_true", help="delete its data too")


def _list(arguments: argparse.Namespace) -> int:
    rows = [_about(name) for name in NAMES]
    if arguments.json:
        print(json.dumps({"brokers": rows}))
        return 0
    for row in rows:
        here = "fetched" if row["fetched"] else "not fetched"
        print(f"{row['name']:11} {row['version']:9} {here:12} {row['state']:9} {row['title']}")
    return 0


def _about(name: str) -> dict[str, Any]:
    server = find_server(name)
    return {
        "name": name,
        "title": server.title,
        "kind": "store" if name in STORES else "broker",
        "version": server.version,
        "fetched": is_fetched(server),
        "state": status(name).state,
        "memory_mb": server.memory,
    }


def _fetch(arguments: argparse.Namespace) -> int:
    return _each(arguments.names, lambda name, talk: fetch(find_server(name), talk))


def _up(arguments: argparse.Namespace) -> int:
    found: list[Running] = []

    def start(name: str, talk: Talk) -> None:
        running = up(
            name, fresh=arguments.fresh, port=arguments.port, limit=arguments.limit, talk=talk
        )
        found.append(running)
        if not arguments.json:
            print(_started(running), flush=True)
            talk.say(_next_step(name))

    code = _each(arguments.names, start)
    if arguments.json:
        print(json.dumps({"brokers": [_view(Status(r.name, "running", r)) for r in found]}))
    return code


def _down(arguments: argparse.Namespace) -> int:
    gone: dict[str, bool] = {}

    def end(name: str, talk: Talk) -> None:
        was = status(name).state
        gone[name] = down(name, wipe=arguments.wipe, limit=arguments.limit)
        if not gone[name]:
            talk.say(f"{name} did not stop within {arguments.limit:.0f} s and was killed")
        elif was != "down":
            talk.say(f"{name} has stopped")
        elif name in arguments.names:
            talk.say(f"{name} is not running")

    code = _each(arguments.names or NAMES, end)
    if arguments.json:
        print(json.dumps({"brokers": [{"name": n, "killed": not by} for n, by in gone.items()]}))
    return code or int(not all(gone.values()))


def _status(arguments: argparse.Namespace) -> int:
    seen = [status(name) for name in arguments.names or NAMES]
    if not arguments.names:
        seen = [one for one in seen if one.state != "down"]
    if arguments.json:
        print(json.dumps({"brokers": [_view(one) for one in seen]}))
    else:
        for one in seen:
            print(_line(one.found) if one.state == "running" and one.found else
                  f"{one.name:11}{one.state}")  # fmt: skip
        if not seen:
            print("no broker is running; start one with `tally broker up NAME`", file=sys.stderr)
    return int(any(one.state != "running" for one in seen))


def _started(running: Running) -> str:
    return f"{running.name} is up: {running.url}  (pid {running.pid}, {running.version})"


def _next_step(name: str) -> str:
    """Say how to use a broker that has started: by its name or its URL, and how to stop it."""
    call = f'Outbox("{name}")' if name in STORES else f'App("{name}")'
    return f"  use the URL, or the name: {call}; stop it with: tally broker down {name}"


def _line(running: Running) -> str:
    return f"{running.name:11}{running.url}  (pid {running.pid}, {running.version})"


def _view(one: Status) -> dict[str, Any]:
    found = one.found
    if found is None:
        return {"name": one.name, "state": one.state}
    return {
        "name": one.name,
        "state": one.state,
        "version": found.version,
        "pid": found.pid,
        "host": found.host,
        "ports": dict(found.ports),
        "urls": dict(found.urls),
        "admin": found.admin,
        "data_dir": str(found.data_dir),
        "log": str(found.log),
    }


def _each(names: Sequence[str], do: Callable[[str, Talk], object]) -> int:
    """Do it for every name, one after the other; a failure does not stop the others."""
    for name in names:
        find_server(name)  # a wrong name is said before anything is done
    worst = 0
    for name in dict.fromkeys(names):
        try:
            with _Bar() as bar:
                do(name, Talk(bar.say, bar.fetched))
        except TallystickError as error:
            if len(names) == 1:
                raise
            print(f"tally: {error}\n  hint: {error.hint}", file=sys.stderr)
            worst = max(worst, exit_code(error))
    return worst


class _Bar:
    """A progress bar of megabytes that appears with the first byte of a download."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._bar: Progress | None = None
        self._shown = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def say(self, text: str) -> None:
        """Print a line of talk."""
        if self._bar:
            self._bar.say(text)
        else:
            print(text, file=sys.stderr, flush=True)

    def fetched(self, title: str, done: int, total: int) -> None:
        """Move the bar to where the download is."""
        if self._bar is None:
            bar = Progress(-(-total // _MB), f"MB  {title}")
            self._bar = self._stack.enter_context(bar)
        while self._shown < done // _MB:
            self._bar.advance()
            self._shown += 1

"""`tally run module:app`: handle messages until a signal, a limit or a quiet while.

The first SIGINT or SIGTERM lets handlers finish, a second ends the program at once. On a terminal a
line on stderr shows the counts while it runs; at the end they go to stdout.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Final

from tallystick import App
from tallystick.core.errors import UsageError

__all__ = ["register"]


_CHATTY: Final = ("pika", "azure", "botocore", "urllib3")
"""Client libraries that log what they raise as well: here it is said once, in our words."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("app", metavar="MODULE:APP", help="where the App is, for example shop:app")
    parser.add_argument("--queue", action="append", default=[], help="consume this one; repeatable")
    parser.add_argument("--limit", type=int, help="end after so many messages of each queue")
    parser.add_argument("--idle", type=float, help="end when nothing came for so many seconds")
    parser.add_argument("--json", action="store_true", help="the counts as one object on stdout")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    app = _find(args.app)
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    print(f"tally: {app!r}; stop with Ctrl-C", file=sys.stderr)
    with _watched(app):
        counts = app.run(args.queue, limit=args.limit, idle=args.idle)
    app.close()
    print(json.dumps(counts) if args.json else _line(counts))
    return 0


def _find(given: str) -> App:
    module, _, name = given.partition(":")
    if not module or not name:
        raise UsageError(f"{given!r} names no app", code="app", hint="write it as module:app")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"there is no module {error.name!r}", code="app", hint="is it in this folder?"
        ) from error
    except AttributeError as error:
        raise UsageError(f"{module} has no {name!r}", code="app") from error
    if not isinstance(found, App):
        raise UsageError(f"{given} is a {type(found).__name__}, not an App", code="app")
    return found


def _line(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())) or "none"


@contextmanager
def _watched(app: App) -> Iterator[None]:
    """Show the counts once a second while people look on."""
    if not sys.stderr.isatty():
        yield
        return
    done = Event()

    def show() -> None:
        while not done.wait(1.0):
            print(f"\r\x1b[K{_line(app.counts())}", end="", file=sys.stderr, flush=True)

    thread = Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)

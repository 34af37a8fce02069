"""`tally run module:app`: handle messages until a signal, a limit or a quiet while.

The first SIGINT or SIGTERM lets handlers finish, a second ends the program at once. How it is doing
is shown on stderr while it runs (`cli.live`); at the end the counts go to stdout. What keeps it
from its work, such as a registry that is broken, is exit 2.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tallystick import App
from tallystick.cli.annotations import gate
from tallystick.cli.live import Live
from tallystick.cli.numbers import from_zero, seconds, wait
from tallystick.core.errors import UsageError

__all__ = ["register"]


_CHATTY: Final = ("pika", "azure", "botocore", "urllib3")
"""Client libraries that log what they raise as well: here it is said once, in our words."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("app", metavar="MODULE:APP", help="where the App is, for example shop:app")
    parser.add_argument("--queue", action="append", default=[], help="consume this one; repeatable")
    parser.add_argument("--limit", type=from_zero, help="end after so many messages of each queue")
    parser.add_argument("--idle", type=wait, help="end when nothing came for so many seconds")
    parser.add_argument(
        "--every",
        type=seconds,
        help="seconds from status to status (1 on a terminal, else 10)",
    )
    parser.add_argument(
        "--json", action="store_true", help="status lines and, on stdout, the counts as objects"
    )
    parser.set_defaults(run=_run)


@gate("tally run")
def _run(args: argparse.Namespace) -> int:
    app = _find(args.app)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    print(f"tally: {app!r}; stop with Ctrl-C", file=sys.stderr)
    with Live(app, args.queue, machine=args.json, every=args.every):
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

"""`tally run module:app`: handle messages until a signal, a limit or an idle time.

The first SIGINT or SIGTERM lets handlers finish, a second one stops the program at once. The state
is shown on stderr while it runs (`cli.live`); at the end the counts go to stdout. An error that
prevents the work, such as a broken registry, is exit 2.
"""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tallystick import App
from tallystick.cli.annotations import gate
from tallystick.cli.live import Live
from tallystick.cli.numbers import from_zero, seconds, wait
from tallystick.core.errors import TallystickError, UsageError

__all__ = ["register"]


_CHATTY: Final = ("pika", "azure", "botocore", "urllib3")
"""Client libraries that log what they raise as well: here it is said once, in our words."""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("app", metavar="MODULE:APP", help="where the App is, for example shop:app")
    parser.add_argument(
        "--queue", action="append", default=[], help="consume this queue; repeatable (default: all)"
    )
    parser.add_argument(
        "--limit", type=from_zero, help="stop after this many messages of each queue"
    )
    parser.add_argument(
        "--idle", type=wait, help="stop when no message arrived for this many seconds"
    )
    parser.add_argument(
        "--every",
        type=seconds,
        help="seconds between two status lines (1 on a terminal, else 10)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print status lines and final counts as JSON objects"
    )
    parser.set_defaults(run=_run)


@gate("tally run")
def _run(args: argparse.Namespace) -> int:
    app = _find(args.app)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.CRITICAL)
    only = f", queues: {', '.join(args.queue)}" if args.queue else ""
    print(f"tally: running {app!r}{only}; stop with Ctrl-C", file=sys.stderr)
    with Live(app, args.queue, machine=args.json, every=args.every):
        counts = app.run(args.queue, limit=args.limit, idle=args.idle)
    app.close()
    print(json.dumps(counts) if args.json else _line(counts))
    return 0


def _find(given: str) -> App:
    module, _, name = given.partition(":")
    if not module or not name:
        raise UsageError(
            f"{given!r} does not name an app",
            code="app",
            hint="write it as module:app, for example shop:app",
        )
    sys.path.insert(0, str(Path.cwd()))
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"there is no module {error.name!r}",
            code="app",
            hint="run `tally run` in the folder of the module",
        ) from error
    except TallystickError:
        raise
    except Exception as error:
        reason = f"{_place_of(error)}{type(error).__name__}: {error}"
        raise UsageError(
            f"module {module} cannot be imported: {reason}",
            code="app",
            hint=f"correct the module; `python -c 'import {module}'` shows the traceback",
        ) from error
    found = getattr(imported, name, None)
    if not isinstance(found, App):
        kind = "nothing" if found is None else f"a {type(found).__name__}"
        raise UsageError(
            f"{given} is {kind}, not an App",
            code="app",
            hint=f"write `{name} = App(...)` in the module, or name another variable",
        )
    return found


def _place_of(error: Exception) -> str:
    """Give the file and the line of the user's code that raised, if it is known."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: "
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""


def _line(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number} {outcome}" for outcome, number in sorted(counts.items())) or "none"

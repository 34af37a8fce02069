"""`tally schema serve`: the registry as Confluent's REST API, read-only, with a catalog page.

    tally schema serve --registry registry.json
    tally schema serve --port 0 --compatibility FULL
    tally schema serve --write-ids-lock

Clients of a Confluent registry read the schemas that are in git; the server never writes. It
listens on loopback unless --host names another address. It reads the files again when they change.
If the new files are invalid, it continues to serve the last valid registry. `--write-ids-lock`
writes `ids.lock` beside the manifest and exits. Commit this file: then a new URN never changes the
id of another URN.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import Any

from tallystick.cli.annotations import gate
from tallystick.cli.config.arguments import add_setting
from tallystick.cli.numbers import port, wait
from tallystick.cli.schema import REGISTRY_HELP
from tallystick.core.extras import check_extra
from tallystick.schemas.catalog import load_catalog
from tallystick.schemas.ids import LOCK, assign_ids, parse_lock, render_lock
from tallystick.server.levels import RULES, read_level

__all__ = ["register", "run"]


def register(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "serve",
        help="serve the registry as Confluent's REST API, with a catalog page",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_setting(parser, "registry", metavar="PATH", help=REGISTRY_HELP)
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: loopback)"
    )
    parser.add_argument(
        "--port", type=port, default=8081, help="port to listen on; 0 takes a free one"
    )
    parser.add_argument(
        "--addr",
        type=_address,
        metavar="HOST:PORT",
        help="host and port together; :PORT listens on loopback",
    )
    parser.add_argument(
        "--compatibility",
        default="BACKWARD",
        metavar="LEVEL",
        help="Confluent compatibility level (default: BACKWARD)",
    )
    parser.add_argument(
        "--rules",
        choices=tuple(RULES),
        default="babelqueue",
        help="babelqueue: a new optional field is compatible; strict: every old document must "
        "stay valid",
    )
    parser.add_argument(
        "--reload-seconds",
        type=wait,
        default=1.0,
        help="seconds between two checks for changed files; 0 means never (default: 1)",
    )
    parser.add_argument("--write-ids-lock", action="store_true", help=f"write {LOCK} and stop")
    parser.add_argument("--json", action="store_true", help="print the address as JSON on stdout")
    parser.set_defaults(run=run)


@gate("tally schema serve")
def run(args: argparse.Namespace) -> int:
    """Serve until stopped, or write the lock file."""
    if args.write_ids_lock:
        return _write_lock(args.registry)
    check_extra("server")
    level = read_level(args.compatibility)
    host, number = args.addr or ("", args.port)
    from tallystick.server.reload import open_store  # noqa: PLC0415 - loads jsonschema-rs
    from tallystick.server.serve import listen, serve  # noqa: PLC0415

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="tally: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    store = open_store(args.registry)
    opened = listen(host or args.host, number)
    place = _place(*opened.getsockname()[:2])
    count = len(store.snapshot.subjects)

    def ready() -> None:
        if args.json:
            told = {"url": f"http://{place}", "subjects": count, "compatibility": level}
            print(json.dumps(told), flush=True)
        print(
            f"tally: Confluent REST and the catalog on http://{place} "
            f"({count} subject{'s' * (count != 1)}, compatibility {level})",
            file=sys.stderr,
            flush=True,
        )

    serve(store, opened, level, args.rules, reload_seconds=args.reload_seconds, ready=ready)
    return 0


def _address(text: str) -> tuple[str, int]:
    """Read where to listen; `:8081` names a port only, so it stays on loopback."""
    host, _, number = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), port(number)


def _place(host: str, number: int) -> str:
    return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"


def _write_lock(registry: Path) -> int:
    """Freeze the ids as they are served now; ids of URNs that left stay taken."""
    catalog = load_catalog(registry)
    path = catalog.root / LOCK
    locked = parse_lock(path.read_bytes(), str(path)) if path.exists() else {}
    ids = {**locked, **assign_ids(catalog.entries, locked)}
    path.write_text(render_lock(ids), encoding="utf-8")
    print(f"wrote {path}: {len(ids)} ids, {len(ids) - len(locked)} new")
    return 0

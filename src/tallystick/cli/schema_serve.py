"""`tally schema serve`: the registry as Confluent's REST API, read-only, with a catalog page.

    tally schema serve --registry registry.json
    tally schema serve --port 0 --compatibility FULL
    tally schema serve --write-ids-lock

Clients of a Confluent registry read what git holds; the server never writes. It listens on
loopback unless --host says otherwise, reads the files again when they change, and keeps serving
the last good registry when the new one is broken. `--write-ids-lock` writes `ids.lock` beside the
manifest and stops: commit it, and no new URN ever changes the id of another.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from pathlib import Path
from typing import Any

from tallystick.cli.annotations import gate
from tallystick.core.errors import UsageError
from tallystick.schemas.catalog import MANIFEST, load_catalog
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
    parser.add_argument("--registry", type=Path, default=Path(MANIFEST), metavar="PATH")
    parser.add_argument("--host", default="127.0.0.1", help="the address (default: loopback)")
    parser.add_argument("--port", type=int, default=8081, help="0 takes any free one")
    parser.add_argument("--addr", metavar="HOST:PORT", help="both at once; :PORT is loopback")
    parser.add_argument(
        "--compatibility",
        default="BACKWARD",
        metavar="LEVEL",
        help="Confluent's (default: BACKWARD)",
    )
    parser.add_argument(
        "--rules",
        choices=tuple(RULES),
        default="babelqueue",
        help="whether an optional field may be added (babelqueue) or only containment counts",
    )
    parser.add_argument(
        "--reload-seconds", type=float, default=1.0, help="how often to look; 0 never (default: 1)"
    )
    parser.add_argument("--write-ids-lock", action="store_true", help=f"write {LOCK} and stop")
    parser.add_argument("--json", action="store_true", help="tell the address as JSON on stdout")
    parser.set_defaults(run=run)


@gate("tally schema serve")
def run(args: argparse.Namespace) -> int:
    """Serve until told to stop, or write the lock."""
    if args.write_ids_lock:
        return _write_lock(args.registry)
    level = read_level(args.compatibility)
    host, port = _address(args)
    if not args.reload_seconds >= 0:
        raise UsageError("--reload-seconds must not be negative", code="server.reload")
    from tallystick.server.reload import open_store  # noqa: PLC0415 - loads jsonschema-rs
    from tallystick.server.serve import listen, serve  # noqa: PLC0415

    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="tally: %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    store = open_store(args.registry)
    opened = listen(host, port)
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


def _address(args: argparse.Namespace) -> tuple[str, int]:
    """Read where to listen; `:8081` names a port only, so it stays on loopback."""
    if args.addr is None:
        host, port = args.host, str(args.port)
    else:
        host, _, port = args.addr.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or args.host
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{port!r} is no port", code="server.address", hint="0 to 65535")
    return host, int(port)


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _write_lock(registry: Path) -> int:
    """Freeze the ids as they are served now; ids of URNs that left stay taken."""
    catalog = load_catalog(registry)
    path = catalog.root / LOCK
    locked = parse_lock(path.read_bytes(), str(path)) if path.exists() else {}
    ids = {**locked, **assign_ids(catalog.entries, locked)}
    path.write_text(render_lock(ids), encoding="utf-8")
    print(f"wrote {path}: {len(ids)} ids, {len(ids) - len(locked)} new")
    return 0

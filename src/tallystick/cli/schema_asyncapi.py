"""`tally schema export-asyncapi`: write the registry as an AsyncAPI event catalog.

    tally schema export-asyncapi --registry registry.json -o asyncapi.json
    tally schema export-asyncapi --spec 3.1 --bindings kafka,sqs

The document has channels, messages (the envelope around each schema), operations and bindings. It
contains every schema that it refers to. Two URNs that would get the same key are an error.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tallystick.cli.annotations import gate, write_text
from tallystick.cli.config.arguments import add_setting
from tallystick.cli.schema import REGISTRY_HELP
from tallystick.schemas.asyncapi import SPECS, export_asyncapi
from tallystick.schemas.asyncapi_bindings import BINDINGS
from tallystick.schemas.catalog import load_catalog

__all__ = ["register", "run"]


def register(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "export-asyncapi",
        help="write the registry as an AsyncAPI catalog",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_setting(parser, "registry", metavar="PATH", help=REGISTRY_HELP)
    parser.add_argument("--spec", choices=tuple(SPECS), default="3.0", help="AsyncAPI version")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write to FILE (default: stdout)"
    )
    parser.add_argument("--title", default="BabelQueue Event Catalog", help="title of the catalog")
    parser.add_argument(
        "--doc-version",
        default="1.0.0",
        metavar="VERSION",
        help="version of the catalog (default: 1.0.0)",
    )
    parser.add_argument(
        "--bindings",
        type=_protocols,
        default=tuple(BINDINGS),
        metavar="NAMES",
        help=f"brokers to describe, from {','.join(BINDINGS)}; or none (default: all)",
    )
    parser.set_defaults(run=run)


def _protocols(text: str) -> tuple[str, ...]:
    names = () if text == "none" else tuple(text.split(","))
    unknown = [name for name in names if name not in BINDINGS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no bindings for {', '.join(map(repr, unknown))}")
    return names


@gate("tally schema export-asyncapi")
def run(args: argparse.Namespace) -> int:
    """Write the document."""
    catalog = load_catalog(args.registry)
    document = export_asyncapi(
        catalog,
        spec=args.spec,
        title=args.title,
        version=args.doc_version,
        bindings=args.bindings,
    )
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if args.output is None:
        print(text, end="")
    else:
        write_text(args.output, text)
        print(f"wrote {args.output} ({len(catalog.entries)} URN(s))", file=sys.stderr)
    return 0

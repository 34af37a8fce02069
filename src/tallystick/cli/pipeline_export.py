"""`tally pipeline export`: copy tables of a lake to a folder or an object store as Delta tables.

    tally pipeline export --lake lake --to shared
    tally pipeline export --lake lake --to s3://bucket/shared --table masked --table deliveries

Every export is one row of the Delta table `runs`, which names the version of each table.
Credentials come from the environment (AWS_ACCESS_KEY_ID, AZURE_STORAGE_..., GOOGLE_...).
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from typing import Any

from tallystick.cli.config.arguments import add_setting
from tallystick.cli.numbers import above_zero
from tallystick.cli.pipeline_stream import LAKE_HELP, parse_conf

__all__ = ["register_export"]


def register_export(verbs: Any) -> None:
    """Add the verb."""
    export = verbs.add_parser(
        "export",
        help="copy tables to a folder or an object store as Delta tables",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_setting(export, "lake", required=True, help=LAKE_HELP)
    export.add_argument(
        "--to", required=True, metavar="URI",
        help="a folder, or s3://, s3a://, abfss://, gs:// or hdfs:// with a path",
    )  # fmt: skip
    export.add_argument(
        "--table", action="append", metavar="NAME",
        help="a table to copy; repeatable (default: masked, which is safe to share)",
    )  # fmt: skip
    export.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE",
        help="an option of the store, such as AWS_ENDPOINT_URL=http://host:9000; repeatable",
    )  # fmt: skip
    export.add_argument(
        "--keep", type=above_zero, default=3, metavar="N", help="exports that stay readable (3)"
    )
    export.add_argument("--json", action="store_true", help="print one JSON object")
    export.set_defaults(run=_export, needs_extra="pipeline")


def _export(args: argparse.Namespace) -> int:
    from tallystick.pipeline.delta import open_store  # noqa: PLC0415 - Arrow loads when used
    from tallystick.pipeline.export import SHARED, export_tables  # noqa: PLC0415

    options = dict(parse_conf(text, "--option", "AWS_REGION=eu-west-1") for text in args.option)
    store = open_store(args.to, options)
    names = args.table or [SHARED]
    done = export_tables(
        args.lake, store, names,
        now=datetime.now(UTC).isoformat(timespec="seconds"), keep=args.keep,
    )  # fmt: skip
    clear = [name for name in names if name != SHARED]
    if clear:
        print(f"tally: {', '.join(clear)}: not masked; share only `{SHARED}`", file=sys.stderr)
    rows = [
        {"table": name, "uri": store.table(name), "version": done.run.versions[name],
         "rows": done.rows[name]}
        for name in names
    ]  # fmt: skip
    if args.json:
        print(json.dumps({"run": done.run.number, "skipped": done.skipped, "tables": rows}))
    else:
        _print_tables(rows)
    if done.skipped:
        print("tally: this run was exported before; nothing was copied", file=sys.stderr)
    return 0


def _print_tables(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print(f"{row['table']:15} {row['rows']:>10} rows  version {row['version']}  {row['uri']}")

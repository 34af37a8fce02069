"""`tally pipeline`: check captured traffic of any size, on Spark.

    tally pipeline run --input captures/ --registry registry.json --out lake
    tally pipeline stream --input kafka://host:9092/orders --registry registry.json --out lake
    tally pipeline tables --lake lake
    tally pipeline show quarantine --lake lake --limit 5
    tally pipeline page --lake lake -o page.html
    tally pipeline export --lake lake --to s3://bucket/shared

`run` reads captures, plain envelopes and journals (JSON Lines, also compressed, and Parquet). It
checks every message and writes the tables as Parquet. It reads only files that are new. It also
writes an HTML page, `LAKE/page.html`, that opens from disk. It exits with 1 if a `--fail-if` rule
is true, such as `bad>0.1%` or `lost>0`.
"""

from __future__ import annotations

import argparse
import json
import operator
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any, Final, Self

from tallystick.cli.annotations import gate
from tallystick.cli.config.arguments import add_setting
from tallystick.cli.numbers import from_zero
from tallystick.cli.pipeline_export import register_export
from tallystick.cli.pipeline_lineage import add_lineage, follow_run
from tallystick.cli.pipeline_stream import LAKE_HELP, add_work, parse_conf, register_stream
from tallystick.core.errors import UsageError

__all__ = ["holds", "register"]

_RULE: Final = re.compile(r"\s*([a-z_.]+)\s*(>=|<=|>|<|=)\s*([0-9]+(?:\.[0-9]+)?)\s*(%?)\s*")
_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq,
}  # fmt: skip


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    parser.set_defaults(needs_extra="capture")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    run = verbs.add_parser(
        "run",
        help="check captured traffic and write every table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_work(run)
    run.add_argument(
        "--dry-run", action="store_true", help="show what would be done, and do nothing"
    )
    run.add_argument(
        "--force", action="store_true", help="build the tables again, even if nothing is new"
    )
    run.add_argument(
        "--fail-if",
        action="append",
        default=[],
        metavar="RULE",
        help="exit 1 if this is true for the run: bad>0.1%%, lost>0, ...; repeatable",
    )
    run.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="write the HTML page to FILE (default: LAKE/page.html)",
    )
    add_lineage(run)
    run.add_argument("--json", action="store_true", help="print the manifest as JSON")
    run.set_defaults(run=_run, needs_extra="pipeline")
    tables = verbs.add_parser("tables", help="list the tables, and the number of rows in a lake")
    add_setting(tables, "lake", help=LAKE_HELP)
    tables.add_argument("--json", action="store_true", help="print one JSON document")
    tables.set_defaults(run=_tables)
    register_stream(verbs)
    register_export(verbs)
    show = verbs.add_parser("show", help="show rows of a table")
    show.add_argument("table", help="a name that `tally pipeline tables` lists")
    add_setting(show, "lake", required=True, help=LAKE_HELP)
    show.add_argument("--limit", type=from_zero, default=20, help="maximum rows (%(default)s)")
    show.add_argument("--json", action="store_true", help="print one JSON object per line")
    show.set_defaults(run=_show)
    page = verbs.add_parser("page", help="write the tables as one HTML page that opens from disk")
    add_setting(page, "lake", required=True, help=LAKE_HELP)
    page.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write to FILE (default: LAKE/page.html)"
    )
    page.set_defaults(run=lambda args: _page(args.lake, args.output))


@gate("tally pipeline run")
def _run(args: argparse.Namespace) -> int:
    from tallystick.pipeline.run import make_plan, run  # noqa: PLC0415 - Arrow loads when used
    from tallystick.pipeline.session import LOCAL  # noqa: PLC0415

    rules = {one: _parse_rule(one) for one in args.fail_if}
    conf = dict(parse_conf(one) for one in args.conf)
    plan = make_plan(args.input, args.registry, args.out)
    if args.dry_run:
        _print_plan(plan, as_json=args.json)
        return 0
    with follow_run(args, plan) as tell_lineage, _Bar() as bar:
        manifest = run(
            plan, master=args.master or LOCAL, conf=conf, watch=bar.tell, force=args.force,
            keep=args.keep,
        )  # fmt: skip
        tell_lineage(manifest)
    if args.json:
        print(json.dumps(manifest, indent=1))
    else:
        _print_run(manifest)
    _page(args.out, args.page)
    held = [text for text, rule in rules.items() if holds(manifest["figures"], *rule)]
    for text in held:
        print(f"tally: --fail-if {text} is true", file=sys.stderr)
    return 1 if held else 0


def _parse_rule(text: str) -> tuple[str, str, float, bool]:
    from tallystick.pipeline.tables import FIGURES  # noqa: PLC0415 - Arrow loads when used

    found = _RULE.fullmatch(text)
    if not found:
        raise UsageError(
            f"--fail-if {text!r} is not a rule",
            code="fail_if",
            hint="write for example 'bad>0.1%' or 'lost>0'",
        )
    name, sign, number, percent = found.groups()
    if name not in ("bad", *FIGURES):
        raise UsageError(
            f"--fail-if: there is no figure {name!r}",
            code="fail_if",
            hint=f"use one of bad, {', '.join(FIGURES)}",
        )
    return name, sign, float(number), bool(percent)


def holds(figures: Mapping[str, int], name: str, sign: str, limit: float, percent: bool) -> bool:
    """Return whether a rule is true for the figures of a run; `bad` means refused."""
    value = float(figures["refused" if name == "bad" else name])
    if percent:
        value = 100 * value / max(figures["messages"], 1)
    return _SIGNS[sign](value, limit)


def _print_plan(plan: Any, *, as_json: bool) -> None:
    fresh = {one.key for one in plan.fresh}
    if as_json:
        inputs = [
            {"path": one.path, "form": one.form, "size": one.size, "new": one.key in fresh}
            for one in plan.sources
        ]
        print(json.dumps({"key": plan.key, "current": plan.is_current, "inputs": inputs}, indent=1))
        return
    for one in plan.sources:
        print(f"{'new  ' if one.key in fresh else 'known'} {one.form:8} {one.size:>12} {one.path}")
    todo = sum(one.size for one in plan.fresh)
    print(f"{len(plan.sources)} inputs, {len(fresh)} to read ({todo} bytes), "
          f"{len(plan.catalog.entries)} schemas")  # fmt: skip
    print("the tables are up to date" if plan.is_current else "the tables would be built")


def _print_run(manifest: Mapping[str, Any]) -> None:
    figures = manifest["figures"]
    for name, value in figures.items():
        if value:
            print(f"{name:24} {value:>12}")
    print("nothing new to read" if manifest["skipped"] else f"tables in {manifest['folder']}")


def _tables(args: argparse.Namespace) -> int:
    from tallystick.pipeline.lake import read_manifest  # noqa: PLC0415
    from tallystick.pipeline.tables import TABLES  # noqa: PLC0415

    held = read_manifest(args.lake)["tables"] if args.lake else {}
    rows = [
        {
            "table": name,
            "rows": held[name]["rows"] if held else None,
            "key": list(table.key),
            "columns": table.schema.names,
            "inputs": list(table.inputs),
            "about": table.about,
        }
        for name, table in TABLES.items()
    ]
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        count = f"{row['rows']:>10} " if held else ""
        print(f"{row['table']:15} {count}{row['about']}")
    return 0


def _show(args: argparse.Namespace) -> int:
    from tallystick.pipeline.show import read_rows  # noqa: PLC0415

    rows = read_rows(args.lake, args.table, args.limit)
    for row in rows:
        if args.json:
            print(json.dumps(row, ensure_ascii=False))
        else:
            print("  ".join(f"{name}={value}" for name, value in row.items() if value is not None))
    return 0


def _page(lake: Path, output: Path | None) -> int:
    from tallystick.pipeline.digest import digest_lake  # noqa: PLC0415 - Arrow loads when used
    from tallystick.report.traffic import build_traffic_page  # noqa: PLC0415

    place = output or lake / "page.html"
    page = build_traffic_page(digest_lake(lake)).encode("utf-8", "backslashreplace")
    place.write_bytes(page)
    print(f"the page is {place}", file=sys.stderr)
    return 0


class _Bar:
    """A bar with rows and the time left, where a person is watching."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._begun = monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")

    def tell(self, stage: str, rows: int, share: float) -> None:
        """Draw it again."""
        if not self._shown:
            return
        taken = monotonic() - self._begun
        left = f" {taken * (1 - share) / share:5.0f} s left" if 0.02 < share < 1 else ""
        bar = ("#" * int(share * 30)).ljust(30, ".")
        sys.stderr.write(f"\r\x1b[K[{bar}] {rows} rows {stage}{left}")
        sys.stderr.flush()

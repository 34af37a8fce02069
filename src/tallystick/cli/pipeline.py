"""`tally pipeline`: the proof on all the traffic, on Spark.

    tally pipeline run --input captures/ --registry registry.json --out lake
    tally pipeline stream --input kafka://host:9092/orders --registry registry.json --out lake
    tally pipeline tables --lake lake
    tally pipeline show quarantine --lake lake --limit 5
    tally pipeline page --lake lake -o page.html

`run` reads captures, plain envelopes and journals (JSON Lines, also compressed, and Parquet),
judges every message and writes the tables as Parquet. Files that were read before are not read
again. What was found is drawn on one page, `LAKE/page.html`, that opens from disk. It ends with 1
when a `--fail-if` holds, such as `bad>0.1%` or `lost>0`.
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
from tallystick.cli.numbers import from_zero
from tallystick.cli.pipeline_stream import add_work, parse_conf, register_stream
from tallystick.core.errors import UsageError

__all__ = ["holds", "register"]

_RULE: Final = re.compile(r"\s*([a-z_.]+)\s*(>=|<=|>|<|=)\s*([0-9]+(?:\.[0-9]+)?)\s*(%?)\s*")
_SIGNS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq,
}  # fmt: skip


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    run = verbs.add_parser(
        "run",
        help="judge captured traffic and write every table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_work(run)
    run.add_argument("--dry-run", action="store_true", help="say what would be done")
    run.add_argument("--force", action="store_true", help="build the tables anew")
    run.add_argument("--fail-if", action="append", default=[], metavar="RULE",
                     help="end with 1 when it holds: bad>0.1%%, lost>0, ...")  # fmt: skip
    run.add_argument("--page", type=Path, metavar="FILE", help="its page (default: LAKE/page.html)")
    run.add_argument("--json", action="store_true", help="print the manifest")
    run.set_defaults(run=_run)
    tables = verbs.add_parser("tables", help="list the tables, and their rows in a lake")
    tables.add_argument("--lake", type=Path)
    tables.add_argument("--json", action="store_true")
    tables.set_defaults(run=_tables)
    register_stream(verbs)
    show = verbs.add_parser("show", help="show rows of a table")
    show.add_argument("table")
    show.add_argument("--lake", type=Path, required=True)
    show.add_argument("--limit", type=from_zero, default=20)
    show.add_argument("--json", action="store_true", help="one object a line")
    show.set_defaults(run=_show)
    page = verbs.add_parser("page", help="draw the tables as one page that opens from disk")
    page.add_argument("--lake", type=Path, required=True)
    page.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: LAKE/page.html")
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
    with _Bar() as bar:
        manifest = run(
            plan, master=args.master or LOCAL, conf=conf, watch=bar.tell, force=args.force,
            keep=args.keep,
        )  # fmt: skip
    if args.json:
        print(json.dumps(manifest, indent=1))
    else:
        _print_run(manifest)
    _page(args.out, args.page)
    held = [text for text, rule in rules.items() if holds(manifest["figures"], *rule)]
    for text in held:
        print(f"tally: {text} holds", file=sys.stderr)
    return 1 if held else 0


def _parse_rule(text: str) -> tuple[str, str, float, bool]:
    from tallystick.pipeline.tables import FIGURES  # noqa: PLC0415 - Arrow loads when used

    found = _RULE.fullmatch(text)
    if not found:
        raise UsageError(
            f"--fail-if {text!r} is no rule",
            code="fail_if",
            hint="for example 'bad>0.1%' or 'lost>0'",
        )
    name, sign, number, percent = found.groups()
    if name not in ("bad", *FIGURES):
        raise UsageError(
            f"no figure is called {name!r}",
            code="fail_if",
            hint=f"one of bad, {', '.join(FIGURES)}",
        )
    return name, sign, float(number), bool(percent)


def holds(figures: Mapping[str, int], name: str, sign: str, limit: float, percent: bool) -> bool:
    """Tell whether a rule holds for the figures of a run; `bad` is what was refused."""
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
    print("nothing is new" if manifest["skipped"] else f"tables in {manifest['folder']}")


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
        """Draw it anew."""
        if not self._shown:
            return
        taken = monotonic() - self._begun
        left = f" {taken * (1 - share) / share:5.0f} s left" if 0.02 < share < 1 else ""
        bar = ("#" * int(share * 30)).ljust(30, ".")
        sys.stderr.write(f"\r\x1b[K[{bar}] {rows} rows {stage}{left}")
        sys.stderr.flush()

"""`tally pipeline stream`: keep the tables up to date while the input grows.

    tally pipeline stream --input kafka://host:9092/orders --registry registry.json --out lake
    tally pipeline stream --input captures/ --registry registry.json --out lake --available-now

`stream` reads topics and folders as they grow, until a signal stops it. With `--available-now` it
reads the present data, then stops. If it is killed, the next start continues at the same place.
"""

from __future__ import annotations

import argparse
import json
import re
from threading import Event
from typing import Any, Final

from tallystick.cli.annotations import gate
from tallystick.cli.config.arguments import add_setting
from tallystick.cli.numbers import above_zero
from tallystick.cli.schema import REGISTRY_HELP
from tallystick.core.errors import UsageError

__all__ = ["LAKE_HELP", "add_work", "parse_conf", "register_stream"]

_TRIGGER: Final = re.compile(r"([0-9]{1,9})\s*(ms|s|m|h)")
_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_LONGEST: Final = 86_400_000
LAKE_HELP: Final = "folder with the tables"
_SMALL: Final = 64 << 20


def register_stream(verbs: Any) -> None:
    """Add the verbs."""
    stream = verbs.add_parser(
        "stream",
        help="read topics and folders as they grow, and keep every table up to date",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_work(stream)
    when = stream.add_mutually_exclusive_group()
    when.add_argument(
        "--trigger", default="10s", metavar="TIME", help="time between two reads (10s)"
    )
    when.add_argument(
        "--available-now", action="store_true", help="read the present data, then stop"
    )
    stream.add_argument("--batch", type=above_zero, default=1_000_000, metavar="N",
                        help="approximate number of records per batch (1000000)")  # fmt: skip
    stream.add_argument(
        "--json", action="store_true", help="print one JSON object for each publication"
    )
    stream.set_defaults(run=_stream, needs_extra="pipeline")
    clean = verbs.add_parser("clean", help="delete old runs, and the files that only they use")
    add_setting(clean, "lake", required=True, help=LAKE_HELP)
    clean.add_argument("--json", action="store_true", help="print one JSON object")
    _add_keep(clean)
    clean.set_defaults(run=_clean)


def add_work(parser: argparse.ArgumentParser) -> None:
    """Add the options of every run and stream: inputs, registry, lake, Spark master."""
    parser.add_argument("--input", action="append", required=True, metavar="INPUT",
                        help="a file, a folder, a quoted pattern, or "
                             "kafka://host:port/topic[,topic]; repeatable")  # fmt: skip
    add_setting(parser, "registry", metavar="PATH", help=REGISTRY_HELP)
    add_setting(
        parser, "lake", option="--out", required=True, metavar="LAKE", help="folder for the tables"
    )
    parser.add_argument("--master", default="", help="any Spark master (default: this machine)")
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="Spark setting; repeatable"
    )
    _add_keep(parser)


def _add_keep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keep", type=above_zero, default=3, metavar="N",
                        help="number of runs to keep in the lake (3)")  # fmt: skip


def _clean(args: argparse.Namespace) -> int:
    from tallystick.pipeline.clean import clean  # noqa: PLC0415
    from tallystick.pipeline.lake import open_lake, read_manifest  # noqa: PLC0415

    read_manifest(args.lake)
    with open_lake(args.lake) as lake:
        gone = clean(lake, args.keep, unfinished=True)
    if args.json:
        print(json.dumps({"runs": gone.runs, "parts": gone.parts}))
    else:
        print(f"deleted {gone.runs} runs and {gone.parts} parts")
    return 0


@gate("tally pipeline stream")
def _stream(args: argparse.Namespace) -> int:
    from tallystick.pipeline.session import LOCAL, open_session  # noqa: PLC0415
    from tallystick.pipeline.stream import make_stream, stream  # noqa: PLC0415
    from tallystick.runtime.shutdown import Signals  # noqa: PLC0415

    every = "" if args.available_now else parse_trigger(args.trigger)
    conf = dict(parse_conf(one) for one in args.conf)
    task = make_stream(args.input, args.registry, args.out)
    small = args.available_now and task.weight < _SMALL
    stopping = Event()

    def tell(manifest: dict[str, Any]) -> None:
        if args.json:
            told = {"folder": manifest["folder"], "figures": manifest["figures"]}
            print(json.dumps(told), flush=True)
        else:
            figures = manifest["figures"]
            print(f"{figures['messages']} messages, {figures['refused']} refused: "
                  f"tables in {manifest['folder']}", flush=True)  # fmt: skip

    with (
        open_session(args.master or LOCAL, conf, small=small) as session,
        Signals(stopping, enabled=True),
    ):
        stream(task, session, every=every, stopping=stopping, tell=tell, keep=args.keep,
               batch=args.batch)  # fmt: skip
    return 0


def parse_trigger(text: str) -> str:
    """Give a time such as `10s`, a day at most, in the words of Spark."""
    found = _TRIGGER.fullmatch(text.strip())
    length = int(found[1]) * _UNITS[found[2]] if found else _LONGEST + 1
    if length > _LONGEST:
        raise UsageError(
            f"--trigger {text[:40]!r} is not a time",
            code="trigger",
            hint="write for example 10s, 500ms or 1m; at most a day, 24h",
        )
    return f"{length} milliseconds"


def parse_conf(
    text: str, option: str = "--conf", example: str = "spark.driver.memory=4g"
) -> tuple[str, str]:
    """Give the name and the value of a setting."""
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise UsageError(f"{option} {text!r} is not KEY=VALUE", code="conf", hint=example)
    return name, value

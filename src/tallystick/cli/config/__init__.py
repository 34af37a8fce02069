"""`tally config`: the settings of this project, and where each value comes from.

    tally config
    tally config --json

docs/reference/configuration.md lists the settings, the files and the order in which they count.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

from tallystick.cli.config.settings import find_values

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the option; there is one verb, and it is the noun."""
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    values = find_values(os.environ, Path.cwd())
    if arguments.json:
        told = {key: {"value": one.text, "source": one.source} for key, one in values.items()}
        print(json.dumps(told))
        return 0
    from tallystick.report.table import one_line  # noqa: PLC0415 (not for --json)

    rows = [("setting", "value", "from")]
    rows += [(key, one.text or "-", one.source) for key, one in values.items()]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for key, text, source in rows:
        print(one_line(f"{key:{widths[0]}}  {text:{widths[1]}}  {source}"))
    return 0

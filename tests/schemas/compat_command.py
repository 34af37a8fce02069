"""How the tests call `tally schema compat`."""

from __future__ import annotations

import argparse

from tallystick.cli import schema as noun
from tallystick.cli.config.arguments import resolve


def tally(*words: str) -> int:
    parser = argparse.ArgumentParser()
    noun.register(parser)
    args = parser.parse_args(["compat", *words])
    resolve(args)
    return int(args.run(args))

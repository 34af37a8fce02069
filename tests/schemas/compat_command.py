"""How the tests call `tally schema compat`."""

from __future__ import annotations

import argparse

from tallystick.cli import schema as noun


def tally(*words: str) -> int:
    parser = argparse.ArgumentParser()
    noun.register(parser)
    args = parser.parse_args(["compat", *words])
    return int(args.run(args))

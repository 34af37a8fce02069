"""`tally lab`: circuits on real brokers."""

from __future__ import annotations

import argparse

from tallystick.cli.lab_run import register_run

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    register_run(parser.add_subparsers(metavar="VERB"))

"""`tally lab`: circuits on real brokers."""

from __future__ import annotations

import argparse

from tallystick.cli.lab_tiers import register_tiers

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    register_tiers(parser.add_subparsers(metavar="VERB"))

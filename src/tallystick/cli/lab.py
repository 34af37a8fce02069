"""`tally lab`: run circuits on real brokers, between clients in many languages and in tiers."""

from __future__ import annotations

import argparse

from tallystick.cli.lab_all import register_all
from tallystick.cli.lab_perf import register_perf
from tallystick.cli.lab_run import register_run
from tallystick.cli.lab_tiers import register_tiers

__all__ = ["register"]


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs."""
    parser.set_defaults(needs_extra="lab")
    verbs = parser.add_subparsers(metavar="VERB")
    register_run(verbs)
    register_perf(verbs)
    register_tiers(verbs)
    register_all(verbs)

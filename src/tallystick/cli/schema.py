"""`tally schema`: the schema registry in git. Each verb has one module.

Each module exposes `register(subparsers)`, which adds its parser and sets `run`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse

__all__ = ["REGISTRY_HELP", "VERBS", "register"]

REGISTRY_HELP: Final = "the manifest of the registry (default: registry.json)"

VERBS: Final[tuple[str, ...]] = (
    "tallystick.cli.schema_validate",
    "tallystick.cli.schema_compat",
    "tallystick.cli.schema_check",
    "tallystick.cli.schema_asyncapi",
    "tallystick.cli.schema_gdpr",
    "tallystick.cli.schema_serve",
    "tallystick.cli.schema_replay",
)


def register(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of `tally schema`."""
    subparsers = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    for name in VERBS:
        import_module(name).register(subparsers)

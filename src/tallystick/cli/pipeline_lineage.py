"""`--lineage` of `tally pipeline run`: send OpenLineage events to a server or a file."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from tallystick.pipeline.run import Plan

__all__ = ["add_lineage", "follow_run"]


def add_lineage(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--lineage", metavar="TARGET",
        help="send OpenLineage events to this URL (http://host:5000), or append them to this file",
    )  # fmt: skip
    parser.add_argument(
        "--lineage-namespace", default="tallystick", metavar="NAME",
        help="OpenLineage namespace of the job (%(default)s)",
    )  # fmt: skip


@contextmanager
def follow_run(
    args: argparse.Namespace, plan: Plan
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Send the events of a run; the caller tells the manifest, an error tells the failure.

    A run that has nothing to do sends no events.
    """
    if not args.lineage or (plan.is_current and not args.force):
        yield lambda _: None
        return
    from tallystick.pipeline.lineage import open_lineage  # noqa: PLC0415 - loads when used

    lineage = open_lineage(
        args.lineage,
        [source.path for source in plan.sources],
        run=str(uuid4()),
        namespace=args.lineage_namespace,
        now=lambda: datetime.now(UTC).isoformat(),
    )
    lineage.start()
    try:
        yield lambda manifest: lineage.complete(plan.lake, manifest)
    except BaseException as error:
        lineage.fail(str(error) or type(error).__name__)
        raise
    finally:
        for reason in lineage.undelivered:
            print(f"tally: warning: OpenLineage event not delivered: {reason}", file=sys.stderr)

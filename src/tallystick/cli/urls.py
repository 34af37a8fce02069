"""A broker on the command line: a URL, or the name of one that `tally broker up` has started."""

from __future__ import annotations

from tallystick.brokers.servers import NAMES, status
from tallystick.core.errors import UsageError

__all__ = ["URL_HELP", "find_url"]

URL_HELP = "the broker: a URL, or the name of one that `tally broker up` started"


def find_url(given: str) -> str:
    """Give the URL that is meant."""
    if "://" in given or given not in NAMES:
        return given
    now = status(given)
    if now.state != "running" or now.found is None:
        raise UsageError(
            f"{given} is not running here",
            code="url",
            hint=f"give a URL, or start one with `tally broker up {given}`",
        )
    return now.found.url

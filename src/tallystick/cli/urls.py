"""The help text of every argument that names a broker."""

from __future__ import annotations

__all__ = ["URL_HELP"]

URL_HELP = "broker: a URL, or the name of a broker started by `tally broker up`"

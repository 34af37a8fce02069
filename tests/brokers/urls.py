"""The URL of a broker, with the options that a test wants."""

from __future__ import annotations


def with_options(url: str, options: str) -> str:
    """Give a URL with more options; without any it stays as it is."""
    return f"{url}{'&' if '?' in url else '?'}{options}" if options else url

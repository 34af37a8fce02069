"""The table of event formats: their names, and the functions that read and write them.

A format is a pair of pure functions, and two more where it has batches. Its module is imported
on first use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Final

from tallystick.core.errors import UsageError
from tallystick.events.event import Event
from tallystick.events.extensions import Extensions

__all__ = ["FORMATS", "Format", "find_format", "format_of_media_type"]


@dataclass(frozen=True, slots=True)
class Format:
    """How events are written: a name, media types, and functions; None where it has no batch."""

    name: str
    media_type: str
    batch_media_type: str | None
    read: Callable[[bytes, Extensions], Event]
    write: Callable[[Event], bytes]
    read_batch: Callable[[bytes, Extensions], tuple[Event, ...]] | None
    write_batch: Callable[[Iterable[Event]], bytes] | None


FORMATS: Final = MappingProxyType(
    {
        "json": "json_format",
        "protobuf": "protobuf_format",
        "xml": "xml_format",
        "avro": "avro_format",
        "avro-compact": "avro_compact",
    }
)
"""Every format's name, and the module that holds it."""


@cache
def find_format(name: str) -> Format:
    """Give a format by its name."""
    if name not in FORMATS:
        raise UsageError(
            f"unknown event format {name!r}",
            code="unknown_format",
            hint=f"use one of: {', '.join(FORMATS)}",
        )
    module = import_module(f"tallystick.events.formats.{FORMATS[name]}")
    return Format(
        name,
        module.MEDIA_TYPE,
        getattr(module, "BATCH_MEDIA_TYPE", None),
        module.read,
        module.write,
        getattr(module, "read_batch", None),
        getattr(module, "write_batch", None),
    )


def format_of_media_type(essence: str) -> tuple[Format, bool] | None:
    """Give the format of `type/subtype` in lower case and whether it is the batch; or None."""
    for name in FORMATS:
        each = find_format(name)
        if essence in (each.media_type, each.batch_media_type):
            return each, essence == each.batch_media_type
    return None

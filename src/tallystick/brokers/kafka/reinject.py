"""Make the record that goes back from a retry tier to its topic (clause 6.5).

Value and key are unchanged. The headers `bq-delay` and `bq-original-topic` are removed; all others
stay, in their order. A name that is not a valid topic name is rejected here, because the cluster
would always refuse it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tallystick.brokers.kafka.binding import BINDING
from tallystick.core.errors import Rejected

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PARKED_HEADERS", "return_topic", "returned_headers"]

PARKED_HEADERS: Final = ("bq-delay", "bq-original-topic")
_TOPIC: Final = re.compile(rb"(?!\.\.?\Z)[a-zA-Z0-9._-]{1,249}").fullmatch


def return_topic(headers: Mapping[str, Any]) -> str:
    """Return the topic of a record in a retry topic, or reject a record without one."""
    key = BINDING.original.key if BINDING.original else ""
    value = headers.get(key)
    if not isinstance(value, bytes) or _TOPIC(value) is None:
        raise Rejected(f"a record of a retry topic has no topic in {key}", code="no_original_topic")
    return value.decode()


def returned_headers(headers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the headers of the record that goes back to its topic."""
    return {key: value for key, value in headers.items() if key not in PARKED_HEADERS}

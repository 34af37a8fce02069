"""Find the dead-letter queue of a message, and its original queue for the block (ADR-0009).

`original_queue` is `meta.queue`, else the queue from which the message was consumed. On Kafka it is
in a header (`bq-original-topic`), because a retry is consumed from a different topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallystick.core.names import name

if TYPE_CHECKING:
    from tallystick.core.binding import Binding
    from tallystick.core.frame import Sections

__all__ = ["dead_letter_queue", "original_queue"]


def dead_letter_queue(
    binding: Binding, queue: str, *, explicit: str = "", suffix: str | None = None
) -> str:
    """Return the dead-letter queue: the configured one, else the queue's name with the suffix.

    It is a plain queue name, as `publish` takes it: a transport adds its prefix itself.
    """
    return explicit or name(binding.names, "dead_letter", queue, suffix=suffix, prefix="")


def original_queue(
    binding: Binding, meta_queue: str | None, consumed: str, sections: Sections
) -> str:
    """Give the `original_queue` of the dead-letter block."""
    if binding.original is None:
        return meta_queue or consumed
    native = sections.get(binding.original.section, {}).get(binding.original.key)
    text = native.decode("utf-8", "replace") if isinstance(native, bytes) else native
    return text if isinstance(text, str) and text else consumed

"""Track which offsets of each partition may be committed when messages finish out of order.

An offset may be committed when every record before it is done. `epoch` changes when a partition is
revoked or rewound: records delivered before can then no longer be settled.
"""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Partition"]


@dataclass(slots=True)
class Partition:
    """One partition: its unsettled offsets, and the offset after the last delivered one."""

    epoch: int = 0
    out: set[int] = field(default_factory=set)
    after: int = 0
    resume_at: float | None = None

    def hand_out(self, offset: int) -> None:
        """Note that a handler has a record."""
        self.out.add(offset)
        self.after = offset + 1  # also where the log begins anew, at a lower offset

    def finish(self, *offsets: int) -> None:
        """Note that records are done."""
        self.out.difference_update(offsets)

    def position(self) -> int:
        """Give the offset up to which everything is done."""
        return min(self.out) if self.out else self.after

    def rewind(self) -> int:
        """Forget the unsettled offsets, and return the offset to start again."""
        start = self.position()
        self.epoch += 1
        self.out.clear()
        self.after = start
        return start

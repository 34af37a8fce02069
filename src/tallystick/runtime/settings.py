"""The settings of a worker: concurrency, retries, dead letters, unknown URNs.

Dead-lettering is on by default, so that no message is dropped unless the user asks for it. Retries
wait longer and longer, with full jitter. Other implementations have no dead-lettering and retry at
once by default.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

from tallystick.core.errors import UsageError
from tallystick.core.names import DEFAULT_QUEUE
from tallystick.core.settle import MAX_ATTEMPTS, STRATEGIES
from tallystick.runtime.retry import Backoff

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of one app.

    `prefetch` is the number of messages that a worker fetches in addition to those in handlers.
    `release_delay` is the wait before a message with an unknown URN is delivered again (strategy
    `release`). `validate` is `publish`, `handle`, both or neither; the default with a catalog is
    both. `max_deliveries` is the number of deliveries, counted by the broker, after which no
    handler gets the message; 0 is no limit. A message that kills its process never fails in a
    handler, so only the broker can count it. But the broker also counts messages that were only
    fetched or released. `max_lease` is the time for which a worker may renew the lease of a
    message; 0 renews nothing.
    """

    queue: str = DEFAULT_QUEUE
    concurrency: int = 1
    prefetch: int = 100
    max_attempts: int = MAX_ATTEMPTS
    max_deliveries: int = 0
    backoff: Backoff = field(default_factory=lambda: Backoff(1, 2, 60, "full"))
    dead_letter: bool = True
    dead_letter_queue: str = ""
    dead_letter_suffix: str | None = None
    on_unknown_urn: str = "fail"
    release_delay: float = 1.0
    shutdown_timeout: float = 30.0
    validate: str | None = None
    on_unknown_schema: str = "allow"
    max_lease: float = 3600.0

    def __post_init__(self) -> None:
        for name in ("concurrency", "max_attempts"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"{name} must be 1 or more, not {getattr(self, name)}", code="setting"
                )
        for name in (
            "prefetch", "max_deliveries", "release_delay", "shutdown_timeout", "max_lease",
        ):  # fmt: skip
            if not isfinite(getattr(self, name)) or getattr(self, name) < 0:
                raise UsageError(
                    f"{name} must be 0 or more, not {getattr(self, name)}", code="setting"
                )
        if self.on_unknown_urn not in STRATEGIES:
            hint = f"use one of {', '.join(STRATEGIES)}"
            raise UsageError(f"unknown strategy {self.on_unknown_urn!r}", code="setting", hint=hint)
        if not self.queue:
            raise UsageError("the queue has no name", code="setting")

"""Publish committed messages: in order within each queue, marked after the broker confirms them.

One relay at a time works on a queue (`hold`). If it is killed, the queue is free at once on
PostgreSQL, and after the lease on SQLite.

A row that this broker cannot carry, or that its transport refuses (too large), is marked as failed
at once: another try cannot succeed. If the broker rejects a row but accepts others, the row is
tried again later and blocks its queue; after `tries` it is marked as failed and the queue
continues. While the broker is unreachable, no try is counted. If one queue is unreachable, the
others continue, and the log says why. Sent rows are deleted after `keep`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Event
from time import monotonic
from typing import Any, Final

import msgspec

from tallystick.core.binding import headers_of, project
from tallystick.core.envelope import decode
from tallystick.core.errors import Refused, Rejected, TallystickError, Unavailable, UsageError
from tallystick.core.frame import Frame
from tallystick.core.transport import Transport
from tallystick.runtime.address import Link, link_to
from tallystick.runtime.database import Busy
from tallystick.runtime.ids import new_uuid
from tallystick.runtime.outbox import Outbox, rows
from tallystick.runtime.outbox.hold import Hold, Lease, Overtaken, hold
from tallystick.runtime.telemetry import Probe, Telemetry, open_probe

__all__ = ["Relay", "Relayed", "Terms", "relay"]

_LOG: Final = logging.getLogger("tallystick.outbox")
_PAUSES: Final = (0.1, 0.3, 1.0, 3.0, 5.0)
_FAULTS: Final = (Refused, Rejected, UsageError, msgspec.MsgspecError, UnicodeDecodeError)
_SWEPT_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Terms:
    """The settings of a relay: batch size, tries, and the seconds of a lease and of sent rows."""

    batch: int = 100
    poll: float = 0.5
    lease: float = 30.0
    tries: int = 5
    keep: float = 86_400.0


@dataclass(frozen=True, slots=True)
class Relayed:
    """The result of a relay: how many messages were sent, and how many failed."""

    sent: int = 0
    faulty: int = 0

    def __add__(self, other: Relayed) -> Relayed:
        return Relayed(self.sent + other.sent, self.faulty + other.faulty)


def relay(
    store: str,
    broker: str,
    *,
    idle: float | None = None,
    stopping: Event | None = None,
    terms: Terms | None = None,
    telemetry: bool | Telemetry = False,
) -> Relayed:
    """Publish an outbox's rows until stopped, or until none came for `idle` seconds."""
    outbox = Outbox(store)
    link = link_to(broker)
    worker = Relay(outbox, link, terms or Terms(), open_probe(telemetry, link))
    try:
        return worker.run(stopping or Event(), idle=idle)
    finally:
        worker.close()
        outbox.close()


class Relay:
    """One connection to a broker, and an outbox."""

    def __init__(
        self, outbox: Outbox, link: Link, terms: Terms, probe: Probe | None = None
    ) -> None:
        self._outbox: Final = outbox
        self._database: Final = outbox.database
        self._link: Final = link
        self._terms: Final = terms
        self._probe: Final = probe
        self._lease: Final = Lease(new_uuid(), terms.lease, outbox.clock)
        self._transport: Transport | None = None
        self._ensured: Final[set[str]] = set()
        self._said: dict[str, str] = {}

    def run(self, stopping: Event, *, idle: float | None = None) -> Relayed:
        """Publish until stopped, or until idle for this time.

        An unreachable store or broker at the start is an error; later the relay waits for it, for
        `idle` seconds.
        """
        self._outbox.create()
        total, last, failures, works = Relayed(), monotonic(), 0, False
        while not stopping.is_set():
            try:
                done = self.step()
            except (TallystickError, Busy) as error:
                if not works or (idle is not None and monotonic() - last >= idle):
                    raise
                if not failures:
                    _LOG.warning("outbox: %s; will try again", error)
                stopping.wait(_PAUSES[min(failures, len(_PAUSES) - 1)])
                failures += 1
                continue
            failures, works = 0, True
            total += done
            if done != Relayed():
                last = monotonic()
            elif idle is not None and monotonic() - last >= idle:
                return total
            else:
                stopping.wait(self._terms.poll)
        return total

    def step(self) -> Relayed:
        """Publish one batch of every queue that has waiting rows and no other relay."""
        with self._database.borrow() as connection:
            queues = [queue for (queue,) in self._database.run(connection, rows.QUEUES)]
            sweep = {"keep": self._terms.keep, "most": _SWEPT_AT_ONCE}
            self._unless_busy(connection, rows.SWEEP, sweep)
        total, failed = Relayed(), dict[str, TallystickError | Busy]()
        for queue in queues:
            try:
                with hold(self._database, queue, self._lease) as held:
                    if held is not None:
                        total += self._publish(held, queue)
            except Overtaken:
                _LOG.warning(
                    "outbox: queue %s: another relay took over after the lease of %g s ended; "
                    "messages that were sent but not marked are sent again",
                    queue,
                    self._terms.lease,
                )
            except (TallystickError, Busy) as error:
                failed[queue] = error
        self._say(failed)
        if failed and total == Relayed():
            raise next(iter(failed.values()))
        return total

    def close(self) -> None:
        """End the connection to the broker."""
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _say(self, failed: Mapping[str, Exception]) -> None:
        """Log the error of a queue once, until the queue works again or the error changes."""
        faults = {queue: str(error) for queue, error in failed.items()}
        for queue, fault in faults.items():
            if self._said.get(queue) != fault:
                _LOG.warning("outbox: queue %s: %s", queue, fault)
        self._said = faults

    def _publish(self, held: Hold, queue: str) -> Relayed:
        transport = self._open()
        frames: list[tuple[rows.Row, Frame]] = []
        faulty = 0
        values = {"queue": queue, "most": self._terms.batch}
        for found in held.read(rows.NEXT, values):
            row = rows.Row(*found)
            if row.wait > 0:
                break
            try:
                frames.append((row, self._frame(transport, row, queue)))
            except _FAULTS as error:
                self._park(held, row, queue, error)
                faulty += 1
        if not frames:
            return Relayed(0, faulty)
        if queue not in self._ensured:
            transport.ensure([queue])
            self._ensured.add(queue)
        try:
            self._send(held, transport, queue, [frame for _, frame in frames])
        except (Unavailable, Refused) as error:
            _LOG.info(
                "outbox: queue %s: a batch failed, so its messages are sent one by one: %s",
                queue,
                error,
            )
            return self._one_by_one(held, transport, queue, frames) + Relayed(0, faulty)
        held.write(rows.mark_sent([row.position for row, _ in frames]), {})
        return Relayed(len(frames), faulty)

    def _one_by_one(
        self,
        held: Hold,
        transport: Transport,
        queue: str,
        frames: list[tuple[rows.Row, Frame]],
    ) -> Relayed:
        done = Relayed()
        for row, frame in frames:
            try:
                self._send(held, transport, queue, [frame])
            except Refused as error:
                self._park(held, row, queue, error)
                done = replace(done, faulty=done.faulty + 1)
                continue
            except Unavailable as error:
                try:
                    self._check_broker(queue)
                except Unavailable:
                    if done.sent:
                        return done  # the next step says that the broker is away
                    raise
                if row.tries + 1 < self._terms.tries:
                    wait = _PAUSES[min(row.tries, len(_PAUSES) - 1)]
                    values = {"position": row.position, "wait": wait, "error": str(error)}
                    held.write(rows.PUT_OFF, values)
                    return done
                self._park(held, row, queue, error)
                done = replace(done, faulty=done.faulty + 1)
                continue
            held.write(rows.mark_sent([row.position]), {})
            done = replace(done, sent=done.sent + 1)
        return done

    def _send(self, held: Hold, transport: Transport, queue: str, frames: list[Frame]) -> None:
        held.renew()
        if self._probe is None:
            transport.send(queue, frames)
            return
        headers = [headers_of(self._link.binding, frame.sections) for frame in frames]
        with self._probe.publishing(queue, headers):
            transport.send(queue, frames)
        self._probe.sent(queue, len(frames))

    def _frame(self, transport: Transport, row: rows.Row, queue: str) -> Frame:
        given = msgspec.json.decode(row.options, type=rows.Options)
        now = self._outbox.clock()
        options: dict[str, Any] = {"headers": given.headers, "key": given.key}
        if given.group:
            options["group"] = given.group
        if given.delay is not None and (left := row.created + given.delay - now) > 0:
            options |= {"delay": left, "now": now}
        envelope = decode(bytes(row.body))
        return project(
            self._link.binding,
            envelope,
            queue=queue,
            **{**transport.capabilities.options, **options},
        )

    def _park(self, held: Hold, row: rows.Row, queue: str, error: Exception) -> None:
        code = error.code if isinstance(error, TallystickError) else type(error).__name__
        _LOG.warning("outbox: queue %s: message %s cannot be sent (%s)", queue, row.id, code)
        values = {"position": row.position, "error": str(error)}
        held.write(rows.PARK, values)

    def _check_broker(self, queue: str) -> None:
        """Raise if the broker does not accept a new connection: then no row is at fault."""
        probe = self._link.open()
        try:
            probe.ensure([queue])
        finally:
            probe.close()

    def _unless_busy(self, connection: Any, statement: str, values: dict[str, Any]) -> None:
        try:
            self._database.run(connection, statement, values)
        except Busy:
            _LOG.debug("outbox: the store is busy; sent rows will be deleted later")

    def _open(self) -> Transport:
        if self._transport is None:
            self._transport = self._link.open()
        return self._transport

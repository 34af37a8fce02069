"""`deliveries`: sent messages compared with received ones, one row per message.

Both logs are one table and are grouped once by the message's key, two numbers. There is no join, so
many redeliveries cost nothing extra. The log holds numbers (`events`); a small table adds the names
at the end.

    delivered   sent and received                  lost         sent, never received
    unexpected  received, never sent               unobserved   the other side was not captured

Broker, queue and URN are those of the sender, even if a capture of the receiver left one out: a
message has the same names whatever its outcome. Only a message that was never sent has those of the
receiver.

A copy is a delivery beyond the number of sends; a retry (another count of attempts) is not a copy.
Altered means other bytes, apart from `attempts` and the dead-letter block. Reordered means that a
later message of the same sender on the same queue was received before. Order is that of the
programs' sequence numbers, else of their clocks; a message that was sent twice has no position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import Frames, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TABLE", "pair_events"]

_SCHEMA: Final = pa.schema(
    [
        ("key_high", pa.int64()),
        ("key_low", pa.int64()),
        ("outcome", pa.string()),
        ("sent", pa.int64()),
        ("received", pa.int64()),
        ("copies", pa.int64()),
        ("altered", pa.bool_()),
        ("reordered", pa.bool_()),
        ("broker", pa.string()),
        ("queue", pa.string()),
        ("urn", pa.string()),
        ("sender", pa.string()),
        ("receiver", pa.string()),
        ("sent_at", pa.int64()),
        ("received_at", pa.int64()),
        ("clock_error", pa.int64()),
    ]
)

_TOGETHER: Final = 500_000
"""So many events are grouped at once: even if each is of another message, they fit the share that
a task has of a heap of 1 GB. More would be sorted on disk; fewer pay for more and smaller files.
Spark's table of groups doubles beyond 2^18 of them: of messages sent and received once, there are a
few less."""

_PAIRS: Final = """
    select key_high, key_low,
        count_if(round < 0) as sent, count_if(round >= 0) as received,
        min(if(round < 0, flow, null)) as sent_flow,
        min(if(round < 0, null, flow)) as received_flow,
        min(if(round < 0, moment, null)) as sent_at,
        min(if(round < 0, null, moment)) as received_at,
        max(if(round < 0, clock_error, null)) as sent_error,
        max(if(round < 0, null, clock_error)) as received_error,
        min(if(round < 0, place, null)) as sent_place,
        min(if(round < 0, null, place)) as received_place,
        min(if(round < 0, content, null)) as sent_low,
        max(if(round < 0, content, null)) as sent_high,
        min(if(round < 0, null, content)) as received_low,
        max(if(round < 0, null, content)) as received_high,
        bit_count(bit_or(if(round < 0, 0L, shiftleft(1L, cast(round as int))))) as rounds
    from (select /*+ REPARTITION({parts}, key_high) */ key_high, key_low, content, moment,
                 clock_error, place, flow, if(sends, -1L, least(attempts, 62L)) as round
          from events)
    group by key_high, key_low
"""


def pair_events(events: int) -> str:
    """Give the SQL for everything about one message in numbers, of about so many events.

    It is one aggregation that never falls back to sorting. Rows move before they are grouped: of
    each key there are few, so grouping them first gains nothing, and what it would move instead is
    twice as wide. `round` is the count of attempts; below 0 is sent.
    """
    return _PAIRS.format(parts=events // _TOGETHER + 2)


def _build(frames: Frames) -> DataFrame:
    session = frames.session
    frames["events"].createOrReplaceTempView("events")
    frames["ways"].createOrReplaceTempView("way_parts")
    session.sql(
        """
        select flow, first(broker) as broker, first(queue) as queue, first(urn) as urn,
               first(node) as node, bool_or(sends) as sends, bool_or(not sends) as receives
        from way_parts group by flow
        """
    ).createOrReplaceTempView("ways")
    session.sql(
        """
        select broker, queue, bool_or(sends) as has_sent, bool_or(receives) as has_received
        from ways group by broker, queue
        """
    ).createOrReplaceTempView("watched")
    session.sql(pair_events(frames.figures["messages"])).createOrReplaceTempView("pairs")
    return session.sql(
        """
        with ordered as (
            select *, coalesce(sent = 1 and received_place is not null and sent_place < max(
                if(sent = 1 and received_place is not null, sent_place, null)) over (
                partition by sent_flow, received_flow order by received_place, sent_place
                rows between unbounded preceding and 1 preceding), false) as reordered
            from pairs
        ), named as (
            select o.*, if(sent > 0, s.broker, r.broker) as broker,
                   if(sent > 0, s.queue, r.queue) as queue, if(sent > 0, s.urn, r.urn) as urn,
                   s.node as sender, r.node as receiver
            from ordered o left join ways s on o.sent_flow = s.flow
                           left join ways r on o.received_flow = r.flow
        )
        select key_high, key_low,
            case when sent > 0 and received > 0 then 'delivered'
                 when sent > 0 and w.has_received then 'lost'
                 when received > 0 and w.has_sent then 'unexpected'
                 else 'unobserved' end as outcome,
            sent, received,
            if(sent > 0, greatest(received - greatest(sent, rounds), 0), 0) as copies,
            coalesce(sent > 0 and received > 0 and not (received_low in (sent_low, sent_high)
                     and received_high in (sent_low, sent_high)), false) as altered,
            reordered, n.broker, n.queue, urn, sender, receiver, sent_at, received_at,
            try_add(sent_error, received_error) as clock_error
        from named n left join watched w on n.broker <=> w.broker and n.queue <=> w.queue
        """
    )


TABLE: Final = Table(
    name="deliveries",
    about="sent messages compared with received ones: delivered, lost, unexpected; copies, "
    "altered, reordered",
    schema=_SCHEMA,
    figures={
        "delivered": "count_if(outcome = 'delivered')",
        "lost": "count_if(outcome = 'lost')",
        "unexpected": "count_if(outcome = 'unexpected')",
        "unobserved": "count_if(outcome = 'unobserved')",
        "duplicated": "count_if(copies > 0)",
        "altered": "count_if(altered)",
        "reordered": "count_if(reordered)",
    },
    key=("key_high", "key_low"),
    inputs=("events", "ways"),
    checks=(
        "outcome in ('delivered', 'lost', 'unexpected', 'unobserved')",
        "sent + received > 0 and copies >= 0",
        "(outcome <> 'delivered') or (sent > 0 and received > 0)",
    ),
    unique=False,  # it is the key of the aggregation that makes the rows
    build=_build,
)

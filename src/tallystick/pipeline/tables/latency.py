"""`latency`: delivery times in nanoseconds, and the error of the clocks.

Sender and receiver each have their own clock. `clock_error` is the largest sum of their two error
bounds; the true value of each percentile lies within it. Null means that a capture did not state
its error. Percentiles are those of `buckets`: rounded down by less than 0.1 %.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.buckets import apart, bucket, ranked
from tallystick.pipeline.table import Frames, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TABLE"]

_SCHEMA: Final = pa.schema(
    [
        ("sender", pa.string()),
        ("receiver", pa.string()),
        ("broker", pa.string()),
        ("queue", pa.string()),
        ("urn", pa.string()),
        ("messages", pa.int64()),
        ("minimum", pa.int64()),
        ("p50", pa.int64()),
        ("p90", pa.int64()),
        ("p99", pa.int64()),
        ("maximum", pa.int64()),
        ("clock_error", pa.int64()),
    ]
)


_WAY: Final = "sender, receiver, broker, queue, urn"


def _build(frames: Frames) -> DataFrame:
    frames["deliveries"].createOrReplaceTempView("delivered_rows")
    frames.session.sql(
        f"""
        with taken as (
            select *, {apart("received_at", "sent_at")} as nanoseconds from delivered_rows
            where outcome = 'delivered' and sent_at is not null and received_at is not null
        )
        select {_WAY}, {bucket("nanoseconds")} as bucket, count(*) as messages,
            min(nanoseconds) as minimum, max(nanoseconds) as maximum,
            max(clock_error) as clock_error, count(clock_error) as bounded
        from taken group by {_WAY}, bucket
        """  # noqa: S608 - constants of this file
    ).createOrReplaceTempView("counted_latency")
    bound = "if(sum(bounded) = sum(messages), max(clock_error), null) as clock_error"
    return frames.session.sql(ranked("counted_latency", _WAY, bound))


TABLE: Final = Table(
    name="latency",
    about="percentiles by sender, receiver, broker and URN, with the error bound of the clocks",
    schema=_SCHEMA,
    key=("sender", "receiver", "broker", "queue", "urn"),
    inputs=("deliveries",),
    checks=("minimum <= p50 and p50 <= p90 and p90 <= p99 and p99 <= maximum", "messages > 0"),
    build=_build,
)

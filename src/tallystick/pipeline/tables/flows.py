"""`flows`: which URN causes which.

The cause of a message is what its sender received last before it in the same trace; both times are
of one clock, so the delay has no clock error. A message whose sender received nothing in that trace
is a source: its cause is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import Frames, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TABLE"]

_SCHEMA: Final = pa.schema(
    [
        ("cause", pa.string()),
        ("effect", pa.string()),
        ("node", pa.string()),
        ("messages", pa.int64()),
        ("traces", pa.int64()),
        ("delay_p50", pa.int64()),
        ("delay_p99", pa.int64()),
        ("first_at", pa.int64()),
        ("last_at", pa.int64()),
    ]
)


def _build(frames: Frames) -> DataFrame:
    frames["envelopes"].createOrReplaceTempView("flow_envelopes")
    return frames.session.sql(
        """
        with steps as (
            select xxhash64(trace_id) as trace, node, at, direction, urn,
                last(if(direction = 'received', struct(urn, at), null), true) over (
                    partition by xxhash64(trace_id), node order by at, direction
                    rows between unbounded preceding and 1 preceding) as before
            from flow_envelopes where direction in ('sent', 'received') and at is not null
        )
        select before.urn as cause, urn as effect, node, count(*) as messages,
            approx_count_distinct(trace, 0.01) as traces,
            percentile_approx(at - before.at, 0.5, 100000) as delay_p50,
            percentile_approx(at - before.at, 0.99, 100000) as delay_p99,
            min(at) as first_at, max(at) as last_at
        from steps where direction = 'sent' group by before.urn, urn, node
        """
    )


TABLE: Final = Table(
    name="flows",
    about="which URN causes which, by trace: the event-flow map, with rates and delays",
    schema=_SCHEMA,
    figures={"flows": "count(*)"},
    key=("cause", "effect", "node"),
    inputs=("envelopes",),
    checks=("messages > 0 and traces > 0", "cause is null or delay_p50 >= 0"),
    build=_build,
)

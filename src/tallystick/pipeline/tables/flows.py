"""`flows`: which URN causes which.

The cause of a message is the last message that its sender received before it in the same trace.
Both times are of one clock, so the delay has no clock error. If the sender received nothing in that
trace, the message is a source: its cause is null.
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


_STEP: Final = "cause_number, urn_number, node_number"


def _build(frames: Frames) -> DataFrame:
    """Everything is done in numbers; the names come at the end."""
    session = frames.session
    frames["events"].createOrReplaceTempView("events")
    frames["ways"].createOrReplaceTempView("way_parts")
    session.sql(
        """
        select flow, first(urn_number) as urn_number, first(node_number) as node_number,
               first(urn) as urn, first(node) as node
        from way_parts group by flow
        """
    ).createOrReplaceTempView("numbered_ways")
    session.sql(
        f"""
        with steps as (
            select trace_high, trace_low, node_number, urn_number, moment, sends,
                last(if(sends, null, struct(urn_number, moment)), true) over (
                    partition by trace_high, trace_low, node_number
                    order by moment, sends, urn_number
                    rows between unbounded preceding and 1 preceding) as before
            from events join numbered_ways using (flow)
            where trace_high is not null and moment is not null
        ), sent as (
            select before.urn_number as cause_number, urn_number, node_number, moment,
                {apart("moment", "before.moment")} as delay,
                row_number() over (
                    partition by trace_high, trace_low, node_number, before.urn_number, urn_number
                    order by moment) = 1 as is_first
            from steps where sends
        )
        select {_STEP}, {bucket("delay")} as bucket, count(*) as messages,
            count_if(is_first) as traces, min(moment) as first_at, max(moment) as last_at,
            min(delay) as minimum, max(delay) as maximum
        from sent group by {_STEP}, bucket
        """  # noqa: S608 - constants of this file
    ).createOrReplaceTempView("counted_flows")
    carried = "sum(traces) as traces, min(first_at) as first_at, max(last_at) as last_at"
    session.sql(ranked("counted_flows", _STEP, carried)).createOrReplaceTempView("ranked_flows")
    return session.sql(
        """
        with urns as (select distinct urn_number, urn from numbered_ways),
             nodes as (select distinct node_number, node from numbered_ways)
        select c.urn as cause, e.urn as effect, n.node, messages, traces, p50 as delay_p50,
               p99 as delay_p99, first_at, last_at
        from ranked_flows f left join urns c on f.cause_number = c.urn_number
            join urns e on f.urn_number = e.urn_number
            join nodes n on f.node_number = n.node_number
        """
    )


TABLE: Final = Table(
    name="flows",
    about="which URN causes which, by trace, with rates and delays",
    schema=_SCHEMA,
    figures={"flows": "count(*)"},
    key=("cause", "effect", "node"),
    inputs=("events", "ways"),
    checks=("messages > 0 and traces > 0", "cause is null or delay_p50 >= 0"),
    build=_build,
)

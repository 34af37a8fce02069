"""`summary`: one row for each figure of a run, for people and for `--fail-if`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import Frames, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TABLE"]

_SCHEMA: Final = pa.schema([("figure", pa.string()), ("value", pa.int64())])
_INPUTS: Final = (
    "messages", "quarantine", "violations", "coverage", "deliveries", "drift", "exposure", "flows",
    "verdicts", "flaky_circuits",
)  # fmt: skip


def _build(frames: Frames) -> DataFrame:
    for name in _INPUTS:
        frames[name].createOrReplaceTempView(f"summary_{name}")
    return frames.session.sql(
        """
        select stack(4, 'messages', total, 'valid', valid, 'unknown', unknown, 'refused', refused)
               as (figure, value)
        from (select count(*) as total, count_if(verdict = 'valid') as valid,
              count_if(verdict = 'unknown') as unknown, count_if(verdict = 'refused') as refused
              from summary_messages)
        union all
        select concat('refused.', stage), count(*) from summary_quarantine group by stage
        union all
        select stack(7, 'delivered', delivered, 'lost', lost, 'unexpected', unexpected,
                     'unobserved', unobserved, 'duplicated', duplicated, 'altered', altered,
                     'reordered', reordered)
        from (select count_if(outcome = 'delivered') as delivered,
              count_if(outcome = 'lost') as lost,
              count_if(outcome = 'unexpected') as unexpected,
              count_if(outcome = 'unobserved') as unobserved, count_if(copies > 0) as duplicated,
              count_if(altered) as altered, count_if(reordered) as reordered
              from summary_deliveries)
        union all select 'violations', count(*) from summary_violations
        union all select 'unregistered', count(*) from summary_coverage where not registered
        union all select 'never_seen', count(*) from summary_coverage where not seen
        union all select 'drifting', coalesce(sum(messages), 0) from summary_drift
        union all select 'exposed', count(*) from summary_exposure where basis <> 'mark'
        union all select 'flows', count(*) from summary_flows
        union all select 'verdicts', count(*) from summary_verdicts
        union all select 'flaky', count(*) from summary_flaky_circuits
        """
    )


TABLE: Final = Table(
    name="summary",
    about="one row for each figure of the run",
    schema=_SCHEMA,
    key=("figure",),
    inputs=_INPUTS,
    checks=("figure is not null and value >= 0",),
    build=_build,
)

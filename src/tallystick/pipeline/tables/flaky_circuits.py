"""`flaky_circuits`: cases that passed in some runs and failed in others, by implementation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import Frames, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TABLE"]

_SCHEMA: Final = pa.schema(
    [
        ("suite", pa.string()),
        ("subject", pa.string()),
        ("case", pa.string()),
        ("runs", pa.int64()),
        ("passed", pa.int64()),
        ("failed", pa.int64()),
        ("first_failed", pa.string()),
        ("last_failed", pa.string()),
    ]
)


def _build(frames: Frames) -> DataFrame:
    frames["verdicts"].createOrReplaceTempView("verdict_rows")
    return frames.session.sql(
        """
        select suite, subject, case, count(*) as runs, count_if(outcome = 'passed') as passed,
            count_if(outcome in ('failed', 'errored')) as failed,
            min(if(outcome in ('failed', 'errored'), time, null)) as first_failed,
            max(if(outcome in ('failed', 'errored'), time, null)) as last_failed
        from verdict_rows group by suite, subject, case
        having passed > 0 and failed > 0
        """
    )


TABLE: Final = Table(
    name="flaky_circuits",
    about="cases that passed in some runs and failed in others",
    schema=_SCHEMA,
    figures={"flaky": "count(*)"},
    key=("suite", "subject", "case"),
    inputs=("verdicts",),
    checks=("passed > 0 and failed > 0 and passed + failed <= runs",),
    build=_build,
)

"""`exposure`: personal data by mark, and by evidence in fields without a mark.

An e-mail address or a telephone number is evidence by its form. A number may pass a checksum by
chance, so it counts if four in five of the values of that form at that path pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tallystick.pipeline.arrow import pa
from tallystick.pipeline.table import Batch, Counts, Frames, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TABLE"]

_SHARE: Final = 0.8
_PARTIAL: Final = pa.schema(
    [
        ("urn", pa.string()),
        ("path", pa.string()),
        ("basis", pa.string()),
        ("category", pa.string()),
        ("messages", pa.int64()),
    ]
)
_SCHEMA: Final = _PARTIAL.append(pa.field("of_form", pa.int64()))


def _count(batch: Batch, counts: Counts) -> None:
    for one in batch.judged:
        for exposure in one.exposures:
            key = (one.urn, *exposure)
            counts[key] = counts.get(key, 0) + 1


def _build(frames: Frames) -> DataFrame:
    frames["exposure"].createOrReplaceTempView("exposure_parts")
    return frames.session.sql(
        f"""
        with seen as (
            select urn, path, basis, category, sum(messages) as messages
            from exposure_parts group by urn, path, basis, category
        ), forms as (
            select *, sum(messages) over (partition by urn, path, basis) as of_form,
                   sum(if(category = '', 0, messages)) over (partition by urn, path, basis) as hits
            from seen
        )
        select urn, path, basis, category, messages, of_form from forms
        where basis <> 'checksum' or (category <> '' and hits >= {_SHARE} * of_form)
        """  # noqa: S608 - a constant of this file
    )


TABLE: Final = Table(
    name="exposure",
    about="personal data: marked fields, and unmarked fields whose values look like personal data",
    schema=_SCHEMA,
    figures={"exposed": "count_if(basis <> 'mark')"},
    key=("urn", "path", "basis", "category"),
    inputs=("exposure",),
    checks=("messages > 0 and messages <= of_form", "basis in ('mark', 'form', 'checksum')"),
    partial=_PARTIAL,
    count=_count,
    build=_build,
)

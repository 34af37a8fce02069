"""Percentiles that are equal on every engine: times are counted in buckets, then ranked.

A time keeps its 11 highest binary digits, so a bucket is less than 0.1 % wide. There are few
buckets, and their counts can be added in any order and on any number of machines; an exact rank
would need all values of a group in one place. A percentile is the bucket of the first value that
reaches this share, and is never outside the minimum and the maximum. Clocks may be centuries apart:
a time beyond 64 bits counts as the longest possible time.
"""

from __future__ import annotations

from typing import Final

__all__ = ["LONGEST", "apart", "bucket", "ranked"]

LONGEST: Final = 2**63 - 1
_DIGITS: Final = 11
_PERCENTS: Final = (50, 90, 99)


def apart(later: str, earlier: str) -> str:
    """Give the SQL for the time between two moments; the earlier may be null."""
    beyond = f"if({later} < {earlier}, -{LONGEST}L, {LONGEST}L)"
    found = f"greatest(coalesce(try_subtract({later}, {earlier}), {beyond}), -{LONGEST}L)"
    return f"if({earlier} is null, null, {found})"


def bucket(value: str) -> str:
    """Give the SQL for the bucket of a whole number, which may be negative."""
    shift = f"greatest(length(bin(abs({value}))) - {_DIGITS}, 0)"
    size = f"shiftleft(shiftright(abs({value}), {shift}), {shift})"
    return f"if({value} < 0, -{size}, {size})"  # sign() is a double, which has too few digits


def ranked(counted: str, keys: str, carried: str) -> str:
    """Give the SQL for percentiles (p50, p90, p99) of counted buckets.

    `counted` is a table with the `keys`, `bucket` (or null), `messages`, `minimum` and `maximum`;
    `carried` are further aggregates over its rows.
    """
    found = ", ".join(
        f"greatest(least(min(if(100 * rank >= {percent} * messages_in_all, bucket, null)), "
        f"max(maximum)), min(minimum)) as p{percent}"
        for percent in _PERCENTS
    )
    return f"""
        select {keys}, sum(messages) as messages, min(minimum) as minimum,
            max(maximum) as maximum, {carried}, {found}
        from (
            select *, sum(messages) over (partition by {keys} order by bucket) as rank,
                sum(messages) over (partition by {keys}) as messages_in_all
            from {counted})
        group by {keys}
    """  # noqa: S608 - constants of the tables

"""The charts of captured traffic, as SVG beside their figures.

Horizontal positions are in percent, so a chart fits any width and its text keeps its size; vertical
positions are in pixels. Each mark has its figures as data attributes and in a title; the same
figures are in the table around or below the chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, log10
from typing import Any, Final

from tallystick.report.markup import Markup, join, tag
from tallystick.report.units import count, duration, moment

__all__ = ["bar", "draw_acceptance", "draw_axis", "draw_latency", "latency_span", "legend", "stack"]

ACCEPTANCE: Final = {
    "valid": "valid",
    "unknown": "accepted, no schema",
    "violating": "violating its schema",
    "refused": "violating the contract",
}
"""The series of acceptance and how they are called."""
_BAR: Final = 14
_TALL: Final = 150
_LOW: Final = 70
_GAP: Final = 34
_TICKS: Final = (0, 25, 50, 75, 100)


def plot(label: str, height: int, *inside: Markup, **attributes: Any) -> Markup:
    """Give a picture with a name; its marks can be walked through by keys."""
    return tag(
        "svg", *inside, class_="plot", role="img", tabindex=0, aria_label=label, width="100%",
        height=height, **attributes,
    )  # fmt: skip


def legend(names: Mapping[str, str]) -> Markup:
    """Say which colour is which."""
    items = (
        tag("li", tag("svg", tag("rect", class_=key, width=12, height=12, rx=3), width=12,
                      height=12, aria_hidden="true"), " ", name)
        for key, name in names.items()
    )  # fmt: skip
    return tag("ul", *items, class_="legend")


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole if whole else 0:.3f}%"


def bar(label: str, value: int, most: int, kind: str) -> Markup:
    """Give one bar of a list; `most` is as wide as it gets."""
    mark = tag("rect", tag("title", f"{label}: {count(value)}"), class_=f"mark {kind}", x=0, y=0,
               rx=3, width=_percent(value, most), height=_BAR, data_value=value)  # fmt: skip
    return tag("svg", mark, class_="bar", width="100%", height=_BAR, aria_hidden="true")


def stack(label: str, values: Mapping[str, int], most: int) -> Markup:
    """Give one bar of parts, one after the other."""
    at, marks = 0, []
    for name, value in values.items():
        if value:
            marks.append(
                tag("rect", tag("title", f"{label}: {count(value)} {name}"), class_=f"mark {name}",
                    x=_percent(at, most), y=0, width=_percent(value, most), height=_BAR,
                    data_series=name, data_value=value)
            )  # fmt: skip
            at += value
    return tag("svg", *marks, class_="bar", width="100%", height=_BAR, aria_hidden="true")


def draw_acceptance(acceptance: Mapping[str, Any]) -> Markup:
    """Draw all records over time, and below, larger, those that are not simply valid."""
    buckets, start, width = (acceptance[name] for name in ("buckets", "start", "width"))
    rest = [{**one, "valid": 0} for one in buckets]
    times = [moment(start + at * width, width) for at in range(len(buckets) + 1)]
    below = _TALL + _GAP
    return plot(
        f"Records over time, {count(len(buckets))} steps of {duration(width)}",
        below + _LOW + 24,
        _panel("all", buckets, times, 14, _TALL - 14, "records"),
        _panel("rest", rest, times, below + 14, _LOW - 14, "records that are not simply valid"),
        *_dates(times, below + _LOW + 16),
        id="acceptance-plot",
    )


def _panel(
    name: str, buckets: Sequence[Mapping[str, int]], times: Sequence[str], top: int, tall: int,
    what: str,
) -> Markup:  # fmt: skip
    """Draw stacked columns on a scale of their own."""
    most = _round_up(max((sum(one.values()) for one in buckets), default=0))
    half = "" if most % 2 else count(most // 2)
    names = {0.0: "", 0.5: half, 1.0: f"{count(most)} {what}"}
    marks: list[Markup] = []
    scale: list[Markup] = []
    for share, told in names.items():
        y = top + tall * (1 - share)
        marks.append(tag("line", class_="grid", x1=0, x2="100%", y1=y, y2=y))
        scale.append(tag("text", told, class_="scale on-line", x=0, y=y - 3))
    for at, one in enumerate(buckets):
        bottom = float(top + tall)
        for series, value in one.items():
            if not value:
                continue
            high = tall * value / most
            bottom -= high
            marks.append(
                tag("rect", tag("title", f"{times[at]} UTC: {count(value)} {ACCEPTANCE[series]}"),
                    class_=f"mark {series}", x=_percent(at + 0.08, len(buckets)), y=bottom,
                    width=_percent(0.84, len(buckets)), height=high, data_panel=name, data_at=at,
                    data_series=series, data_value=value)
            )  # fmt: skip
    return tag("g", *marks, *scale)


def _dates(times: Sequence[str], y: int) -> list[Markup]:
    """Name five moments; a narrow screen hides the second and fourth."""
    made = []
    for share in _TICKS:
        text = times[round((len(times) - 1) * share / 100)]
        anchor = {0: "start", 100: "end"}.get(share, "middle")
        shown = text[11:] or text
        made.append(tag("text", shown, class_="scale minor" if share % 50 else "scale",
                        x=f"{share}%", y=y, text_anchor=anchor))  # fmt: skip
    return made


def _round_up(value: float) -> int:
    """Give the next number of the form 1, 2, 4, 5, 6, 8 times a power of ten."""
    if value <= 1:
        return 1
    power: int = 10 ** int(log10(value))
    return next(
        ceil(step * power) for step in (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
        if ceil(step * power) >= value
    )  # fmt: skip


def latency_span(rows: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """Give the ends of the scale that all rows share, error bars inside; zero is always there."""
    ends = [row[name] + sign * (row["clock_error"] or 0)
            for row in rows for name in ("p50", "p99") for sign in (-1, 1)]  # fmt: skip
    return min(0, *ends), max(1, *ends)


def draw_axis(span: tuple[int, int]) -> Markup:
    """Draw the scale of latencies."""
    low, high = span
    step = _round_up((high - low) / 4)
    ticks = range(-(-low // step) * step, high + 1, step)
    marks = [
        tag("text", duration(at) if at else "0", class_="scale", x=_percent(at - low, high - low),
            y=12, text_anchor="start" if at - low < step / 4 else
            "end" if high - at < step / 4 else "middle")
        for at in ticks
    ]  # fmt: skip
    return tag("svg", *marks, class_="bar", width="100%", height=16)


_LANES: Final = (("p50", 5), ("p90", 14), ("p99", 23))


def draw_latency(row: Mapping[str, Any], span: tuple[int, int], label: str) -> Markup:
    """Draw the percentiles of one way, each with the clocks' error around it."""
    low, high = span
    error = row["clock_error"]
    zero = _percent(-low, high - low)
    marks = [tag("line", class_="grid", x1=zero, x2=zero, y1=0, y2=28)]
    for name, y in _LANES:
        value = row[name]
        ends = [_percent(value + sign * (error or 0) - low, high - low) for sign in (-1, 1)]
        bars = [tag("line", class_="error", x1=ends[0], x2=ends[1], y1=y, y2=y)]
        bars += [tag("line", class_="error", x1=one, x2=one, y1=y - 3, y2=y + 3) for one in ends]
        told = "clock error unknown" if error is None else f"± {duration(error)}"
        marks.append(
            tag("g", tag("title", f"{label}, {name}: {duration(value)}, {told}"),
                *(bars if error is not None else ()),
                tag("circle", class_=name, cx=_percent(value - low, high - low), cy=y, r=4),
                class_="mark", data_percentile=name, data_value=value, data_error=error)
        )  # fmt: skip
    return tag("svg", join(marks), class_="bar", width="100%", height=28, aria_hidden="true")

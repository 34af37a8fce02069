"""Draw the event-flow map: a box for each URN, an arrow to each URN that it causes.

The rows of `flows` are by program; an arrow joins the rows with the same cause and effect. A URN
that starts a trace has a short arrow. A URN without a cause and an effect is listed below the map.
The table beside the map has every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import Any, Final

from tallystick.report.flow_layout import Layout, Route, arrange
from tallystick.report.markup import Markup, tag
from tallystick.report.units import UNKNOWN, count, duration

__all__ = ["Flow", "draw_map", "join_flows"]

_WIDE, _HIGH = 232, 46
_ACROSS, _DOWN = 392, 76
_EDGE: Final = 40
_TOP: Final = 44
_LETTERS: Final = 30


@dataclass(frozen=True, slots=True)
class Flow:
    """All messages of one effect after one cause."""

    cause: str | None
    effect: str
    messages: int
    programs: tuple[str, ...]
    delays: tuple[int, ...]
    span: int
    """Nanoseconds between the first and the last."""

    @property
    def rate(self) -> str:
        """Say how many a second."""
        return f"{self.messages * 1e9 / self.span:.3g}/s" if self.span > 0 else UNKNOWN

    @property
    def delay(self) -> str:
        """Say how long the cause was before the effect: the median, by program."""
        if not self.delays:
            return UNKNOWN
        ends = dict.fromkeys([duration(min(self.delays)), duration(max(self.delays))])
        return " to ".join(ends)


def join_flows(rows: Iterable[Mapping[str, Any]]) -> list[Flow]:
    """Join the rows of all programs for each cause and effect."""
    joined: dict[tuple[str | None, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        joined.setdefault((row["cause"], row["effect"]), []).append(row)
    return [
        Flow(
            cause, effect, sum(row["messages"] for row in held),
            tuple(dict.fromkeys(str(row["node"]) for row in held)),
            tuple(row["delay_p50"] for row in held if row["delay_p50"] is not None),
            max(row["last_at"] for row in held) - min(row["first_at"] for row in held),
        )
        for (cause, effect), held in joined.items()
    ]  # fmt: skip


def draw_map(flows: Sequence[Flow]) -> Markup:
    """Draw the map; nothing when no message has a cause."""
    arrows = {(flow.cause, flow.effect): flow for flow in flows if flow.cause is not None}
    if not arrows:
        return Markup()
    layout = arrange([(str(cause), effect) for cause, effect in arrows])
    starts = {flow.effect: flow for flow in flows if flow.cause is None}
    layers = max(layer for layer, _ in layout.places.values()) + 1
    rows = max(row for route in layout.routes for _, row in route.places)
    bent = any(route.back for route in layout.routes)
    size = (
        2 * _EDGE + _ACROSS * (layers - 1) + _WIDE,
        round(_TOP + _DOWN * rows + _HIGH + 20 + 44 * bent),
    )
    return tag(
        "svg",
        tag("defs", tag("marker", tag("path", d="M0,0 L8,4 L0,8 Z", class_="head"), id="head",
                        viewBox="0 0 8 8", refX=7, refY=4, markerWidth=9, markerHeight=9,
                        markerUnits="userSpaceOnUse", orient="auto")),
        *(_arrow(route, arrows[route.cause, route.effect]) for route in layout.routes),
        *(_box(name, layout, flows, starts.get(name)) for name in layout.places),
        class_="plot map", role="img", tabindex=0, width=size[0], height=size[1],
        viewBox=f"0 0 {size[0]} {size[1]}",
        aria_label=f"Event-flow map: {len(layout.places)} URNs, {len(arrows)} arrows",
    )  # fmt: skip


def _corner(place: tuple[int, float]) -> tuple[float, float]:
    layer, row = place
    return _EDGE + _ACROSS * layer, _TOP + _DOWN * row


def _box(name: str, layout: Layout, flows: Sequence[Flow], start: Flow | None) -> Markup:
    x, y = _corner(layout.places[name])
    total = sum(flow.messages for flow in flows if flow.effect == name)
    senders = dict.fromkeys(
        program for flow in flows if flow.effect == name for program in flow.programs
    )
    told = f"{name}: {count(total)} sent by {', '.join(senders) or 'an unknown program'}"
    begins = f", {count(start.messages)} of them start a trace" if start else ""
    short = name if len(name) <= _LETTERS else f"{name[:10]}…{name[-_LETTERS + 11 :]}"
    stub = [
        tag("path", class_="arrow", d=f"M{x - 34},{y + _HIGH / 2} h30", marker_end="url(#head)")
    ]
    return tag(
        "g",
        tag("title", told + begins),
        *(stub if start and not any(name == route.effect for route in layout.routes) else ()),
        tag("rect", class_="box", x=x, y=y, width=_WIDE, height=_HIGH, rx=9),
        tag("text", short, class_="name", x=x + _WIDE / 2, y=y + 19, text_anchor="middle"),
        tag("text", f"{count(total)} sent · {', '.join(senders) or UNKNOWN}"[:38], class_="scale",
            x=x + _WIDE / 2, y=y + 36, text_anchor="middle"),
        class_="mark node", data_urn=name, data_value=total,
    )  # fmt: skip


def _arrow(route: Route, flow: Flow) -> Markup:
    path, (x, y) = _bend(route)
    wide = 1.5 + min(log10(max(flow.messages, 1)), 6) * 0.6
    told = (
        f"{flow.cause} causes {flow.effect}: {count(flow.messages)} messages, {flow.rate}, "
        f"median delay {flow.delay}, by {', '.join(flow.programs)}"
    )
    return tag(
        "g",
        tag("title", told),
        tag("path", class_="arrow back" if route.back else "arrow", d=path, stroke_width=wide,
            marker_end="url(#head)"),
        tag("text", f"{count(flow.messages)} · {flow.rate} · {flow.delay}", class_="scale on-line",
            x=x, y=y - 8, text_anchor="middle"),
        class_="mark flow", data_cause=flow.cause, data_effect=flow.effect,
        data_value=flow.messages, data_delay=min(flow.delays, default=None),
    )  # fmt: skip


def _bend(route: Route) -> tuple[str, tuple[float, float]]:
    """Return the path of an arrow, and the place of its label."""
    x, y = _corner(route.places[0])
    end_x, end_y = _corner(route.places[-1])
    if route.cause == route.effect:
        top = x + _WIDE - 30
        return f"M{top - 40},{y} c0,-30 50,-30 50,-1", (top - 15, y - 27)
    if route.back:
        low = max(y, end_y) + _HIGH + 40
        from_x, to_x = x + _WIDE * 0.4, end_x + _WIDE * 0.6
        path = f"M{from_x},{y + _HIGH} C{from_x},{low} {to_x},{low} {to_x},{end_y + _HIGH + 3}"
        return path, ((from_x + to_x) / 2, low - 8)
    middle = _HIGH / 2
    x, y = x + _WIDE, y + middle
    path = f"M{x},{y}"
    label = (0.0, 0.0)
    for at, place in enumerate(route.places[1:]):
        to_x, to_y = _corner(place)
        to_y += middle
        half = (x + to_x) / 2
        path += f" C{half},{y} {half},{to_y} {to_x},{to_y}"
        if at == 0:
            label = (half, (y + to_y) / 2)
        x, y = to_x, to_y
        if place is not route.places[-1]:
            path += f" h{_WIDE}"
            x += _WIDE
    return path, label

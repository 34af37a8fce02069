"""The layout of a graph, and markup, for any names and any arrows."""

from __future__ import annotations

from html.parser import HTMLParser
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tallystick.report.flow_layout import arrange
from tallystick.report.flow_map import draw_map, join_flows
from tallystick.report.markup import tag
from tallystick.report.units import count, duration, moment, octets, share

NAMES = st.integers(0, 9).map(str)
ARROWS = st.lists(st.tuples(NAMES, NAMES), unique=True, min_size=1, max_size=25)


@given(ARROWS)
def test_boxes_never_overlap_and_arrows_lead_on_unless_they_close_a_cycle(
    arrows: list[tuple[str, str]],
) -> None:
    layout = arrange(arrows)
    assert set(layout.places) == {name for arrow in arrows for name in arrow}
    assert [(one.cause, one.effect) for one in layout.routes] == arrows
    taken = sorted(
        {place for route in layout.routes for place in route.places} | set(layout.places.values())
    )
    for (layer, row), (next_layer, next_row) in pairwise(taken):
        assert layer != next_layer or next_row - row > 0.999
    assert min(row for _, row in taken) >= 0
    for route in layout.routes:
        assert route.places[0] == layout.places[route.cause]
        assert route.places[-1] == layout.places[route.effect]
        layers = [layer for layer, _ in route.places]
        if route.back:
            assert layers[0] >= layers[-1]
        else:
            assert layers == list(range(layers[0], layers[-1] + 1))
            assert len(layers) > 1


@given(ARROWS)
def test_what_closes_no_cycle_does_not_run_back(arrows: list[tuple[str, str]]) -> None:
    forward = [(a, b) for a, b in arrows if a < b]
    assert not any(route.back for route in arrange(forward).routes)


def row(cause: str | None, effect: str, node: str, messages: int, delay: int) -> dict[str, object]:
    return {"cause": cause, "effect": effect, "node": node, "messages": messages,
            "delay_p50": delay, "first_at": 0, "last_at": 2_000_000_000}  # fmt: skip


def test_an_arrow_joins_the_rows_of_all_programs() -> None:
    (flow,) = join_flows([row("a", "b", "x", 3, 1_000_000), row("a", "b", "y", 7, 2_000_000)])
    assert (flow.messages, flow.programs, flow.rate) == (10, ("x", "y"), "5/s")
    assert flow.delay == "1 ms to 2 ms"
    assert draw_map([flow]).count('class="mark flow"') == 1


def test_nothing_is_drawn_when_nothing_has_a_cause() -> None:
    assert draw_map(join_flows([row(None, "b", "x", 3, 0)])) == ""


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[object] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.seen.append(data)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_text_stays_text_inside_and_in_attributes(text: str) -> None:
    reader = Reader()
    reader.feed(tag("b", text, data_x=text))
    reader.close()
    assert reader.seen[0] == ("b", [("data-x", text)])
    assert "".join(map(str, reader.seen[1:])) == text


def test_figures_are_written_as_people_read_them() -> None:
    assert (count(1234567), count(None)) == ("1,234,567", "\N{EN DASH}")
    assert (share(1999, 2000), share(1_999_999, 2_000_000)) == ("99.95 %", "99.99 %")
    assert (share(2, 2), share(0, 2), share(1, 10**6)) == ("100 %", "0 %", "0.01 %")
    assert (duration(7_750_000), duration(-1_500), duration(0)) == ("7.75 ms", "-1.5 µs", "0 ns")
    assert (octets(0), octets(1536)) == ("0 B", "1.5 KiB")
    assert moment(1_749_132_726_500_000_000, 500_000_000) == "2025-06-05 14:12:06.500"
    assert moment(1_749_132_726_000_000_000, 60_000_000_000) == "2025-06-05 14:12"
    assert moment(0, 86_400_000_000_000) == "1970-01-01"
    assert moment(2**63 - 1, 1_000_000_000).startswith("2262-04-11")

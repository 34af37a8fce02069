"""The tables of a page: text left-aligned, counts right-aligned; wide tables scroll."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tallystick.report.markup import Markup, join, tag
from tallystick.report.units import count

__all__ = ["code", "details", "figure", "names", "nothing", "table", "way"]

Cell = str | float | None
"""What stands in a table: text, markup, or a count."""
_NAMES: Final = 3


def nothing(why: str) -> list[Markup]:
    """Say why there is nothing to show."""
    return [tag("p", why, class_="soft nothing")]


def table(
    name: str, head: Sequence[object], rows: Sequence[Sequence[Cell]], more: int = 0
) -> Markup:
    """Give a table of at least one row; the first column names the row."""
    cells = [[_cell(one) for one in row[1:]] for row in rows]
    heads = [tag("th", head[0], scope="col"), *map(_head, head[1:], cells[0])]
    lines = [
        tag("tr", tag("th", row[0], scope="row"), *held)
        for row, held in zip(rows, cells, strict=True)
    ]
    made = tag("table", tag("thead", tag("tr", *heads)), tag("tbody", *lines), aria_label=name)
    scroll = tag("div", made, class_="scroll", tabindex=0, role="region", aria_label=name)
    rest = tag("p", f"and {count(more)} more in the tables of the lake", class_="soft")
    return join([scroll, rest]) if more else scroll


def _head(name: object, cell: Markup) -> Markup:
    """Return the head of a column, aligned like its cells."""
    return tag("th", name, scope="col", class_="text" if cell.startswith("<td class") else None)


def _cell(value: Cell) -> Markup:
    """Return a cell: text left, counts right, `figure` unchanged, charts in their own width."""
    if isinstance(value, Markup) and value.startswith("<td"):
        return value
    if isinstance(value, str):
        drawn = isinstance(value, Markup) and value.startswith("<svg")
        return tag("td", value, class_="drawn" if drawn else "text")
    return tag("td", count(value))


def figure(text: str) -> Markup:
    """Give a figure that is written already, on the side of the counts."""
    return tag("td", text)


def code(text: object) -> Markup:
    """Give a name of the traffic; a narrow column breaks it behind a colon."""
    first, *rest = ("(none)" if text is None else str(text)).split(":")
    return tag("code", first, *(part for one in rest for part in (":", Markup("<wbr>"), one)))


def way(name: object, where: str) -> Markup:
    """Give a name, and below where it was seen."""
    return join([code(name), tag("span", where, class_="soft under")])


def names(every: Sequence[str]) -> str:
    """Name the first few."""
    rest = len(every) - _NAMES
    return ", ".join(every[:_NAMES]) + (f" and {rest} more" if rest > 0 else "")


def details(title: str, *inside: Markup) -> Markup:
    """Return a part that is shown on demand."""
    return tag("details", tag("summary", title), *inside)

"""The columns of a capture: the one declaration of its format, as a JSON line and as a row.

`CaptureRow` declares the columns in their order; each has its type, its meaning and its members in
a JSON line. The reader and the writer of the line (`core.capture`), the Arrow schema of a Parquet
capture and the columns of the lake are made from it. Tests compare it with `Capture`, with the
pipeline's `Record` and with docs/reference/capture.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, get_type_hints

from msgspec import Meta, Raw

__all__ = [
    "AROUND", "COLUMNS", "DIRECTIONS", "FORMAT", "LEAST", "MEMBERS", "MOST", "NUMBERS",
    "CaptureRow", "Column", "arrow_schema",
]  # fmt: skip

FORMAT: Final = 1
DIRECTIONS: Final = ("sent", "received", "tapped")
LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1
"""The smallest and the largest number of 64 bits."""


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds, beside its name and its Python type.

    `arrow` is the name of its type in `pyarrow`, and `json` describes its type in a line. `values`
    are the texts that it may have, if they are few; `least` is its smallest number. `members` are
    the names and types in a line, where they are not the column's own. A complete capture may lack
    only the columns that are `optional`.
    """

    arrow: str
    json: str
    meaning: str
    values: tuple[str, ...] = ()
    least: int = LEAST
    members: tuple[tuple[str, Any], ...] = ()
    optional: bool = False


class CaptureRow(NamedTuple):
    """One capture as a row. None means that the capture does not say it."""

    direction: Annotated[
        str | None,
        Column(
            "string",
            ", ".join(f'`"{name}"`' for name in DIRECTIONS),
            "the broker confirmed it; a consumer received it; a tap read it without consuming it",
            values=DIRECTIONS,
        ),
    ]
    broker: Annotated[
        str | None, Column("string", "text", "a name of `tally broker list`, or `memory`")
    ]
    queue: Annotated[
        str | None,
        Column(
            "string",
            "text",
            "the queue, as the runtime names it; for a frame in a Kafka retry tier, "
            "`sections.record.topic` has the topic",
        ),
    ]
    node: Annotated[str | None, Column("string", "text", "the program or client that saw it")]
    at: Annotated[
        int | None,
        Column("int64", "int from 0", "nanoseconds since the epoch, by the clock of `node`"),
    ]
    clock_error: Annotated[
        int | None,
        Column(
            "int64",
            "int from 0, may be absent",
            "the largest possible error of `at` in nanoseconds, where it is known",
            least=0,
            optional=True,
        ),
    ]
    sequence: Annotated[
        int | None,
        Column(
            "int64",
            "int from 0",
            "a counter per node and file. It counts every frame that was seen, also one that could "
            "not be stored: a gap, or a file that does not start at 0, shows lost captures",
        ),
    ]
    body: Annotated[
        bytes,
        Column(
            "binary",
            "text, or base64",
            "the bytes of the body: as text if they are valid UTF-8, otherwise as base64; exactly "
            "one of the two members is present",
            members=(("body", str | None), ("body64", str | None)),
        ),
    ]
    sections: Annotated[
        str | None,
        Column(
            "string",
            "object",
            "section -> key -> native value ([bindings](bindings.md) has the names); "
            "a Parquet file has the same JSON as text",
            members=(("sections", Raw),),
        ),
    ]


COLUMNS: Final[Mapping[str, Column]] = MappingProxyType(
    {
        name: hint.__metadata__[0]
        for name, hint in get_type_hints(CaptureRow, include_extras=True).items()
    }
)
"""Every column by its name, in order."""

AROUND: Final = tuple(name for name, column in COLUMNS.items() if not column.members)
"""The columns around the frame, which come first: a line has each under its own name."""

NUMBERS: Final = tuple(name for name, column in COLUMNS.items() if column.arrow == "int64")


def _member_type(column: Column) -> Any:
    """Give the type of a member that may be absent or null."""
    if column.arrow == "int64":
        return Annotated[int, Meta(ge=column.least, le=MOST)] | None
    text: Any = Literal.__getitem__(column.values) if column.values else str
    return text | None


MEMBERS: Final = tuple(
    member
    for name, column in COLUMNS.items()
    for member in column.members or ((name, _member_type(column)),)
)
"""The members of a line that hold the columns, with their types, in order."""


def arrow_schema(arrow: Any) -> Any:
    """Make the schema of a Parquet capture with the module `pyarrow`, which is loaded when used."""
    return arrow.schema([(name, getattr(arrow, each.arrow)()) for name, each in COLUMNS.items()])

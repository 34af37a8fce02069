"""A capture has one declaration, and all that names its columns agrees with it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa  # type: ignore[import-untyped]

from tallystick.core.capture import Capture, write
from tallystick.core.capture_columns import (
    AROUND,
    COLUMNS,
    MEMBERS,
    CaptureRow,
    arrow_schema,
)
from tallystick.core.frame import Frame

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "capture.md"
ARROW_TYPES = {str: "string", int: "int64", bytes: "binary"}


def test_the_columns_of_stored_captures_are_never_changed() -> None:
    assert arrow_schema(pa) == pa.schema([
        ("direction", pa.string()), ("broker", pa.string()), ("queue", pa.string()),
        ("node", pa.string()), ("at", pa.int64()), ("clock_error", pa.int64()),
        ("sequence", pa.int64()), ("body", pa.binary()), ("sections", pa.string()),
    ])  # fmt: skip


def test_the_members_of_a_line_are_never_changed() -> None:
    assert [name for name, _ in MEMBERS] == [
        "direction", "broker", "queue", "node", "at", "clock_error", "sequence", "body", "body64",
        "sections",
    ]  # fmt: skip
    for body, absent in ((b"{}", "body64"), (b"\xff", "body")):
        line = json.loads(write(Capture("sent", "kafka", "q", "n", 1, 0, Frame(body), 5)))
        assert list(line) == ["kind", "format", *(name for name, _ in MEMBERS if name != absent)]


def test_a_column_has_the_arrow_type_of_its_python_type() -> None:
    for name, hint in get_type_hints(CaptureRow).items():
        types = {kind for kind in getattr(hint, "__args__", (hint,)) if kind is not type(None)}
        assert {ARROW_TYPES[kind] for kind in types} == {COLUMNS[name].arrow}, name


def test_the_columns_of_the_frame_are_the_last() -> None:
    assert tuple(COLUMNS) == (*AROUND, "body", "sections")


def test_a_capture_has_a_field_for_every_column() -> None:
    names = {each.name for each in fields(Capture)}
    assert names - {"frame"} | {"body", "sections"} == set(COLUMNS)
    hints: dict[str, Any] = get_type_hints(Capture)
    rows = get_type_hints(CaptureRow)
    for name in AROUND:
        wanted = hints[name] if COLUMNS[name].optional else hints[name] | None
        assert rows[name] == wanted, name


def test_the_reference_page_has_the_declared_table() -> None:
    rows = [
        f"| {', or '.join(f'`{member}`' for member, _ in column.members) or f'`{name}`'} "
        f"| {column.json} | {column.arrow} | {column.meaning} |"
        for name, column in COLUMNS.items()
    ]
    table = PAGE.read_text().split("|---|---|---|---|\n")[1].split("\n\n")[0].splitlines()
    assert table[0].startswith("| `kind`, `format` |")
    assert table[1:] == rows


def test_the_declaration_loads_neither_arrow_nor_spark() -> None:
    program = (
        "import sys, tallystick.core.capture, tallystick.runtime.capture_finish\n"
        "sys.exit(bool({'pyarrow', 'pyspark'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_only_the_core_reads_and_writes_the_line() -> None:
    source = ROOT / "src" / "tallystick"
    named = [
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if "body64" in path.read_text()
    ]
    assert sorted(named) == ["core/capture.py", "core/capture_columns.py"]

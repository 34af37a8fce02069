"""The pages of a proof: their names in its folder, and the detail pages of its journals."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tallystick.cli.proof.bench import Bench
from tallystick.report.page import build_page

__all__ = ["PAGE", "TRAFFIC", "clear_pages", "write_details"]

PAGE: Final = "index.html"
TRAFFIC: Final = "traffic.html"
_SUITES: Final = "suites.html"
_LAB: Final = "lab.html"


def clear_pages(folder: Path) -> None:
    """Make the folder, and remove the pages of an earlier proof."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in (PAGE, TRAFFIC, _SUITES, _LAB):
        (folder / name).unlink(missing_ok=True)


def write_details(bench: Bench) -> None:
    """Write the page of every case of the suites, and that of the lab."""
    suites = [journal for board in bench.boards for journal in board.journals]
    for title, name, journals in (
        ("Every case of the suites", _SUITES, suites),
        ("Every case of the lab", _LAB, [*bench.lab.values()]),
    ):
        if journals:
            bench.path(name).write_text(build_page(journals), encoding="utf-8")
            bench.pages[title] = name

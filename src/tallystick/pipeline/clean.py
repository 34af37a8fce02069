"""Delete old runs from a lake and keep the last few, so that the lake does not grow for ever.

A part is deleted when no remaining run uses it. The ranges of logs stay while their rules are in
use, or while no other rules have judged them: they record how far a log was read, and may be the
only copy of records that the broker has deleted. When rules are removed, the checkpoints of their
streams are deleted first: a stream without a checkpoint continues after its parts, but a checkpoint
without its parts would skip them. A kill at any point never affects what remains.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tallystick.pipeline.lake import MANIFEST, Lake, read_manifest
from tallystick.pipeline.parts import MARK
from tallystick.pipeline.ranges import find_new, read_log, read_parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tallystick.pipeline.sources import Source

__all__ = ["KEEP", "Cleaned", "clean"]

KEEP: Final = 3
"""How many runs stay: whoever reads the tables of one has time until the third after it."""


@dataclass(frozen=True, slots=True)
class Cleaned:
    """How many runs and parts were taken away."""

    runs: int
    parts: int


def clean(lake: Lake, keep: int = KEEP, *, unfinished: bool = False) -> Cleaned:
    """Delete all but the last runs, and unfinished parts if no run is reading."""
    runs = _list_runs(lake.root)
    kept = runs[:keep]
    for folder, _ in runs[keep:]:
        hidden = folder.with_name(f".{folder.name}")  # what starts with a dot is nobody's
        folder.rename(hidden)
        shutil.rmtree(hidden)
    used = {
        (manifest["registry"]["rules"], one["key"])
        for _, manifest in kept
        for one in manifest["inputs"]
    }
    rules_kept = {manifest["registry"]["rules"] for _, manifest in kept}
    judged = {rules: read_parts(lake.part(rules, "")) for rules in sorted(rules_kept)}
    parts = 0
    for rules in sorted((lake.root / "parts").glob("*")):
        in_use = rules.name in rules_kept
        if not in_use:
            shutil.rmtree(lake.root / "streams" / rules.name, ignore_errors=True)
        for part in list(rules.iterdir()):
            place = part / MARK
            log = read_log(place) if place.exists() else None
            if not place.exists():
                may_go = unfinished
            elif log is None:
                may_go = (rules.name, part.name) not in used
            elif in_use:
                held = judged[rules.name].get(log.path, [])
                may_go = log not in held and not find_new(held, log)  # it is within a larger one
            else:
                may_go = _is_judged(judged.values(), log)
            if may_go:
                place.unlink(missing_ok=True)
                shutil.rmtree(part)
                parts += 1
        if not any(rules.iterdir()):
            rules.rmdir()
    return Cleaned(len(runs) - len(kept), parts)


def _list_runs(root: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Give the runs, the current one first and then the newest."""
    current = root / read_manifest(root)["folder"]

    def runs() -> Iterator[tuple[bool, int, Path]]:
        for place in (root / "runs").glob(f"[!.]*/{MANIFEST}"):
            yield place.parent == current, place.stat().st_mtime_ns, place.parent

    return [
        (folder, json.loads((folder / MANIFEST).read_bytes()))
        for _, _, folder in sorted(runs(), reverse=True)
    ]


def _is_judged(judged: Iterable[Mapping[str, Sequence[Source]]], log: Source) -> bool:
    """Tell whether rules that are in use have all of a range."""
    return any(log.path in parts and not find_new(parts[log.path], log) for parts in judged)

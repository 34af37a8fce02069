"""Compare two schemas in a mode: the verdict, the changes, and the witness of a break.

The verdict rests on proof (`tallystick.schemas.witness`): `compatible` when containment is proven
in each direction of the mode, `breaking` when a checked witness shows a break, `unknown` when
neither was found. The rows of `changes` show the places; a proven verdict overrides their effects.

The field policy of `babelqueue` adds two rules. A property the old schema never named may be
added when it is optional: the proof then speaks of old documents that do not use the name. And a
property may not be removed, whatever still validates; such a break has no witness, its row says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from tallystick.schemas.align import Alignment, align_fields
from tallystick.schemas.change_rows import Change
from tallystick.schemas.changes import find_changes
from tallystick.schemas.modes import mode_named
from tallystick.schemas.validate import Formats, compile_schema
from tallystick.schemas.values import pointer_of
from tallystick.schemas.witness import BUDGET, Clock, Proof, prove, self_contained_schema

__all__ = ["Comparison", "Verdict", "compare", "compare_bundled"]

Verdict = Literal["compatible", "breaking", "unknown"]
_VERDICTS: Final[dict[str, Verdict]] = {
    "contained": "compatible",
    "broken": "breaking",
    "unknown": "unknown",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The outcome for one pair; `has_witness` tells a witness of null from none at all.

    `direction` of the witness: `backward` was valid before and is rejected now,
    `forward` is valid now and was rejected before. `reason` explains an unknown verdict.
    """

    verdict: Verdict
    changes: tuple[Change, ...] = ()
    witness: Any = None
    has_witness: bool = False
    direction: str = ""
    reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Give the comparison as the data that `--json` prints."""
        return {
            "verdict": self.verdict,
            "changes": [
                {
                    "pointer": row.pointer,
                    "rule": row.rule,
                    "effect": row.effect,
                    "message": row.message,
                }
                for row in self.changes
            ],
            "witness": {"data": self.witness, "direction": self.direction}
            if self.has_witness
            else None,
            "reason": self.reason,
        }


def compare(
    old: Any,
    new: Any,
    mode: str = "strict",
    *,
    formats: Formats = "dialect",
    budget: int = BUDGET,
    clock: Clock | None = None,
) -> Comparison:
    """Compare two schemas that refer to no other file."""
    return compare_bundled(
        self_contained_schema(old, "old"),
        self_contained_schema(new, "new"),
        mode,
        formats=formats,
        budget=budget,
        clock=clock,
    )


def compare_bundled(
    old: Any,
    new: Any,
    mode: str = "strict",
    *,
    formats: Formats = "dialect",
    budget: int = BUDGET,
    clock: Clock | None = None,
) -> Comparison:
    """Compare two self-contained schemas; with a clock each direction ends within a second."""
    row = mode_named(mode)
    for schema in (old, new):
        compile_schema(schema, formats=formats)
    changes = find_changes(old, new)
    if not row.backward and not row.forward:
        return Comparison("compatible", tuple(replace(one, effect="compatible") for one in changes))
    fields = align_fields(old, new) if row.field_policy else Alignment()
    how: dict[str, Any] = {"formats": formats, "budget": budget, "clock": clock}
    proofs: list[tuple[str, Proof]] = []
    if row.backward:
        proofs.append(("backward", prove(old, new, within=fields.base, **how)))
    if row.forward:
        proofs.append(("forward", prove(new, old, **how)))
    if row.forward:
        changes = _turn(changes, find_changes(new, old), both=row.backward)
    return _conclude(changes, proofs, fields)


def _turn(
    changes: tuple[Change, ...], other_way: tuple[Change, ...], *, both: bool
) -> tuple[Change, ...]:
    """Give each row the effect it has on readers of the old schema, or on both kinds."""
    order = ("compatible", "unknown", "breaking")
    turned = {row.pointer: row.effect for row in other_way}
    out = []
    for row in changes:
        effect = turned.get(row.pointer, row.effect)
        worst = max(effect, row.effect, key=order.index) if both else effect
        out.append(replace(row, effect=worst))
    return tuple(out)


def _conclude(
    changes: tuple[Change, ...], proofs: list[tuple[str, Proof]], fields: Alignment
) -> Comparison:
    broken = next((pair for pair in proofs if pair[1].outcome == "broken"), None)
    if broken is not None:
        direction, proof = broken
        rows = _blame(_weigh(changes, fields, proven=False), proof, direction)
        return Comparison("breaking", rows, proof.witness, has_witness=True, direction=direction)
    if fields.removed:
        return Comparison("breaking", _name(_weigh(changes, fields, proven=True), fields.removed))
    doubts = [proof.reason for _, proof in proofs if proof.outcome == "unknown"]
    if not fields.complete:
        doubts.append("the schemas have too many fields to compare")
    if doubts:
        rows = _weigh(changes, fields, proven=False)
        return Comparison("unknown", rows, reason=doubts[0])
    return Comparison("compatible", _weigh(changes, fields, proven=True))


def _weigh(changes: tuple[Change, ...], fields: Alignment, *, proven: bool) -> tuple[Change, ...]:
    """Give each row its effect in this mode."""
    out = []
    for row in changes:
        effect = row.effect
        if row.pointer in fields.removed:
            effect = "breaking"
        elif proven or (
            row.pointer in fields.added and row.rule.startswith("optional-property-added")
        ):
            effect = "compatible"
        out.append(replace(row, effect=effect))
    return tuple(out)


def _name(rows: tuple[Change, ...], removed: tuple[str, ...]) -> tuple[Change, ...]:
    """Make sure that every removal has a row."""
    told = {row.pointer for row in rows}
    return (
        *rows,
        *(
            Change(one, "property-removed", "breaking", "this field was removed")
            for one in removed
            if one not in told
        ),
    )


def _blame(rows: tuple[Change, ...], proof: Proof, direction: str) -> tuple[Change, ...]:
    """Make sure that a break names its cause: what the validator holds against the witness."""
    if any(row.effect == "breaking" for row in rows):
        return rows
    word = "rejected now" if direction == "backward" else "rejected before"
    return (
        *rows,
        *(
            Change(_schema_place(one.pointer), one.keyword, "breaking", f"{word}: {one.message}")
            for one in proof.violations[:5]
        ),
    )


def _schema_place(pointer: str) -> str:
    """Give the place in a schema that most likely speaks of a place in a document."""
    path: list[str | int] = []
    for token in pointer.split("/")[1:]:
        path += ["items"] if token.isdecimal() else ["properties", _plain(token)]
    return pointer_of(path)


def _plain(token: str) -> str:
    return token.replace("~1", "/").replace("~0", "~")

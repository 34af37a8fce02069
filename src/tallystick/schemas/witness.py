"""Prove that one schema holds another, or find a document that shows it does not.

`prove` gives one of three: `contained`, proven by an exhausted search; `broken`, with a witness
that the validator itself accepts under the first schema and refuses under the second; `unknown`,
with the reason. Nothing is ever guessed: a witness that the validator does not confirm is no
witness, and a proof cut short is no proof.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal

from tallystick.core.errors import Rejected
from tallystick.schemas.bundle import bundle
from tallystick.schemas.containment.aim import aim
from tallystick.schemas.containment.nodes import (
    Circular,
    Key,
    Node,
    Source,
    Space,
    Undecided,
    make_source,
)
from tallystick.schemas.containment.search import inhabit, make_space
from tallystick.schemas.intricacy import is_circular
from tallystick.schemas.refs import Document, check_dialects, index_of, repeats
from tallystick.schemas.validate import ASSERTED, Formats, Violation, compile_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "BUDGET",
    "Clock",
    "Proof",
    "check_witness",
    "is_empty",
    "prove",
    "self_contained_schema",
]

BUDGET: Final = 30_000
"""Steps one pair may take; about a second at the very worst."""

_MORE: Final = 24
_PROOF: Final = 0.5
_SEARCH: Final = 0.3
_CIRCULAR: Final = "a reference refers to itself at the same place"
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Proof:
    """How a containment stands; `violations` say why the second schema refuses the witness."""

    outcome: Literal["contained", "broken", "unknown"]
    witness: Any = None
    violations: tuple[Violation, ...] = ()
    reason: str = ""


def self_contained_schema(schema: Any, name: str) -> Any:
    """Check that a schema is of one dialect and refers to itself only; give it ready for proof."""
    document = Document(f"{name}.json", schema)
    check_dialects(schema, document.path)
    for error in repeats(document, index_of(document)):
        raise error
    return bundle(document, {}).schema


def prove(
    old: Any,
    new: Any,
    *,
    formats: Formats = "dialect",
    budget: int = BUDGET,
    clock: Clock | None = None,
    within: Any = True,
) -> Proof:
    """Decide whether every document of `old` is a document of `new`; both are self-contained.

    Only documents of `within` are looked at. With a clock the proof takes `_PROOF` seconds at most,
    the search for a witness `_SEARCH` more.
    """
    accepts = [compile_schema(one, formats=formats) for one in (old, within)]
    refuses = compile_schema(new, formats=formats)
    asserted = ASSERTED[formats]
    start = clock() if clock else 0.0
    space = make_space(budget, clock, start + _PROOF)
    before = space.node(old, make_source(old, formats=asserted))
    after = space.node(new, make_source(new, formats=asserted))
    scope = space.node(within, make_source(within, formats=asserted))
    question: Key = frozenset({(before, True), (scope, True), (after, False)})
    reason = "the search found neither a proof nor a breaking message"
    candidates: list[Any] = []
    try:
        sample = inhabit(space, question, 1)
        if not sample.values and sample.complete:
            if is_circular(old) or is_circular(new):  # a branch may have ended before it was met
                return Proof("unknown", reason=_CIRCULAR)
            return Proof("contained")
        candidates = list(sample.values)
    except Circular as circular:
        return Proof("unknown", reason=str(circular))
    except Undecided as undecided:
        reason = str(undecided)
    except RecursionError:
        reason = "the schemas are nested too deep"
    try:
        late = start + _PROOF + _SEARCH
        guesses = _guesses((before, scope), after, lambda: make_space(budget // 4, clock, late))
        for value in chain(candidates, guesses, aim(old, new)):
            if clock and clock() > late:
                break
            if all(one.is_valid(value) for one in accepts) and not refuses.is_valid(value):
                return Proof("broken", value, tuple(refuses.violations(value)))
    except Rejected as error:  # no document can be judged in time
        return Proof("unknown", reason=error.message)
    return Proof("unknown", reason=reason)


def is_empty(space: Space, parts: Iterable[Any], source: Source) -> bool:
    """Tell whether it is proven that no value conforms to all of these parts of one document."""
    question: Key = frozenset((space.node(part, source), True) for part in parts)
    try:
        sample = inhabit(space, question, 1)
    except (Undecided, RecursionError):
        return False
    return not sample.values and sample.complete


def _guesses(
    before: tuple[Node, ...], after: Node, open_space: Callable[[], Space]
) -> Iterator[Any]:
    """Give documents of the old schema, and of what the new one refuses, when proof failed."""
    for question in (frozenset((one, True) for one in before), frozenset({(after, False)})):
        try:
            yield from inhabit(open_space(), question, _MORE).values
        except (Undecided, RecursionError):
            continue


def check_witness(old: Any, new: Any, witness: Any, *, formats: Formats = "dialect") -> bool:
    """Tell whether the validator accepts a document under `old` and refuses it under `new`."""
    try:
        return compile_schema(old, formats=formats).is_valid(witness) and not compile_schema(
            new, formats=formats
        ).is_valid(witness)
    except Rejected:
        return False

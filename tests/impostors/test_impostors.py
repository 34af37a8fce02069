"""A sample of the impostors; `make impostors` runs them all."""

from __future__ import annotations

from collections import Counter

import pytest

from tallystick.brokers import BROKERS
from tallystick.core import canonical
from tests.impostors.hunt import every_mutant, killer, not_passed
from tests.impostors.patches import Patches, rewrite
from tests.impostors.tables import Mutant

STEP = 23


def test_tallystick_itself_passes_every_case() -> None:
    assert not_passed() == []


def test_there_are_enough_impostors_with_names_of_their_own() -> None:
    names = Counter(mutant.name for mutant in every_mutant())
    assert [name for name, times in names.items() if times > 1] == []
    assert len(names) >= 150
    by_hand = [n for n in names if n.startswith(("canonical/", "scan/", "exact/", "envelope/"))]
    assert len(by_hand) >= 60


@pytest.mark.parametrize("index", range(0, len(every_mutant()), STEP))
def test_an_impostor_is_killed(index: int) -> None:
    mutant = every_mutant()[index]
    assert killer(mutant), f"{mutant.name} survives"


def test_one_that_changes_nothing_survives() -> None:
    assert killer(Mutant("nothing", ("standard/bytes/absent/**",), lambda _: None)) == ""


def test_every_change_is_undone() -> None:
    before = {name: (row, dict(vars(canonical))) for name, row in BROKERS.items()}
    for mutant in every_mutant()[:: STEP * 3]:
        with Patches() as patches:
            mutant.apply(patches)
    assert before == {name: (row, dict(vars(canonical))) for name, row in BROKERS.items()}


def test_a_piece_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LookupError, match="0 times"):
        rewrite(canonical.utf16_order, "no such text", "")  # type: ignore[arg-type]

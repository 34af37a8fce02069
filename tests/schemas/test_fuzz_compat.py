"""A small run of `tests.schemas.fuzz_compat`, and the proof that it notices a wrong verdict."""

from __future__ import annotations

import pytest

from tallystick.schemas.compat import Comparison
from tests.schemas import fuzz_compat
from tests.schemas.fuzz_compat import Maker, attack, fuzz


@pytest.mark.parametrize("seed", [1, 2])
def test_no_verdict_about_a_random_pair_is_contradicted(seed: int) -> None:
    verdicts = fuzz(300, seed)
    assert min(verdicts["compatible"], verdicts["breaking"]) > 50
    assert verdicts["unknown"] < 15


@pytest.mark.parametrize(
    "claim", [Comparison("compatible"), Comparison("breaking", witness=1, has_witness=True)]
)
def test_a_wrong_claim_is_noticed(claim: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz_compat, "compare", lambda *_, **__: claim)
    with pytest.raises(AssertionError, match="number"):
        attack({"type": "number"}, {"type": "integer"}, Maker(1))


def test_the_same_seed_gives_the_same_pairs() -> None:
    assert [Maker(7).pair() for _ in range(3)] == [Maker(7).pair() for _ in range(3)]

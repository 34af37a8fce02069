"""A small run of `tests.schemas.fuzz_policy`, and the proof that it notices a wrong policy."""

from __future__ import annotations

import pytest

from tallystick.schemas import align
from tests.schemas.fuzz_policy import fuzz_policy


def test_no_verdict_of_the_policy_about_a_random_pair_is_contradicted() -> None:
    verdicts = fuzz_policy(400, 1)
    assert min(verdicts["compatible"], verdicts["breaking"]) > 100
    assert verdicts["unknown"] < 8


@pytest.mark.parametrize(
    ("owner", "name", "answer"),
    [
        (align._Walk, "may_have", True),
        (align, "_describes", False),
        (align._Walk, "likeness", 0),
        (align._Walk, "unions", None),
    ],
)
def test_a_wrong_policy_is_noticed(
    owner: object, name: str, answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, lambda *_: answer)
    with pytest.raises(AssertionError, match="type"):
        fuzz_policy(1500, 1)

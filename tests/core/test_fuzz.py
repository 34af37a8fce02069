from __future__ import annotations

from tests.core.fuzz import attack, bodies


def test_no_bytes_raise_anything_but_the_documented_rejection() -> None:
    ends = {attack(body) for body in bodies(10_000, seed=7)}
    assert {"ok", "not_json", "not_utf8", "truncated", "no_identity"} <= ends

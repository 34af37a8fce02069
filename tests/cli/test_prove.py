"""`tally prove`: what is here is proved, and a failure of ours is a failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tallystick.suites.prove import Proof
from tests.cli.calls import liar, tally


def test_the_proof_shows_the_scoreboard_and_exits_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "journal"
    told = ["prove", "--subject", "tallystick", "--subject", liar("start-dies")]
    code, out, _ = tally(capsys, *told, "--journal", str(journal))
    assert code == 0
    assert out.rstrip().endswith("tallystick conforms")
    assert "not run" in out
    assert tally(capsys, "journal", "show", str(journal))[0] == 0
    code, out, _ = tally(capsys, *told, "--json")
    proof = json.loads(out)
    ours = proof["subjects"]["tallystick"]
    assert (code, proof["conforms"]) == (0, True)
    assert ours["identical"] == ours["byte_vectors"] >= 150
    assert list(proof["missing"]) == [liar("start-dies")]
    events = proof["cloudevents"]
    assert list(events["missing"]) == [liar("start-dies")]
    parts = events["subjects"]["tallystick"]["parts"]
    assert (parts["json"]["passed"], parts["protobuf"]["passed"]) == (43, 33)


def test_the_proof_asks_a_named_subject_only_what_it_is_proved_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = ["prove", "--json", "--subject", "tallystick", "--subject", "cloudevents-node"]
    code, out, _ = tally(capsys, *told)
    proof = json.loads(out)
    assert code == 0
    assert list(proof["subjects"]) == ["tallystick"]
    assert list(proof["cloudevents"]["subjects"]) == ["tallystick", "cloudevents-node"]


def test_the_proof_says_nothing_about_tallystick_when_it_was_not_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = tally(capsys, "prove", "--subject", liar("unsupported"))
    assert (code, out.splitlines()[-1]) == (0, "tallystick was not run")
    code, out, _ = tally(capsys, "prove", "--subject", liar("unsupported"), "--json")
    assert (code, json.loads(out)["conforms"]) == (0, None)


def test_a_proof_in_which_nothing_could_run_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = tally(capsys, "prove", "--subject", liar("start-dies"))
    assert (code, out.splitlines()[-1]) == (2, "tallystick was not run")


def test_the_proof_fails_when_tallystick_does_not_conform(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Proof, "conforms", property(lambda _: False))
    code, out, _ = tally(capsys, "prove", "--subject", "tallystick")
    assert (code, out.splitlines()[-1]) == (1, "tallystick does NOT conform")

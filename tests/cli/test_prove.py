"""`tally prove`: what is here is proved, and a failure of ours is a failure."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tallystick.suites.cloudevents import VARIABLE
from tallystick.suites.prove import Proof
from tests.cli.calls import liar, tally
from tests.events.layout import write_layout

NOT_RUN = "official CloudEvents cases: not run (see docs/guides/events.md)"


@pytest.fixture(autouse=True)
def without_official_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


def test_the_proof_shows_the_scoreboard_and_exits_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "journal"
    told = ["prove", "--implementation", "tallystick", "--implementation", liar("start-dies")]
    code, out, _ = tally(capsys, *told, "--journal", str(journal))
    assert code == 0
    verdict = "tallystick conforms: 2 of 2 steps passed; 1 part not run"
    missing = f"not run: {Path(sys.executable).name} (subject liar: `liar` is not on the PATH)"
    assert out.splitlines()[-3:] == [missing, verdict, NOT_RUN]
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
    assert {"own/json", "own/protobuf", "own/xml"} <= parts.keys()
    assert all(counts["passed"] == sum(counts.values()) > 0 for counts in parts.values())
    assert proof["official_cases"] == 0


def test_the_proof_counts_the_official_cases_that_took_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = [
        "prove",
        "--implementation",
        "tallystick",
        "--cases",
        str(write_layout(tmp_path / "given")),
    ]
    code, out, _ = tally(capsys, *told)
    line = out.splitlines()[-1]
    assert (code, line) == (0, "official CloudEvents cases: 36 run")
    code, out, _ = tally(capsys, *told, "--json")
    proof = json.loads(out)
    assert (code, proof["official_cases"]) == (0, 36)
    parts = proof["cloudevents"]["subjects"]["tallystick"]["parts"]
    assert [parts[name]["passed"] for name in ("json", "protobuf", "xml")] == [12, 12, 12]


def test_official_files_that_are_not_there_end_the_proof_before_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nowhere"))
    code, out, err = tally(capsys, "prove", "--implementation", "tallystick")
    assert (code, out) == (2, "")
    assert "TALLY_OFFICIAL" in err


def test_the_proof_asks_a_named_subject_only_what_it_is_proved_with(
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = [
        "prove",
        "--json",
        "--implementation",
        "tallystick",
        "--implementation",
        "cloudevents-node",
    ]
    code, out, _ = tally(capsys, *told)
    proof = json.loads(out)
    assert code == 0
    assert list(proof["subjects"]) == ["tallystick"]
    assert list(proof["cloudevents"]["subjects"]) == ["tallystick", "cloudevents-node"]


def test_the_proof_says_nothing_about_tallystick_when_it_was_not_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, _ = tally(capsys, "prove", "--implementation", liar("unsupported"))
    assert (code, out.splitlines()[-2]) == (0, "tallystick was not run")
    code, out, _ = tally(capsys, "prove", "--implementation", liar("unsupported"), "--json")
    assert (code, json.loads(out)["conforms"]) == (0, None)


def test_a_proof_in_which_nothing_could_run_is_exit_2(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = tally(capsys, "prove", "--implementation", liar("start-dies"))
    assert (code, out.splitlines()[-2]) == (2, "tallystick was not run; 1 part not run")


def test_the_proof_fails_when_tallystick_does_not_conform(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Proof, "conforms", property(lambda _: False))
    verdict = "tallystick does NOT conform: see suite standard, suite cloudevents"
    code, out, _ = tally(capsys, "prove", "--implementation", "tallystick")
    assert (code, out.splitlines()[-2]) == (1, verdict)


def test_the_json_has_the_verdict_the_steps_what_was_not_run_and_the_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = ["--implementation", "tallystick", "--implementation", liar("start-dies")]
    code, out, _ = tally(capsys, "prove", *chosen, "--json", "--out", str(tmp_path / "proof"))
    proof = json.loads(out)
    assert code == 0
    assert proof["verdict"].startswith("tallystick conforms: 2 of 2 steps passed")
    assert [step["state"] for step in proof["steps"]] == ["passed", "passed"]
    assert [part["name"] for part in proof["not_run"]] == [Path(sys.executable).name]
    assert set(proof["pages"]) == {"The proof", "Every case of the suites"}
    assert all(Path(page).is_file() for page in proof["pages"].values())


def test_a_proof_of_some_implementations_leaves_no_folder_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert tally(capsys, "prove", "--implementation", liar("unsupported"))[0] == 0
    assert list(tmp_path.iterdir()) == []

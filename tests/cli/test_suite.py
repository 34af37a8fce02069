"""Laws of `tally suite` on the command line."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.calls import liar, tally


def test_list_gives_the_names_one_per_line(own: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = tally(capsys, "suite", "list", "--cases", own)
    assert (code, err) == (0, "")
    assert out.splitlines()[1] == "own/identity_verdict/job number"
    assert (
        json.loads(tally(capsys, "suite", "list", "--cases", own, "--json")[1])
        == out.split("\n")[:3]
    )


def test_run_shows_what_failed_and_how_to_repeat_it(
    own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = tally(capsys, "suite", "run", "--cases", own)
    assert code == 1
    assert "failed  own/identity_verdict/wrong on purpose" in out
    assert "repeat with: tally suite run 'own/identity_verdict/wrong on purpose'" in out
    assert err == ""


def test_a_glob_selects_and_a_clean_run_exits_0(
    own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = tally(capsys, "suite", "run", "own/*/job number", "--cases", own, "--json")
    summary = json.loads(out)
    assert code == 0
    assert (summary["passed"], summary["failed"]) == (1, 0)


def test_json_is_exactly_one_object_with_the_names_of_what_did_not_pass(
    own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = tally(capsys, "suite", "run", "--cases", own, "--json")
    summary = json.loads(out)
    assert code == 1
    assert [summary[k] for k in ("passed", "failed", "errored", "unsupported")] == [2, 1, 0, 0]
    assert summary["not_passed"]["failed"] == ["own/identity_verdict/wrong on purpose"]


def test_several_subjects_stand_under_subjects(
    own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["--implementation", "tallystick", "--implementation", liar("unsupported")]
    _, out, _ = tally(capsys, "suite", "run", "--cases", own, *both, "--json")
    summary = json.loads(out)
    assert list(summary["subjects"]) == ["tallystick", liar("unsupported")]
    assert (summary["passed"], summary["unsupported"]) == (2, 3)
    _, out, _ = tally(capsys, "suite", "run", "--cases", own, *both)
    assert "byte-identical" in out


def test_a_subject_that_claims_unsupported_for_everything_passes_nothing(
    own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = tally(
        capsys, "suite", "run", "--cases", own, "--implementation", liar("unsupported"), "--json"
    )
    summary = json.loads(out)
    assert (summary["passed"], summary["unsupported"]) == (0, 3)
    assert len(summary["not_passed"]["unsupported"]) == 3


def test_a_subject_that_dies_gives_errored_and_exit_1(
    own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = tally(capsys, "suite", "run", "--cases", own, "--implementation", liar("dies"))
    assert code == 1
    assert out.count("errored  own/") == 3
    assert "no more memory" in err


def test_a_subject_that_hangs_is_cut_off_at_the_deadline(
    own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = tally(
        capsys, "suite", "run", "own/**/good", "--cases", own,
        "--implementation", liar("hangs"), "--deadline", "0.2", "--json",
    )  # fmt: skip
    assert (code, json.loads(out)["errored"]) == (1, 1)


def test_a_subject_that_cannot_start_is_one_line_and_exit_2(
    own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = tally(
        capsys, "suite", "run", "--cases", own, "--implementation", liar("start-dies")
    )
    assert (code, out) == (2, "")
    assert "is not on the PATH" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["suite", "run", "no/such/case"],
        ["suite", "run", "own/nothing"],
        ["suite", "run", "--implementation", "no-such-program-here"],
        ["suite", "run", "--deadline", "0"],
        ["suite", "run", "--known", "/no/such/file"],
        [
            "suite",
            "run",
            "--results",
            "r.json",
            "--implementation",
            "tallystick",
            "--implementation",
            "babelqueue",
        ],
        ["suite", "run", "own/**/good", "--results", "r.json"],
        ["suite", "dance"],
        ["suite"],
        ["journal", "show", "/no/such/file"],
    ],
)
def test_usage_errors_exit_2_with_one_line_and_no_traceback(
    arguments: list[str], own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["--cases", own] if arguments[:2] == ["suite", "run"] else []
    code, out, err = tally(capsys, *arguments, *more)
    assert (code, out) == (2, "")
    assert err
    assert "Traceback" not in err


def test_a_known_failure_is_no_failure_and_an_alarm_is_one(
    own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = tmp_path / "known.toml"
    run = ["suite", "run", "--cases", own, "--known", str(known), "--json"]
    known.write_text('"own/identity_verdict/wrong on purpose" = "the test is wrong"')
    code, out, _ = tally(capsys, *run)
    assert (code, json.loads(out)["known"]) == (0, 1)
    known.write_text('"own/**" = "everything is wrong"')
    code, out, _ = tally(capsys, *run)
    assert code == 1
    assert len(json.loads(out)["alarms"]) == 2
    known.write_text('"own/identity_verdict/gone" = "stale"')
    code, out, err = tally(capsys, *run)
    assert (code, json.loads(out)["error"]["code"]) == (2, "known_matches_nothing")
    assert "matches no case" in err


def test_journal_junit_and_results_are_written(
    own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {kind: str(tmp_path / kind) for kind in ("journal", "junit", "results")}
    options = [part for kind, path in files.items() for part in (f"--{kind}", path)]
    tally(capsys, "suite", "run", "--cases", own, *options)
    assert Path(files["junit"]).read_text().count("<testcase ") == 3
    results = json.loads(Path(files["results"]).read_text())
    assert results["sections"]["identity_verdict"]["good"] == {"status": "pass"}
    code, out, _ = tally(capsys, "journal", "show", files["journal"])
    assert code == 1
    assert "failed  own/identity_verdict/wrong on purpose" in out
    code, out, _ = tally(capsys, "journal", "show", files["journal"], "--json")
    assert json.loads(out)["passed"] == 2


def test_the_former_word_subject_still_works_and_is_not_shown(
    own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    case = ["suite", "run", "own/*/job number", "--cases", own, "--json"]
    both = [*case, "--subject", "tallystick", "--implementation", liar("unsupported")]
    summary = json.loads(tally(capsys, *both)[1])
    assert list(summary["subjects"]) == ["tallystick", liar("unsupported")]
    assert tally(capsys, "suite", "subjects") == tally(capsys, "suite", "implementations")
    for words in (["suite"], ["suite", "run"], ["prove"]):
        told = tally(capsys, *words, "--help")[1]
        assert "implementation" in told
        assert "subject" not in told


def test_the_implementations_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert tally(capsys, "suite", "implementations")[1].split() == [
        "tallystick", "babelqueue", "tallystick-go", "tallystick-node", "tallystick-java",
        "cloudevents-python",
        "cloudevents-pydantic", "cloudevents-node", "cloudevents-go", "cloudevents-java",
    ]  # fmt: skip
    assert json.loads(tally(capsys, "suite", "implementations", "--json")[1])[0] == "tallystick"


def test_what_was_started_is_ended_when_we_are_terminated(own: str) -> None:
    program = "import sys; from tallystick.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "suite", "run", "--cases", own]
    told = [*command, "--implementation", liar("says-pid-and-hangs")]
    with subprocess.Popen(told, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as tally_run:
        assert tally_run.stderr is not None
        pid = int(tally_run.stderr.readline().split()[-1])
        tally_run.terminate()
        assert tally_run.wait(60) == 128 + signal.SIGTERM
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_the_command_that_repeats_a_case_finds_it_again(
    own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = tmp_path / "known failures.toml"
    known.write_text('"own/identity_verdict/wrong on purpose" = "the test is wrong"')
    _, out, _ = tally(capsys, "suite", "run", "--cases", own, "--known", str(known))
    (again,) = [line for line in out.splitlines() if line.startswith("  repeat with: tally ")]
    code, out, _ = tally(capsys, *shlex.split(again)[3:], "--json")
    assert (code, json.loads(out)["known"]) == (0, 1)


@pytest.mark.parametrize(
    "manifest",
    [
        "{",
        '{"conformance_version":"1","sections":{"odd":{"scope":"core"}},"odd":{"x":{}}}',
        '{"conformance_version":"1","sections":{}}',
    ],
)
@pytest.mark.parametrize("verb", ["run", "list"])
def test_a_suite_that_holds_no_case_to_run_is_exit_2(
    manifest: str, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    code, out, _ = tally(capsys, "suite", verb, "--cases", str(tmp_path))
    assert (code, out) == (2, "")


def test_the_list_of_the_guide_can_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "run-the-suite.md"
    known = tmp_path / "known.toml"
    known.write_text(guide.read_text().split("```toml\n")[1].split("```")[0])
    code, *_ = tally(capsys, "suite", "run", "standard/trim", "--known", str(known))
    assert code == 0


@pytest.mark.parametrize(
    "text", ["[rust]\n'own/**' = 'no such subject'", "[tallystick]\n'own/**' = ''", "= =", "[", "5"]
)
def test_a_list_of_known_failures_that_cannot_be_used_is_exit_2(
    text: str, own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known = tmp_path / "known.toml"
    known.write_text(text)
    code, out, err = tally(capsys, "suite", "run", "--cases", own, "--known", str(known))
    assert (code, out) == (2, "")
    assert "known failure" in err


def test_a_subject_with_an_unspeakable_name_is_shown_all_the_same(
    own: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {kind: str(tmp_path / kind) for kind in ("journal", "junit", "results")}
    options = [part for kind, path in files.items() for part in (f"--{kind}", path)]
    told = ["suite", "run", "--cases", own, "--implementation", liar("surrogates"), *options]
    code, out, _ = tally(capsys, *told)
    assert code == 1
    assert "(li\\ud800ar\\x1b[31m 1)" in out
    assert "\x1b" not in out
    assert tally(capsys, "journal", "show", files["journal"])[:2] == (
        1,
        out.replace(f" --cases {own}", ""),
    )


def test_the_standard_is_listed_and_the_public_suite_is_pointed_at(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, out, err = tally(capsys, "suite", "list")
    assert code == 0
    assert "standard/bytes/numbers/one-point-zero" in out.splitlines()
    assert "public/**" in err


def test_the_smallest_subject_of_the_guide_survives_every_body(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = Path(__file__).parents[2] / "docs" / "guides" / "write-a-subject.md"
    program = tmp_path / "mine.py"
    program.write_text(guide.read_text().split("```python\n")[1].split("```")[0])
    subject = f"'{sys.executable}' '{program}'"
    _, out, err = tally(capsys, "suite", "run", "--implementation", subject, "--json")
    summary = json.loads(out)
    assert (summary["errored"], err) == (0, "")
    assert summary["passed"] > 100

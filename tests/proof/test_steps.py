"""The steps of a proof: what is missing is listed, what fails fails, and the others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick.cli.proof.bench import Bench, Found, Step, run_steps
from tallystick.cli.proof.lab import RUNS, lab_steps
from tallystick.cli.proof.needs import Need, broker_client, extra
from tallystick.cli.proof.process import run_tally
from tallystick.cli.proof.registry import example_registry, registry_steps
from tallystick.cli.proof.traffic import traffic_steps
from tallystick.core.errors import Unavailable, UsageError
from tallystick.report.proof.values import (
    Conclusion,
    NotRun,
    StepResult,
    StepState,
    conclude,
)

HERE = Need("air", lambda: True, "breathe")
GONE = Need("Maven", lambda: False, "apt-get install maven")


def passes(_: Bench) -> Found:
    return Found(StepState.PASSED, "all of it")


def raises(_: Bench) -> Found:
    raise UsageError("it is broken", code="broken", hint="mend it")


def test_a_step_that_lacks_something_is_listed_and_the_others_run() -> None:
    bench = Bench(None, ())
    steps = [Step("one", (HERE, GONE), "c", raises), Step("two", (HERE,), "c", passes)]
    (result,) = run_steps(steps, bench)
    assert (result.name, result.state, result.text) == ("two", StepState.PASSED, "all of it")
    assert bench.not_run == [NotRun("one", "needs Maven", "apt-get install maven")]
    assert bench.not_run[0].line == "not run: one (needs Maven: apt-get install maven)"


def test_a_step_that_cannot_do_its_work_is_errored_with_the_reason_and_the_hint() -> None:
    results = run_steps(
        [Step("one", (), "c", raises), Step("two", (), "c", passes)], Bench(None, ())
    )
    assert [result.state for result in results] == [StepState.ERRORED, StepState.PASSED]
    assert results[0].text == "it is broken (mend it)"


@pytest.mark.parametrize(
    ("states", "conclusion"),
    [
        ((StepState.PASSED, StepState.PASSED), Conclusion.CONFORMS),
        ((StepState.PASSED, StepState.FAILED), Conclusion.FAILS),
        ((StepState.ERRORED, StepState.FAILED), Conclusion.FAILS),
        ((StepState.PASSED, StepState.ERRORED), Conclusion.INCOMPLETE),
    ],
)
def test_a_finding_weighs_more_than_a_step_that_could_not_run(
    states: tuple[StepState, ...], conclusion: Conclusion
) -> None:
    steps = [StepResult("a step", state, "", "", 0.0) for state in states]
    assert conclude(steps, ours=True) is conclusion
    assert conclude(steps, ours=False) is Conclusion.UNTRIED


def test_a_command_answers_with_its_json_and_its_exit_code() -> None:
    registry = example_registry()
    answer = run_tally(["schema", "check", "--registry", str(registry / "registry.json")])
    assert (answer.code, answer.value["sound"]) == (0, True)


def test_a_command_that_could_not_work_raises_its_own_error() -> None:
    with pytest.raises(Unavailable, match="no-such-registry") as caught:
        run_tally(["schema", "check", "--registry", "no-such-registry.json"])
    assert caught.value.code != "step"


def test_a_command_that_prints_no_error_object_is_named_with_its_exit_code() -> None:
    with pytest.raises(Unavailable, match="tally no-such-noun ended with 2"):
        run_tally(["no-such-noun"])


def test_the_registry_steps_pass_and_bring_a_witness() -> None:
    bench = Bench(None, ())
    results = run_steps(registry_steps(example_registry()), bench)
    assert [result.state for result in results] == [StepState.PASSED] * 3
    assert bench.gate is not None
    assert bench.gate.verdict == "breaking"
    assert "order_id" in bench.gate.witness


def test_a_gate_that_lets_the_breaking_change_pass_fails_the_proof(tmp_path: Path) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    text = (example_registry() / "schemas" / "orders-created.json").read_text("utf-8")
    for name in ("orders-created.json", "orders-created.v2-breaking.json"):
        (schemas / name).write_text(text, encoding="utf-8")
    (gate,) = run_steps(registry_steps(tmp_path)[2:], Bench(None, ()))
    assert gate.state is StepState.FAILED
    assert "judged compatible" in gate.text


def test_traffic_without_captures_is_listed_as_not_run(tmp_path: Path) -> None:
    bench = Bench(tmp_path, ())
    (step,) = traffic_steps(tmp_path, example_registry())
    assert run_steps([Step(step.name, (), step.command, step.run)], bench) == ()
    assert [part.name for part in bench.not_run] == ["traffic"]


def test_a_missing_extra_is_named_with_its_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallystick.cli.proof.needs.missing_modules", lambda _: ["pika"])
    bench = Bench(None, ())
    assert run_steps([Step("lab", (extra("lab"),), "c", passes)], bench) == ()
    line = "not run: lab (needs the extra `lab`: pip install 'tallystick[lab]')"
    assert bench.not_run[0].line == line


def test_a_broker_that_was_fetched_before_needs_no_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    need = broker_client("qpid", ("mvn",), "Maven", "apt-get install maven")
    assert not need.is_here()
    monkeypatch.setattr("tallystick.cli.proof.needs.is_fetched", lambda _: True)
    assert need.is_here()


def test_a_broker_that_cannot_be_fetched_is_listed_as_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refuse(_: object) -> None:
        raise Unavailable("qpid 10 cannot be fetched: 404", code="fetch")

    monkeypatch.setattr("tallystick.cli.proof.lab.run_tally", refuse)
    bench = Bench(tmp_path, (), clients=["python"])
    (step,) = [one for one in lab_steps(tmp_path) if one.name == "lab over qpid"]
    assert run_steps([Step(step.name, (), step.command, step.run)], bench) == ()
    assert bench.not_run[-1] == NotRun("lab over qpid", "qpid 10 cannot be fetched: 404")


def test_every_run_of_the_lab_has_files_of_its_own() -> None:
    assert len({run.file for run in RUNS}) == len({run.name for run in RUNS}) == len(RUNS)


def test_a_client_that_does_not_start_is_listed_and_the_others_take_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clients = {
        "good": 'echo "good $$ $(mktemp -d)/log"',
        "old": "echo 'error: package requires rustc 1.88' >&2; exit 101",
    }
    for name, script in clients.items():
        start = tmp_path / name / "client" / "start"
        start.parent.mkdir(parents=True)
        start.write_text(f"#!/bin/sh\n{script}\n")
        start.chmod(0o755)
    needy = tmp_path / "needy" / "client"
    needy.mkdir(parents=True)
    (needy / "start").touch(mode=0o755)
    (needy / "manifest.json").write_text('{"needs": ["no-such-tool"]}')
    monkeypatch.setattr("tallystick.cli.proof.lab.find_interop", lambda: tmp_path)
    bench = Bench(tmp_path, ())
    steps = [Step(one.name, (), one.command, one.run) for one in lab_steps(tmp_path)[:3:2]]
    (result,) = run_steps(steps, bench)
    assert (result.name, result.state, bench.clients) == ("lab clients", StepState.PASSED, ["good"])
    needy_line, old, second = [part.line for part in bench.not_run]
    assert needy_line == "not run: lab client needy (needs no-such-tool)"
    assert "package requires rustc 1.88" in old
    assert second.startswith("not run: lab over vm, all clients (needs a second client: ")

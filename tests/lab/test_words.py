"""Laws of the lab's command line: wrong words are told in one line, before anything is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallystick.cli import main
from tallystick.core.journal import Head, Journal, Record
from tallystick.core.verdict import Outcome, Verdict
from tallystick.lab.profiles import PROFILES
from tallystick.lab.vm_server import running_vm
from tallystick.report.table import repeat_command, show_journal

DEAD = "amqp://127.0.0.1:1/"
WRONG = {
    "lab run --broker nope": "no broker 'nope'",
    "lab run --broker vm,": "no broker ''",
    "lab run --clients nope": "no client 'nope'",
    "lab run --clients python --cases nope*": "tally lab run --list",
    "lab run --broker rabbitmq --clients python --cases nope*": "no case matches 'nope*'",
    "lab run --clients python --set nope": "is not NAME=VALUE",
    "lab run --clients python --set P2P_NUM_MESSAGES=-1": "give a whole number, 0 or more",
    "lab run --clients python --set P2P_MESSAGES=5": "there is no parameter 'P2P_MESSAGES' here",
    "lab run --broker vm --clients python --known /dev/null": "pattern -> reason",
    "lab run --parallel 0": "'0' is not a whole number above 0",
    "lab run --seed -1": "'-1' is not a seed from 0 to 2147483647",
    "lab run --seed 2147483648": "'2147483648' is not a seed",
    "lab circuit seed=2147483648": "give a whole number from 0 to 2147483647",
    "lab run --timeout nan": "'nan' is not a time above 0",
    "lab run --timeout 0": "'0' is not a time above 0",
    "lab attach --enlist -1": "'-1' is not a time above 0",
    "lab attach -p 99999": "'99999' is not a port",
    "lab attach -p 1": "Connection refused",
    "lab circuit nope=1": "one of ack_mode, batches",
    "lab circuit num_messages=many": "give a whole number from 1 to 2147483647",
    "lab circuit ack_mode=nope": "one of tx, auto",
    "lab perf num_messages=7": "there is no parameter 'num_messages' here",
    "lab circuit batches=99999999999999999999": "give a whole number from 1 to 2147483647",
    "lab circuit batches=0": "give a whole number from 1 to",
    "lab circuit persistent=maybe": "give true or false",
    "lab perf --rate 0": "'0' is not a whole rate from 1 to 1000000000",
    "lab run-tier pairwise --broker vm --only nope": "tally lab combinations pairwise",
    "lab run-tier pairwise --broker rabbitmq --url amqp://127.0.0.1:x/": "is not an AMQP URL",
    "lab run-tier pairwise --broker rabbitmq --url amqp://127.0.0.1:99999/": "is not an AMQP URL",
    f"lab run-tier pairwise --broker rabbitmq --url {DEAD}": "tally broker up NAME",
    f"lab run-tier restart --broker rabbitmq --url {DEAD}": "this tier restarts the broker",
    "lab expected nope": "tally lab combinations",
    "lab fields 1.0 --broker rabbitmq": "one of artemis, qpid",
    "lab fields 0-9-1 --broker rabbitmq --only nope": "no case has 'nope' in its name",
    f"lab fields 1.0 --broker artemis --url {DEAD}": "tally broker up NAME",
    f"lab clock broker --url {DEAD}": "tally broker up NAME",
    f"lab clock-reference --url {DEAD}": "tally broker up NAME",
    f"lab clock-reference --url {DEAD} --queue a=b": "'a=b' is not a queue name",
    f"lab clock-reference --url {DEAD} --queue=": "'' is not a queue name",
    f"lab clock-reference --url {DEAD} --queue {'q' * 256}": "is not a queue name: use 1 to 255",
    "lab clients --interop /dev": "there is no client in",
    "lab run --list --interop /dev": "a client is a program",
    "lab fields 1.0 --broker artemis --values /dev/null": "has no AMQP 1.0 values",
    "lab clock-reference --udp 99999": "'99999' is not a port",
    "lab clock-reference --udp 0 --host 192.0.2.1": "an address of this machine",
    "lab fields 0-9-1 --broker rabbitmq --values x": "--values works only with AMQP 1.0",
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_words_are_told_in_one_line_and_are_usage(
    words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) == 2
    told = capsys.readouterr()
    assert WRONG[words] in told.err
    assert "internal fault" not in told.err
    assert "\n  hint: " in told.err or "error: argument" in told.err
    assert told.out == ""


def test_nobody_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    with running_vm() as vm:
        assert main(["lab", "attach", "-p", str(vm.port), "--enlist", "0.1"]) == 2
    assert "interop/startall" in capsys.readouterr().err


def test_what_was_attached_to_is_repeated_by_attaching() -> None:
    assert repeat_command("lake", "lake/TC1_DummyRun/a/b") == (
        "tally lab attach --broker lake -b HOST -p PORT --names a,b --cases TC1_DummyRun/a/b"
    )


def test_errors_for_one_reason_are_shown_ten_times_and_then_counted() -> None:
    errors = [Verdict(f"vm/T/{n}/a", Outcome.ERRORED, "the broker is gone") for n in range(25)]
    other = Verdict("vm/T/b/b", Outcome.ERRORED, "b has stopped")
    failed = [Verdict(f"vm/T/f/{n}", Outcome.FAILED, "lost") for n in range(12)]
    records = tuple(map(Record, (*errors, other, *failed)))
    told = show_journal(Journal(Head("r", "t", "lab", "vm"), records))
    assert told.count("  the broker is gone") == 10
    assert "errored  15 more: the broker is gone" in told
    assert told.count("  b has stopped") == 1
    assert told.count("  lost") == 12


def test_wrong_words_leave_an_earlier_journal_as_it_is(tmp_path: Path) -> None:
    journal = tmp_path / "j.jsonl"
    journal.write_text("kept")
    words = ["lab", "run", "--clients", "python", "--cases", "nope", "--journal", str(journal)]
    assert main(words) == 2
    assert journal.read_text() == "kept"


def test_the_list_has_the_names_that_cases_takes(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["lab", "run", "--broker", "vm,qpid", "--clients", "python", "--list", "--cases"]
    assert main([*words, "TC[12]*"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "TC1_DummyRun/python/python",
        "TC2_BasicP2P/python/python",
    ]


def test_a_tier_can_be_listed_for_every_broker(capsys: pytest.CaptureFixture[str]) -> None:
    for broker in PROFILES:
        words = ["lab", "run", "--tier", "pairwise", "--broker", broker, "--clients", "python"]
        assert main([*words, "--list"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 18

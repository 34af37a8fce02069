"""Workers that are wrong on purpose, each in one way; the first argument says which.

They write down what honest ones do, so only the judgement can tell.
"""

from __future__ import annotations

import sys
from threading import Thread
from time import sleep

from tallystick.suites.faults.ledger import Ledger, Runs, id_of
from tallystick.suites.faults.programs import Task, begin
from tallystick.suites.faults.worker import Handle, handle, serve

CHOSEN = 7


def acknowledge_early(task: Task, ledger: Ledger, runs: Runs, one: str, number: int) -> None:
    def later() -> None:
        sleep(0.2)
        ledger.apply(one, number)
        runs.write(f"e {one}")

    runs.write(f"b {one}")
    Thread(target=later, daemon=True).start()


def lose(task: Task, ledger: Ledger, runs: Runs, one: str, number: int) -> None:
    if number != CHOSEN:
        handle(task, ledger, runs, one, number)


def double(task: Task, ledger: Ledger, runs: Runs, one: str, number: int) -> None:
    handle(task, ledger, runs, one, number)
    if number == CHOSEN:
        ledger.add(one, number)


def invent(task: Task, ledger: Ledger, runs: Runs, one: str, number: int) -> None:
    handle(task, ledger, runs, one, number)
    if number == CHOSEN:
        ledger.apply(id_of(task.seed, task.messages), task.messages)


def swap(task: Task, ledger: Ledger, runs: Runs, one: str, number: int) -> None:
    handle(task, ledger, runs, one, number + 1 if number == CHOSEN else number)


LIES: dict[str, Handle] = {
    "early": acknowledge_early,
    "loses": lose,
    "doubles": double,
    "invents": invent,
    "swaps": swap,
}

if __name__ == "__main__":
    lie = sys.argv.pop(1)
    serve(begin(), LIES[lie])

"""Print the score of the impostors: `python tests/impostors/run.py [PART OF A NAME]`.

Exit 1 when an impostor survives, or when Tallystick itself fails a case. With a part of a name,
only those impostors run, and each is printed with the case that killed it.
"""

# ruff: noqa: T201 - a command prints

from __future__ import annotations

import multiprocessing
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.impostors.hunt import every_case, every_mutant, killer, not_passed

PROCESSES = 2


def judge(index: int) -> tuple[int, str]:
    """Judge one impostor, in a process that was forked after they were made."""
    return index, killer(every_mutant()[index])


def main(part: str = "") -> int:
    """Run the impostors and print the score."""
    began = time.perf_counter()
    mutants, wrong = every_mutant(), not_passed()
    for verdict in wrong:
        print(f"without any impostor: {verdict.case} {verdict.outcome} {verdict.reason}")
    chosen = [index for index, mutant in enumerate(mutants) if part in mutant.name]
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        killed = dict(pool.imap_unordered(judge, chosen, chunksize=4))
    for index in chosen:
        if part or not killed[index]:
            print(f"{mutants[index].name}: {killed[index] or 'SURVIVES'}")
    score = sum(bool(killed[index]) for index in chosen)
    seconds = time.perf_counter() - began
    cases = len(every_case())
    print(f"impostors: {score} of {len(chosen)} killed by {cases} cases in {seconds:.0f} s")
    return 1 if wrong or score < len(chosen) or not chosen else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))

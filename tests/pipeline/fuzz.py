"""The quick way against the rule: `python -m tests.pipeline.fuzz --count 100000`.

Every record is judged by `judge_records` and by `judge_record`; the rows must be equal in every
column, and must fit into the tables. So many records are planted ones gone wrong (`hostile`), and
as many are good ones of random schemas, full of what looks personal (`personal`). What the quick
way took itself is counted, too: a fuzzer that never reaches it proves nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

from tallystick.pipeline.capture import Record
from tallystick.pipeline.ingest import widen
from tallystick.pipeline.judge import Judged, Rules, build_rules, judge_record
from tallystick.pipeline.judge_many import _judge_quickly, judge_body, judge_records
from tallystick.schemas.catalog import load_catalog
from tests.pipeline.hostile import records
from tests.pipeline.personal import people, write_random_registry
from tests.pipeline.planted import write_registry

BATCH = 2000
SCHEMAS = 20


def make_rules() -> Rules:
    with tempfile.TemporaryDirectory() as folder:
        return build_rules(load_catalog(write_registry(Path(folder))))


def plain(row: Judged) -> Judged:
    """Leave out what only the slow way looks at: which declared paths were there."""
    return row._replace(declared=None)


def compare(rules: Rules, count: int, seed: int) -> Counter[str]:
    """Judge so many hostile records both ways; raises at the first difference."""
    told: Counter[str] = Counter()
    for start in range(0, count, BATCH):
        told += judge_both_ways(rules, list(records(min(BATCH, count - start), seed + start)))
    return told


def compare_people(count: int, seed: int) -> Counter[str]:
    """Judge so many records full of personal data both ways; raises at the first difference."""
    told: Counter[str] = Counter()
    for start in range(0, count, BATCH):
        random = Random(seed + start)
        with tempfile.TemporaryDirectory() as folder:
            schemas = write_random_registry(Path(folder), random, SCHEMAS)
            rules = build_rules(load_catalog(Path(folder) / "registry.json"))
        told += judge_both_ways(rules, list(people(schemas, random, min(BATCH, count - start))))
    return told


def judge_both_ways(rules: Rules, some: list[Record]) -> Counter[str]:
    """Give how often each verdict fell, and how often the quick way was taken."""
    told: Counter[str] = Counter()
    quick = judge_records(rules, some)
    for record, one in zip(some, quick, strict=True):
        other = judge_record(rules, record)
        assert plain(one) == plain(other), f"{record}\nquick {one}\nexact {other}"
        if other.stage not in ("read", "sections", "gate"):
            assert judge_body(rules, record.body) == other.verdict, record
        told[one.stage or one.verdict] += 1
        told["quick"] += one.declared is None and one.urn is not None
    assert widen(some, quick).num_rows == len(some)
    assert all(_judge_quickly(rules, one) is None for one in some if one.fault)
    return told


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    told = compare(make_rules(), arguments.count, arguments.seed)
    print(f"{arguments.count} hostile records judged both ways, 0 differences: {dict(told)}")
    told = compare_people(arguments.count, arguments.seed)
    print(f"{arguments.count} records full of people likewise: {dict(told)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What the registry costs, as ratios against a peer measured in the same run.

    validate_vs_bare        `validate --jsonl` on one core / a bare orjson + jsonschema-rs loop
    validate_two_vs_bare    the same with `--jobs 2` / the same bare loop
    validate_vs_jsonschema  the same on one core / orjson + the `jsonschema` library
    compat_median_ms        one `compare` in strict mode over the labelled pairs
    compat_vs_jsonschema_rs that median / the median of jsonschema-rs `canonicalize` + `covers`

Rounds of the peers alternate and the best of each counts. One core against one core is compared
by processor time, two against one by the clock.
Run: `.venv/bin/python bench/registry.py [--messages N] [--rounds N]`
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]
import jsonschema_rs
import orjson

from tallystick.cli import schema
from tallystick.schemas.compat import compare

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
REGISTRY = ROOT / "examples" / "registry" / "registry.json"
PAIRS = ROOT / "tests" / "schemas" / "pairs"
URN = "urn:babel:orders:created"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "messages.jsonl"
        write_messages(path, args.messages)
        figures = measure_validate(path, args.messages, args.rounds)
    figures |= measure_compat(args.rounds)
    for name, value in figures.items():
        print(f"{name} {value:.3f}")
    return 0


def write_messages(path: Path, count: int) -> None:
    """Write envelopes that differ from each other, all of them good."""
    message = json.loads((REGISTRY.parent / "messages" / "order-created.json").read_bytes())
    with path.open("wb") as file:
        for number in range(count):
            message["data"]["order_id"] = number + 1
            message["data"]["amount"] = (number % 9999) / 100
            file.write(orjson.dumps(message) + b"\n")


def measure_validate(path: Path, count: int, rounds: int) -> dict[str, float]:
    rules = json.loads((REGISTRY.parent / "schemas" / "orders-created.json").read_bytes())
    quick = jsonschema_rs.Draft7Validator(rules, offline=True)
    slow = jsonschema.Draft7Validator(rules)
    sample = max(count // 50, 1)

    def loop(valid: Callable[[Any], bool], limit: int) -> None:
        validators = {URN: valid}
        bad = 0
        with path.open("rb") as file:
            for number, line in enumerate(file):
                if number == limit:
                    break
                message = orjson.loads(line)
                if not validators[message["job"]](message["data"]):
                    bad += 1
        assert not bad

    runs: dict[str, tuple[Callable[[], None], int]] = {
        "bare": (lambda: loop(quick.is_valid, count), count),
        "one": (lambda: validate(path, 1), count),
        "two": (lambda: validate(path, 2), count),
        "library": (lambda: loop(slow.is_valid, sample), sample),
    }
    work = dict.fromkeys(runs, 0.0)
    clock = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        for name, (run, messages) in runs.items():
            started, began = time.process_time(), time.perf_counter()
            run()
            clock[name] = max(clock[name], messages / (time.perf_counter() - began))
            work[name] = max(work[name], messages / (time.process_time() - started))
    return {
        "validate_per_second": clock["one"],
        "validate_vs_bare": work["one"] / work["bare"],
        "validate_two_vs_bare": clock["two"] / clock["bare"],
        "validate_vs_jsonschema": work["one"] / work["library"],
    }


def measure_compat(rounds: int) -> dict[str, float]:
    """Time every labelled pair, best of the rounds; the peer answers the same question."""
    pairs = [
        (pair["old"], pair["new"])
        for path in sorted(PAIRS.glob("*.json"))
        for pair in json.loads(path.read_bytes())
    ]
    ours = [best(lambda: compare(*pair, "strict"), rounds) for pair in pairs]  # noqa: B023
    peer = [best(lambda: covers(*pair), rounds) for pair in pairs]  # noqa: B023
    unknown = sum(compare(*pair, "strict").verdict == "unknown" for pair in pairs)
    return {
        "compat_pairs": len(pairs),
        "compat_unknown_share": unknown / len(pairs),
        "compat_median_ms": statistics.median(ours) * 1000,
        "compat_slowest_ms": max(ours) * 1000,
        "compat_vs_jsonschema_rs": statistics.median(ours) / statistics.median(peer),
    }


def best(work: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def covers(old: Any, new: Any) -> object:
    try:
        one, two = (jsonschema_rs.canonicalize(side, offline=True) for side in (old, new))
        return two.covers(one)
    except (ValueError, TypeError, jsonschema_rs.canonical.CanonicalizationError) as error:
        return error


def validate(path: Path, jobs: int) -> None:
    parser = argparse.ArgumentParser()
    schema.register(parser)
    command = ["validate", "--registry", str(REGISTRY), "--jsonl", "--jobs", str(jobs), str(path)]
    args = parser.parse_args(command)
    with contextlib.redirect_stderr(io.StringIO()):
        assert args.run(args) == 0


if __name__ == "__main__":
    sys.exit(main())

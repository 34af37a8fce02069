"""What the registry costs, as ratios against a peer measured in the same run.

    validate_vs_bare        `validate --jsonl` on one core / a bare orjson + jsonschema-rs loop
    validate_two_vs_bare    the same with `--jobs 2` / the same bare loop
    validate_vs_jsonschema  the same on one core / orjson + the `jsonschema` library
    compat_median_ms        one `compare` in strict mode over the labelled pairs
    compat_vs_jsonschema_rs that median / the median of jsonschema-rs `canonicalize` + `covers`

Speeds are messages per second; the rounds of the peers alternate and the best of each counts.
Run: `.venv/bin/python bench/registry.py [--messages N] [--rounds N]`
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]
import jsonschema_rs
import orjson

from tallystick.cli import schema

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[1]
REGISTRY = ROOT / "examples" / "registry" / "registry.json"
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
    best = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        for name, (run, messages) in runs.items():
            start = time.perf_counter()
            run()
            best[name] = max(best[name], messages / (time.perf_counter() - start))
    return {
        "validate_per_second": best["one"],
        "validate_vs_bare": best["one"] / best["bare"],
        "validate_two_vs_bare": best["two"] / best["bare"],
        "validate_vs_jsonschema": best["one"] / best["library"],
    }


def validate(path: Path, jobs: int) -> None:
    parser = argparse.ArgumentParser()
    schema.register(parser)
    command = ["validate", "--registry", str(REGISTRY), "--jsonl", "--jobs", str(jobs), str(path)]
    args = parser.parse_args(command)
    with contextlib.redirect_stderr(io.StringIO()):
        assert args.run(args) == 0


if __name__ == "__main__":
    sys.exit(main())

"""What the registry costs, as ratios against a peer measured in the same run.

    validate_vs_bare        `validate --jsonl` on one core / a bare orjson + jsonschema-rs loop
    validate_two_vs_bare    the same with `--jobs 2` / the same bare loop
    validate_vs_jsonschema  the same on one core / orjson + the `jsonschema` library
    compat_median_ms        one `compare` in strict mode over the labelled pairs
    compat_vs_jsonschema_rs that median / the median of jsonschema-rs `canonicalize` + `covers`

Rounds of the peers alternate and the best of each counts. One core against one core is compared
by processor time, two against one by the clock.
`check_1000_s` and `check_growth` are one `tally schema check` of 1,000 schemas, and how much longer
one of 5,000 takes, per schema.
Run: `.venv/bin/python bench/registry.py [--quick] [--json] [--messages N] [--rounds N]`
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
    parser.add_argument("--messages", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--quick", action="store_true", help="under 45 seconds")
    parser.add_argument("--json", action="store_true", help="one flat object as the last line")
    args = parser.parse_args()
    messages = args.messages or 500_000
    rounds = args.rounds or (3 if args.quick else 8)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "messages.jsonl"
        write_messages(path, messages)
        figures = measure_validate(path, messages, rounds)
        figures |= measure_check(Path(folder))
    figures |= measure_compat(rounds)
    for name, value in figures.items():
        print(f"{name} {value:.3f}")
    if args.json:
        print(json.dumps({name: round(value, 4) for name, value in figures.items()}))
    return 0


def measure_check(folder: Path) -> dict[str, float]:
    """Check registries of copies of one schema under different URNs."""
    seconds = {}
    text = (REGISTRY.parent / "schemas" / "orders-created.json").read_text()
    for count in (1000, 5000):
        root = folder / f"registry-{count}"
        root.mkdir()
        rows = []
        for number in range(count):
            (root / f"{number}.json").write_text(text)
            rows.append({"urn": f"urn:babel:bench:kind-{number}", "schema": f"{number}.json"})
        manifest = root / "registry.json"
        manifest.write_text(json.dumps({"schemas": rows}))
        began = time.perf_counter()
        run("check", "--registry", str(manifest))
        seconds[count] = time.perf_counter() - began
    return {
        "check_1000_s": seconds[1000],
        "check_growth": seconds[5000] / seconds[1000] / 5,
    }


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
    run("validate", "--registry", str(REGISTRY), "--jsonl", "--jobs", str(jobs), str(path))


def run(*command: str) -> None:
    """Run a verb of `tally schema` in this process; it must find nothing."""
    parser = argparse.ArgumentParser()
    schema.register(parser)
    args = parser.parse_args(command)
    talk = io.StringIO()
    with contextlib.redirect_stderr(talk), contextlib.redirect_stdout(talk):
        assert args.run(args) == 0


if __name__ == "__main__":
    sys.exit(main())

"""What the registry costs, as ratios against a peer measured in the same run.

    validate_vs_bare        `validate --jsonl` on one core / a bare orjson + jsonschema-rs loop
    validate_two_vs_bare    the same with `--jobs 2` / the same bare loop
    validate_vs_jsonschema  the same on one core / orjson + the `jsonschema` library
    compat_median_ms        one `compare` in strict mode over the labelled pairs
    compat_vs_jsonschema_rs that median / the median of jsonschema-rs `canonicalize` + `covers`

Rounds of the peers alternate and the best of each counts. One core against one core is compared
by processor time, two against one by the clock.
`check_1000_s` and `check_growth` are one `tally schema check` of 1,000 schemas, and how much longer
one of 5,000 takes, per schema; `check_wide_ms` is what one schema of 240 properties costs there.
`compat_wide_*` are pairs of such schemas: nothing changed but a title, a property added, a bound
tightened in the last one, every bound widened.
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
WIDE = 240


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
    figures |= measure_compat(rounds) | measure_wide(rounds)
    for name, value in figures.items():
        print(f"{name} {value:.3f}")
    if args.json:
        print(json.dumps({name: round(value, 4) for name, value in figures.items()}))
    return 0


def measure_check(folder: Path) -> dict[str, float]:
    """Check registries of copies of one schema under different URNs."""
    text = (REGISTRY.parent / "schemas" / "orders-created.json").read_text()
    thousand, five = (check([text] * count, folder / str(count)) for count in (1000, 5000))
    wide = check([json.dumps(wide_schema(at)) for at in range(100)], folder / "wide")
    return {
        "check_1000_s": thousand,
        "check_growth": five / thousand / 5,
        "check_wide_ms": wide / 100 * 1000,
    }


def check(schemas: list[str], root: Path) -> float:
    """Give the seconds that one check of a registry of these schemas takes."""
    root.mkdir()
    rows = []
    for number, text in enumerate(schemas):
        (root / f"{number}.json").write_text(text)
        rows.append({"urn": f"urn:babel:bench:kind-{number}", "schema": f"{number}.json"})
    manifest = root / "registry.json"
    manifest.write_text(json.dumps({"schemas": rows}))
    began = time.perf_counter()
    run("check", "--registry", str(manifest))
    return time.perf_counter() - began


def wide_schema(lowest: int = 0, **last: Any) -> Any:
    """Make a schema of many properties of the usual kinds; `last` changes the last of them."""
    kinds = (
        {"type": "integer", "minimum": lowest},
        {"type": "string", "minLength": 1, "maxLength": 100 - lowest},
        {"type": "string", "pattern": "^[A-Z]{3}$"},
        {"enum": ["new", "paid", "sent"]},
        {"type": "array", "items": {"$ref": "#/definitions/line"}},
        {"type": ["number", "null"], "maximum": 10**6},
    )
    properties = {f"field_{at}": kinds[at % len(kinds)] for at in range(WIDE)}
    name = f"field_{WIDE - 1}"
    return {
        "type": "object",
        "properties": {**properties, name: {**properties[name], **last}},
        "required": [f"field_{at}" for at in range(0, WIDE, 4)],
        "definitions": {"line": {"type": "object", "properties": {"sku": {"type": "string"}}}},
    }


def measure_wide(rounds: int) -> dict[str, float]:
    """Time pairs of wide schemas, best of the rounds, and hold them to their verdicts."""
    old = wide_schema(1)
    more = {**old, "properties": {**old["properties"], "added": {"type": "string"}}}
    pairs = {
        "same": ({**old, "title": "new"}, "compatible"),
        "added": (more, "breaking"),
        "tightened": (wide_schema(1, maximum=10), "breaking"),
        "widened": (wide_schema(0, maximum=10**7), "compatible"),
    }
    figures = {}
    for name, (new, verdict) in pairs.items():
        found = compare(old, new, "strict").verdict
        assert found == verdict, (name, found)
        figures[f"compat_wide_{name}_ms"] = best(lambda: compare(old, new, "strict"), rounds) * 1000  # noqa: B023
    return figures


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

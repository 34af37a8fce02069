"""`tally schema validate`: validate messages against the schemas of their URNs.

    tally schema validate --registry registry.json message.json other.json
    tally schema validate --urn urn:babel:orders:created data.json
    tally schema validate --jsonl --jobs 2 captured.jsonl

A file holds an envelope, or only its `data` if you pass `--urn`. `-` is standard input. With
`--jsonl` every line is one message, and only invalid messages are printed. A URN without a schema
fails the run, unless you pass `--unknown warn` or `--unknown skip`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from tallystick.cli.annotations import add_outputs, gate, tell_machines, wants_marks
from tallystick.cli.config.arguments import add_setting
from tallystick.cli.files import standard_input
from tallystick.cli.numbers import above_zero
from tallystick.cli.outputs.colour import Tone, paint
from tallystick.cli.schema import REGISTRY_HELP
from tallystick.core.errors import Unavailable
from tallystick.schemas.catalog import load_catalog
from tallystick.schemas.outputs import Mark
from tallystick.schemas.stream import judge_lines, judge_parallel
from tallystick.schemas.validate import (
    Finding,
    Judge,
    Violation,
    build_judge,
    compile_subset,
    judge_bytes,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["register", "run"]


def register(subparsers: Any) -> None:
    """Add the verb."""
    parser = subparsers.add_parser(
        "validate",
        help="validate messages against the schemas of their URNs",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="file with a message, or - for standard input"
    )
    add_setting(parser, "registry", metavar="PATH", help=REGISTRY_HELP)
    parser.add_argument("--urn", help="URN of the data, if the files have no envelopes")
    parser.add_argument("--jsonl", action="store_true", help="each line of a file is one message")
    parser.add_argument(
        "--jobs", type=above_zero, default=1, help="number of processes for --jsonl"
    )
    parser.add_argument(
        "--unknown",
        choices=("fail", "warn", "skip"),
        default="fail",
        help="what to do with a message whose URN has no schema (default: fail)",
    )
    parser.add_argument(
        "--formats",
        choices=("dialect", "assert", "annotate"),
        default="dialect",
        help="whether a wrong `format` fails a message (default: as the schema's dialect says)",
    )
    parser.add_argument(
        "--subset",
        action="store_true",
        help="check only the draft-07 subset that every SDK checks; report only the first "
        "violation",
    )
    add_outputs(parser)
    parser.set_defaults(run=run)


@gate("tally schema validate")
def run(args: argparse.Namespace) -> int:
    """Judge every file and give 1 when anything failed."""
    judge = build_judge(
        load_catalog(args.registry),
        urn=args.urn,
        formats=args.formats,
        compile_with=compile_subset if args.subset else None,
    )
    counts: Counter[str] = Counter(ok=0, invalid=0, unknown=0, unreadable=0)
    say: Callable[[Finding], None] = _print_text if not (args.json or args.github) else _silent
    kept: list[Finding] = []
    for finding in _findings(judge, args, counts):
        if finding.outcome == "unknown" and args.unknown == "skip" and args.jsonl:
            continue
        say(finding)
        if wants_marks(args) or args.json:
            kept.append(finding)
    failed = counts["invalid"] + counts["unreadable"] + counts["unknown"] * (args.unknown == "fail")
    if args.json:
        print(json.dumps({**counts, "findings": [_as_json(one) for one in kept]}, indent=2))
    marks = [_mark(finding, args.unknown, stream=args.jsonl) for finding in kept]
    tell_machines(args, "tally schema validate", marks)
    if args.jsonl and not args.json:
        summary = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
        print(f"{sum(counts.values())} messages: {summary or 'none'}", file=sys.stderr)
    return 1 if failed else 0


def _findings(judge: Judge, args: argparse.Namespace, counts: Counter[str]) -> Iterator[Finding]:
    for name in args.files:
        if args.jsonl:
            yield from _stream(judge, name, args.jobs, counts)
            continue
        with _opened(name) as file:
            finding = judge_bytes(judge, file.read(), name)
        counts[finding.outcome] += 1
        yield finding


def _opened(name: str) -> BinaryIO:
    if name == "-":
        return open(standard_input().fileno(), "rb", closefd=False)
    try:
        return open(name, "rb")  # noqa: PTH123
    except OSError as error:
        raise Unavailable(
            f"{name or repr(name)}: {error.strerror}",
            code="message.missing",
            hint="name a file that you can read, or - for standard input",
        ) from error


def _stream(judge: Judge, name: str, jobs: int, counts: Counter[str]) -> Iterator[Finding]:
    with _opened(name) as file:
        whole = Path(name).is_file()
        size = os.fstat(file.fileno()).st_size if whole else 0
        parts = (
            judge_parallel(judge, name, jobs) if jobs > 1 and whole
            else judge_lines(judge, file, name)
        )  # fmt: skip
        taken = 0
        for tally, length in parts:
            taken += length
            _progress(name, taken, size)
            counts["ok"] += tally.ok
            counts.update(finding.outcome for finding in tally.findings)
            yield from tally.findings
        _progress(name, 0, 0)


def _progress(name: str, taken: int, size: int) -> None:
    if not sys.stderr.isatty():
        return
    if not taken:
        sys.stderr.write("\r\033[K")
    elif size:
        filled = 30 * taken // size
        bar = "#" * filled + "." * (30 - filled)
        sys.stderr.write(f"\r{name} [{bar}] {100 * taken // size:3d} %")
    else:
        sys.stderr.write(f"\r{name} {taken / 1e6:.1f} MB")
    sys.stderr.flush()


def _silent(_: Finding) -> None:
    return


_TONES: Final = {"ok": Tone.GOOD, "unknown": Tone.DOUBTFUL}


def _print_text(finding: Finding) -> None:
    tone = _TONES.get(finding.outcome, Tone.BAD)
    print(f"{_place(finding)}: {paint(_headline(finding), tone)}")
    for violation in finding.violations:
        print(f"  {violation.pointer or '(root)'}: {_words(violation)}")


def _place(finding: Finding) -> str:
    where = f"{finding.source}:{finding.line}" if finding.line else finding.source
    return f"{where} [{finding.urn}]" if finding.urn else where


def _headline(finding: Finding) -> str:
    if finding.outcome == "unknown":
        return "no schema registered" if finding.urn else "no job or urn"
    if finding.outcome == "ok":
        return "ok"
    count = len(finding.violations)
    return f"{count} violation{'s' if count != 1 else ''}"


def _words(violation: Violation) -> str:
    if violation.expected is None or violation.keyword in ("json", "urn"):
        return f"{violation.keyword}: {violation.message}"
    expected = violation.expected
    wanted = expected if isinstance(expected, str) else _short(expected)
    if violation.found is None and violation.keyword == "required":
        return f"required: expected {wanted!r}, found nothing"
    return f"{violation.keyword}: expected {wanted}, found {_short(violation.found)}"


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}... ({len(text)} characters)"


def _as_json(finding: Finding) -> dict[str, Any]:
    return {
        "source": finding.source,
        "line": finding.line,
        "urn": finding.urn,
        "outcome": finding.outcome,
        "violations": [violation._asdict() for violation in finding.violations],
    }


def _mark(finding: Finding, unknown: str, *, stream: bool) -> Mark:
    levels = {"fail": "failed", "warn": "warning", "skip": "passed"}
    level: Any = {"ok": "passed", "unknown": levels[unknown]}.get(finding.outcome, "failed")
    detail = "\n".join(f"{one.pointer or '(root)'}: {_words(one)}" for one in finding.violations)
    message = "" if finding.outcome == "ok" else f"{_headline(finding)}\n{detail}".strip()
    name, file, line = _place(finding), finding.source, finding.line
    parts = tuple(
        Mark(
            name, level, f"{one.pointer or '(root)'}: {_words(one)}", "", file, line,
            f"validate/{one.keyword}", one.pointer, stream,
        )
        for one in finding.violations
    )  # fmt: skip
    rule = f"validate/{finding.outcome}"
    return Mark(name, level, message, detail, file, line, rule, stream=stream, parts=parts)

"""The registry gate on the example registry: sound, personal data marked, a break found."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

from tallystick.cli.proof.bench import Bench, Found, Step
from tallystick.cli.proof.needs import extra
from tallystick.cli.proof.process import run_tally, show_command
from tallystick.report.proof.values import Change, RegistryGate, StepState
from tallystick.suites.shipped import find_shipped

__all__ = ["example_registry", "registry_steps"]

_OLD = "orders-created.json"
_NEW = "orders-created.v2-breaking.json"


def example_registry() -> Path:
    """Give the folder of the example registry that ships with Tallystick."""
    return find_shipped("examples") / "registry"


def registry_steps(registry: Path) -> list[Step]:
    """Give the steps; they need the schema libraries and nothing else."""
    manifest = str(registry / "registry.json")
    schemas = registry / "schemas"
    check = ("schema", "check", "--registry", manifest)
    privacy = ("schema", "gdpr", "--require", "--registry", manifest)
    compat = (
        "schema", "compat", "--mode", "babelqueue", str(schemas / _OLD), str(schemas / _NEW),
    )  # fmt: skip
    needs = (extra("schemas"),)
    return [
        Step("registry check", needs, show_command(check), partial(_check, check)),
        Step("registry privacy", needs, show_command(privacy), partial(_find_personal, privacy)),
        Step("registry gate", needs, show_command(compat), partial(_find_break, compat)),
    ]


def _check(command: tuple[str, ...], _bench: Bench) -> Found:
    answer = run_tally(command)
    counts = ("urns", "files", "examples", "errors", "warnings")
    text = ", ".join(f"{answer.value[name]} {name}" for name in counts)
    return Found(StepState.FAILED if answer.code else StepState.PASSED, text)


def _find_personal(command: tuple[str, ...], _bench: Bench) -> Found:
    answer = run_tally(command)
    suspects = answer.value["suspects"]
    if not answer.code:
        return Found(StepState.PASSED, "every field with personal data is marked")
    names = ", ".join(f"{row['urn']} {row['path']}" for row in suspects)
    return Found(StepState.FAILED, f"personal data without a mark: {names or 'expired waivers'}")


def _find_break(command: tuple[str, ...], bench: Bench) -> Found:
    """Compare two schemas that break on purpose: a gate that lets them pass has failed."""
    answer = run_tally(command).value
    changes = tuple(
        Change(row["pointer"], row["rule"], row["effect"], row["message"])
        for row in answer["changes"]
    )
    held = answer.get("witness") or {}
    witness = json.dumps(held["data"], ensure_ascii=False) if "data" in held else ""
    bench.gate = RegistryGate(_OLD, _NEW, answer["verdict"], changes, witness)
    breaks = sum(change.effect == "breaking" for change in changes)
    if answer["verdict"] == "breaking" and witness:
        text = f"the breaking change is refused: {breaks} breaks, proved by a message"
        return Found(StepState.PASSED, text)
    text = f"the breaking change is judged {answer['verdict']}, with {breaks} breaks"
    return Found(StepState.FAILED, text + ("" if witness else " and without a witness"))

"""The traffic: what the lab sent and received, through the pipeline, with nothing bad or lost."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tallystick.cli.proof.bench import Bench, Found, Step
from tallystick.cli.proof.needs import JAVA, SHELL_TOOLS, SPARK_SHELL, extra
from tallystick.cli.proof.pages import TRAFFIC
from tallystick.cli.proof.process import run_tally, show_command
from tallystick.report.proof.values import NotRun, StepState

__all__ = ["traffic_steps"]

_NAME = "traffic"


def traffic_steps(folder: Path, registry: Path) -> list[Step]:
    """Give the step; its input is what the lab has captured."""
    arguments = (
        "pipeline", "run", "--registry", str(registry / "registry.json"),
        "--out", str(folder / "lake"), "--page", str(folder / TRAFFIC),
        "--fail-if", "bad>0", "--fail-if", "lost>0",
    )  # fmt: skip
    needs = (extra("pipeline"), extra("lab"), JAVA, SHELL_TOOLS, SPARK_SHELL)
    shown = show_command(
        [*arguments, "--input", f"{folder}/lab-*.jsonl", "--input", f"{folder}/captured-*.jsonl"]
    )
    return [Step(_NAME, needs, shown, partial(_run_pipeline, arguments))]


def _run_pipeline(arguments: tuple[str, ...], bench: Bench) -> Found | NotRun:
    if not bench.captures:
        return NotRun(_NAME, "needs the captures of the lab, which was not run")
    inputs = [word for path in bench.captures for word in ("--input", str(path))]
    answer = run_tally([*arguments, *inputs])
    figures: dict[str, int] = answer.value["figures"]
    bench.figures = figures
    bench.pages["The traffic"] = TRAFFIC
    text = (
        f"{figures['messages']:,} captured messages: {figures['refused']:,} bad, "
        f"{figures['delivered']:,} delivered, {figures['lost']:,} lost"
    )
    return Found(StepState.FAILED if answer.code else StepState.PASSED, text)

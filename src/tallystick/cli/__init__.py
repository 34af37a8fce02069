"""The command `tally`: noun, then verb. The only code that prints or exits.

Exit 0 conforms, 1 a finding, 2 usage or I/O. Data goes to stdout, talk to stderr. A noun's module
is imported when its noun is used, so that `tally --version` starts as quickly as Python does.
"""

from __future__ import annotations

import sys

from tallystick import __version__

__all__ = ["NOUNS", "main"]

NOUNS: dict[str, str] = {
    "prove": "the main job: run the standard on every implementation at hand",
    "doctor": "what is installed, what is missing, how to get it",
    "envelope": "show, encode, project, reconcile messages; find what others would alter",
    "event": "convert CloudEvents between formats, or say where one is wrong",
    "schema": "the git-native registry: check, validate, compat, export, privacy, serve",
    "broker": "start, stop and look at real brokers on this machine",
    "outbox": "publish what your transactions have committed, and look at what waits",
    "faults": "break brokers, workers and connections, and count what is lost",
    "run": "handle messages: run the worker of an app, `module:app`",
    "capture": "tap a queue and keep what is there, without consuming it",
    "replay": "send captured messages to a queue, byte for byte",
    "redrive": "send dead letters back to work",
    "suite": "run the executable contract on any implementation, in any language",
    "standard": "check the suite itself, and keep vendored copies in step",
    "lab": "circuits on real brokers: between clients in many languages, and in tiers",
    "report": "one offline page of one or more runs",
    "journal": "show a run, or compare two",
    "pipeline": "the same proof on captured traffic of any size, on Spark",
}
"""Every noun and its line of help; the module `tallystick.cli.<noun>` registers its verbs."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and give its exit code."""
    argv = sys.argv[1:] if arguments is None else arguments
    if argv in (["--version"], ["-V"]):
        print(f"tally {__version__}")
        return 0
    from tallystick.cli.dispatch import run  # noqa: PLC0415 (argparse alone doubles the start-up)

    return run(argv, NOUNS)


if __name__ == "__main__":
    sys.exit(main())

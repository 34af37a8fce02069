"""The command `tally`: noun, then verb. Only this package prints or exits.

Exit codes: 0 conforms, 1 finding, 2 usage or I/O error. Data goes to stdout, messages to stderr.
The module of a noun is imported when the noun is used, so `tally --version` starts quickly.
"""

from __future__ import annotations

import sys

from tallystick import __version__

__all__ = ["NOUNS", "main"]

NOUNS: dict[str, str] = {
    "prove": "run every check that this machine can run: one verdict, one page",
    "config": "show the settings of this project, and where each value comes from",
    "completion": "print the completion script for bash, zsh or fish",
    "doctor": "show what is installed, what is missing, and how to install it",
    "examples": "write the example files that the guides use",
    "envelope": "show, encode and project one message; find values that JSON libraries change",
    "event": "convert CloudEvents between formats, or validate them",
    "schema": "schema registry in git: check, validate, compat, gdpr, export-asyncapi, serve",
    "broker": "start, stop and list real brokers on this machine",
    "outbox": "publish the messages that your transactions committed; show the waiting ones",
    "faults": "kill brokers, workers and connections during a run; count lost messages",
    "run": "handle messages: run the worker of an app, `module:app`",
    "capture": "record the messages of a queue without consuming them",
    "replay": "send captured messages to a queue, byte for byte",
    "redrive": "move dead letters back to their queues",
    "suite": "run the conformance suite on any implementation, in any language",
    "standard": "check the conformance suite itself, and keep copies of it up to date",
    "lab": "exchange messages between clients in many languages, over real brokers",
    "report": "write one offline HTML page about one or more runs",
    "journal": "show one run, or compare two",
    "pipeline": "check captured traffic of any size, on Spark",
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

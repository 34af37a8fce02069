"""`tally completion`: print the completion script of a shell.

    tally completion bash > ~/.local/share/bash-completion/completions/tally
    tally completion zsh > ~/.zfunc/_tally          (a folder in `fpath`, before `compinit`)
    tally completion fish > ~/.config/fish/completions/tally.fish

The script completes nouns, verbs, options, their choices, names of brokers, and files. It starts
no Python. Print it again after an upgrade. `--program bqschema` prints the script for `bqschema`.
"""

from __future__ import annotations

import argparse
from typing import Final

__all__ = ["SHELLS", "register"]

SHELLS: Final = ("bash", "zsh", "fish")


def register(parser: argparse.ArgumentParser) -> None:
    """Add the arguments; there is one verb, and it is the noun."""
    parser.description = __doc__
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=SHELLS, help="the shell that reads the script")
    parser.add_argument(
        "--program", choices=("tally", "bqschema"), default="tally",
        help="the program to complete (default: %(default)s)",
    )  # fmt: skip
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    import shtab  # noqa: PLC0415 (only this command needs it)

    from tallystick.cli.completion.parsers import PARSERS  # noqa: PLC0415 (imports every noun)

    print(shtab.complete(PARSERS[args.program](), args.shell))
    return 0

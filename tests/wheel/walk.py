"""Runs in an installed environment: list every verb, or print the help of every verb.

    python walk.py list      one JSON list of verbs: ["tally schema check", "bqschema compat", ...]
    python walk.py help      one JSON object: verb -> exit code and text of its `--help`

The verbs are walked from the parsers, so a new verb shows up here by itself.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import sys
from collections.abc import Iterator

import tallystick.cli
from tallystick.cli import bqschema


def _walk(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    below = [one for one in parser._actions if isinstance(one, argparse._SubParsersAction)]
    for action in below:
        for name, inner in action.choices.items():
            yield from _walk(inner, (*words, name))
    if not below:
        yield words


def walk_verbs() -> Iterator[tuple[str, ...]]:
    for noun in tallystick.cli.NOUNS:
        parser = argparse.ArgumentParser()
        importlib.import_module(f"tallystick.cli.{noun}").register(parser)
        yield from _walk(parser, ("tally", noun))
    for command in bqschema.COMMANDS:
        yield ("bqschema", command)


def _help(words: tuple[str, ...]) -> tuple[int, str]:
    program = {"tally": tallystick.cli.main, "bqschema": bqschema.main}[words[0]]
    caught = io.StringIO()
    with contextlib.redirect_stdout(caught), contextlib.redirect_stderr(caught):
        code = program([*words[1:], "--help"])
    return code, caught.getvalue()


if __name__ == "__main__":
    found = list(walk_verbs())
    if sys.argv[1] == "list":
        json.dump([" ".join(words) for words in found], sys.stdout)
    else:
        json.dump({" ".join(words): _help(words) for words in found}, sys.stdout)

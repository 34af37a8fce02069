"""Every page is followed as a reader follows it: from top to bottom, in one folder.

The folder is empty at first: a page that uses `examples/` tells the reader to run `tally examples`.
What is run, and what is asked of it:

- `console`: a line that starts with `$ ` is a command, the lines under it are its output, where
  `...` stands for anything (doctest's ELLIPSIS). The output is compared.
- `sh`: the block is one script, and it ends with exit code 0.
- `python`: the block is a module. It is saved under the name in its first line (`# shop.py`) and
  run, and it ends with exit code 0. If it has an `app`, `tally run` imports and runs that as well.
- `json`, `yaml`, `toml`: the block can be parsed.
- `text`, `sql` and `xml` show something that is not run. No other block may be without a language.

The folder is the reader's home as well, so nothing of the machine's own home is touched; only the
cache of fetched programs is shared. `App("redis")` and `tally ... redis` mean a Redis that is
started for these tests. Where a page starts a broker itself, that broker is the page's own.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml  # type: ignore[import-untyped]

from tallystick.brokers.servers import running
from tallystick.brokers.servers.places import cache_folder
from tests.docs.not_run import NOT_RUN
from tests.docs.pages import PAGES, ROOT, Block, read_blocks

READ: Final[Mapping[str, Callable[[str], Any]]] = {
    "json": json.loads,
    "yaml": yaml.safe_load,
    "toml": tomllib.loads,
}
SHOWN: Final = ("text", "sql", "xml")
RUN: Final = ("console", "sh", "python")
FOLLOWED: Final = [
    page for page in PAGES if any(block.language in (*RUN, *READ) for block in read_blocks(page))
]
SECONDS: Final = 900
"""The longest that one command of a page may take, on a busy machine."""


@pytest.fixture(scope="session")
def shared_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the folder of state in which `redis` is running."""
    state = tmp_path_factory.mktemp("state")
    with running("redis", home=state / "tallystick" / "brokers"):
        yield state


def run(command: list[str], folder: Path, state: Path) -> subprocess.CompletedProcess[str]:
    """Run one command as the reader of a page would."""
    environment = {
        **os.environ,
        "HOME": str(folder),
        "XDG_CACHE_HOME": str(cache_folder().parents[1]),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(state),
        "NO_COLOR": "1",
    }
    return subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def reason_not_to_run(block: Block) -> str:
    name = str(block.page.relative_to(ROOT))
    return next((why for (page, text), why in NOT_RUN.items()
                 if page == name and text in block.text), "")  # fmt: skip


def follow_console(block: Block, folder: Path, state: Path) -> None:
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        done = run(["bash", "-c", command], folder, state)
        expected, printed = (text.rstrip() + "\n" for text in (shown, done.stdout + done.stderr))
        same = doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS)
        assert same, f"{block}: $ {command}\nexpected:\n{expected}\nfound:\n{printed}"


def follow_script(block: Block, folder: Path, state: Path) -> None:
    check(block, run(["bash", "-euo", "pipefail", "-c", block.text], folder, state))


def follow_module(block: Block, folder: Path, state: Path) -> None:
    named = re.match(r"# (\w+)\.py\n", block.text)
    module = named[1] if named else "example"
    (folder / f"{module}.py").write_text(block.text)
    check(block, run([sys.executable, f"{module}.py"], folder, state))
    if re.search(r"^app = App\(", block.text, re.MULTILINE):
        check(block, run(["tally", "run", f"{module}:app", "--idle", "0"], folder, state))


def check(block: Block, done: subprocess.CompletedProcess[str]) -> None:
    said = f"{done.stdout}\n{done.stderr}"
    assert done.returncode == 0, f"{block} ended with {done.returncode}:\n{block.text}\n{said}"


FOLLOW: Final = {"console": follow_console, "sh": follow_script, "python": follow_module}


@pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_works_as_printed(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    folder, state = tmp_path / "reader", tmp_path / "state"
    folder.mkdir()
    starts_its_own = "tally broker up" in "".join(block.text for block in read_blocks(page))
    if not starts_its_own:
        state = request.getfixturevalue("shared_state")
    try:
        for block in read_blocks(page):
            if block.language in READ:
                READ[block.language](block.text)
            elif block.language in RUN and not reason_not_to_run(block):
                FOLLOW[block.language](block, folder, state)
    finally:
        if starts_its_own:
            assert run(["tally", "broker", "down", "--wipe"], folder, state).returncode == 0


def test_every_block_has_a_language_and_no_command_hides_in_one_that_is_not_run() -> None:
    for page in PAGES:
        for block in read_blocks(page):
            assert block.language in (*RUN, *READ, *SHOWN), f"{block}: {block.language!r}"
            if block.language in SHOWN:
                hidden = re.search(r"^(\$|tally|pip|python3?|make) ", block.text, re.MULTILINE)
                assert hidden is None, f"{block}: a command in a block that is not run"


def test_every_reason_not_to_run_is_about_one_block_of_a_page() -> None:
    for (page, text), reason in NOT_RUN.items():
        blocks = [block for block in read_blocks(ROOT / page) if text in block.text]
        assert len(blocks) == 1, (page, text, reason)


def test_the_guide_shows_the_program_that_ships_as_an_example() -> None:
    page, program = "docs/guides/write-a-subject.md", "examples/sdk/mine.py"
    (block,) = [one for one in read_blocks(ROOT / page) if one.language == "python"]
    assert block.text == f"# mine.py\n{(ROOT / program).read_text()}"


def test_there_are_commands_to_run() -> None:
    languages = {block.language for page in PAGES for block in read_blocks(page)}
    assert languages >= set(RUN)

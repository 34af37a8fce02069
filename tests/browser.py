"""One real browser for all pages: Chromium, offline unless a server is asked, and what it saw.

    seen = browse(page, script, folder)

`script` is a module of JavaScript whose default export gets `{ page, axe, picture }` and gives
values back as JSON. Added to them are `errors` of console and page, `elsewhere` (every request
beyond the page itself) and `dialogs`. Pictures stay in TALLY_PICTURES when it is set.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest

__all__ = ["browse"]

_ROOT: Final = Path(__file__).parents[1]
_LOCKED: Final = _ROOT / "tests" / "server" / "page"
_RUNNER: Final = Path(__file__).with_name("browser.mjs")


def _need(program: str, package: str) -> str:
    """Find a program, or fail with the command that installs it."""
    found = shutil.which(program)
    if found is None:
        pytest.fail(f"{program} is missing: apt-get install {package}", pytrace=False)
    return found


def _find_modules() -> Path:
    """Give the folder with playwright-core and axe-core, installed once for this lock."""
    _need("npm", "npm")
    lock = (_LOCKED / "package-lock.json").read_bytes()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tallystick"
    home = cache / f"page-{hashlib.sha256(lock).hexdigest()[:16]}"
    if not home.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as made:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(_LOCKED / name, made)
            retry = str(_ROOT / "tools" / "retry")
            command = [retry, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=made, check=True, capture_output=True)
            if not home.exists():
                shutil.copytree(made, home)
    return home


def browse(page: Path | str, script: Path, folder: Path) -> dict[str, Any]:
    """Open a file or an address, run a script on it, and give what was seen."""
    address = page.as_uri() if isinstance(page, Path) else page
    pictures = os.environ.get("TALLY_PICTURES") or str(folder)
    done = subprocess.run(
        [_need("node", "nodejs"), str(_RUNNER), str(_find_modules()), address, str(script),
         _need("chromium", "chromium"), str(folder / "profile"), pictures],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    value: dict[str, Any] = json.loads(done.stdout)
    return value

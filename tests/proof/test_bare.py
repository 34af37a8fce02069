"""`make prove` needs Python, Java, git, make and the base tools; it lists what it did not run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASE = """
basename cat chmod cp cut date dirname echo env expr false head id ln ls mkdir mktemp mv nohup od
printf pwd readlink realpath rm rmdir seq sha256sum sleep sort stat tail tee test touch tr true
uname uniq wc
"""
"""The programs of coreutils that scripts use."""
PASSED_ON = ("PIP_", "UV_", "SSL_CERT_", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""How pip and uv find the package registry on this machine."""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """Give an environment with these programs, an empty home and the caches of this machine."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    for name in ("java", "git", "make", "sh", *BASE.split()):
        place = shutil.which(name)
        assert place, f"{name} is not on the PATH"
        (programs / name).symlink_to(Path(place).resolve() if name == "java" else place)
    home = tmp_path / "home"
    home.mkdir()
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    registry = {name: text for name, text in os.environ.items() if name.startswith(PASSED_ON)}
    return {**registry, "PATH": str(programs), "HOME": str(home), "XDG_CACHE_HOME": cache}


def test_make_prove_with_nothing_but_its_prerequisites_conforms_and_lists_what_was_not_run(
    bare: dict[str, str], tmp_path: Path
) -> None:
    proof = tmp_path / "proof"
    done = subprocess.run(
        ["make", "--no-print-directory", "prove", f"PROOF={proof}"],
        cwd=ROOT,
        env=bare,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    lines = done.stdout.splitlines()
    for part in (
        "tallystick-go (needs Go 1.22 or newer: `go` is not on the PATH)",
        "tallystick-node (needs Node.js 20 or newer: `node` is not on the PATH)",
        "cloudevents-java (needs a Java 17 (or newer) development kit: `javac` is not on the PATH)",
        "lab over vm (needs awk and grep: apt-get install mawk grep)",
    ):
        assert f"not run: {part}" in lines
    assert any(line.startswith("not run: traffic (needs awk and grep and bash: ") for line in lines)
    verdict, official, page = lines[-3:]
    assert verdict.startswith("tallystick conforms: 5 of 5 steps passed; ")
    assert official.startswith("official CloudEvents cases: ")
    assert page == f"page: {proof}/index.html ({(proof / 'index.html').as_uri()})"
    assert (proof / "index.html").is_file()

"""The peers we measure against, each at one version, in a cache folder of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "tallystick"


def install(*requirements: str) -> Path:
    """Install pinned packages into a folder and put it at the end of the import path."""
    folder = cache() / "peers" / "-".join(requirements).replace("==", "-")
    if not (folder / ".done").exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
        command += ["--upgrade", *requirements]
        for wait in (5, 15, 45, 0):
            if subprocess.run(command, check=False, stdout=sys.stderr).returncode == 0:
                break
            if not wait:
                sys.exit(f"could not install {', '.join(requirements)}")
            time.sleep(wait)
        (folder / ".done").touch()
    sys.path.append(str(folder))
    return folder

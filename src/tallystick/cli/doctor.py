"""`tally doctor`: what is installed, what is missing, what each is for and how to get it.

Exit 0 when everything that `make prove` and `make test` need is here, 1 when something is missing.
One row per thing; a row either names programs or has a function that looks.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tallystick.brokers.servers.java import find_java
from tallystick.brokers.servers.places import cache_folder
from tallystick.core.errors import Unavailable

__all__ = ["CHECKS", "Check", "Finding", "examine", "register"]

_GB: Final = 1_000_000_000
_DISK: Final = 2 * _GB
_MEMORY: Final = 2 * _GB
_PATIENCE: Final = 30


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that may be missing: what it is for, how to get it, how to look for it.

    `look` gives what was found (a version, a size), or raises `Unavailable` with the reason.
    """

    name: str
    used_for: str
    get: str
    look: Callable[[], str]
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found."""

    name: str
    found: str
    missing: str
    needed: bool
    used_for: str
    get: str


def register(parser: argparse.ArgumentParser) -> None:
    """Add the option; there is one verb, and it is the noun."""
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.set_defaults(run=_run)


def examine(check: Check) -> Finding:
    """Look for one thing."""
    try:
        found, missing = check.look(), ""
    except Unavailable as error:
        found, missing = "", str(error)
    return Finding(check.name, found, missing, check.needed, check.used_for, check.get)


def _run(arguments: argparse.Namespace) -> int:
    findings = [examine(check) for check in CHECKS]
    lacking = [one.name for one in findings if one.missing and one.needed]
    if arguments.json:
        print(json.dumps({"complete": not lacking, "checks": [asdict(one) for one in findings]}))
    else:
        for one in findings:
            mark = "ok" if not one.missing else "MISSING" if one.needed else "absent"
            print(f"{mark:8}{one.name:12}{one.found or one.missing:24} {one.used_for}")
            if one.missing:
                print(f"{'':20}get it: {one.get}")
        print(
            f"missing: {', '.join(lacking)}" if lacking else "nothing is missing", file=sys.stderr
        )
    return 1 if lacking else 0


def _program(name: str, *ask: str, oldest: tuple[int, ...] = ()) -> Callable[[], str]:
    """Look for a program on the PATH, and ask it for its version if an oldest one is given."""

    def look() -> str:
        path = shutil.which(name)
        if path is None:
            raise Unavailable("not on the PATH", code="missing")
        if not ask:
            return path
        try:
            answer = subprocess.run(  # noqa: S603 (a program of this table)
                [path, *ask], capture_output=True, text=True, errors="replace",
                timeout=_PATIENCE, check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired as late:
            raise Unavailable(f"{path} does not answer", code="broken") from late
        match = re.search(r"\d+(?:\.\d+)+", answer.stdout + answer.stderr)
        if answer.returncode or match is None:
            raise Unavailable(f"{path} does not run", code="broken")
        if tuple(map(int, match[0].split("."))) < oldest:
            wanted = ".".join(map(str, oldest))
            raise Unavailable(f"{match[0]} is older than {wanted}", code="old")
        return match[0]

    return look


def _python() -> str:
    return platform.python_version()  # an older one cannot import this file


def _machine() -> str:
    found = f"{platform.system()} {platform.machine()}"
    if found != "Linux x86_64":
        raise Unavailable(f"this is {found}", code="machine")
    return found


def _disk() -> str:
    folder = cache_folder()
    while not folder.exists():
        folder = folder.parent
    return _enough(shutil.disk_usage(folder).free, _DISK, "free")


def _memory() -> str:
    match = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text("ascii"))
    return _enough(int(match[1]) * 1024 if match else 0, _MEMORY, "available")


def _enough(here: int, wanted: int, what: str) -> str:
    text = f"{here / _GB:.1f} GB {what}"
    if here < wanted:
        raise Unavailable(f"{text}, {wanted / _GB:.0f} GB are needed", code="too_little")
    return text


def _module(name: str) -> Callable[[], str]:
    def look() -> str:
        package = name.partition(".")[0]
        if find_spec(package) is None or find_spec(name) is None:
            raise Unavailable("not installed", code="missing")
        return "installed"

    return look


def _java() -> str:
    java = find_java()
    release = java.parent.parent / "release"
    text = release.read_text("utf-8") if release.exists() else ""
    match = re.search(r'JAVA_VERSION="([^"]+)"', text)
    return match[1] if match else str(java)


def _javac() -> str:
    home = os.environ.get("JAVA_HOME")
    path = shutil.which("javac", path=f"{home}/bin" if home else None) or shutil.which("javac")
    if path is None:
        raise Unavailable("not on the PATH", code="missing")
    return path


def _extra(module: str, extra: str) -> Check:
    return Check(extra, f"the {extra} client", f"make setup, or pip install 'tallystick[{extra}]'",
                 _module(module), needed=False)  # fmt: skip


CHECKS: Final = (
    Check("machine", "Redis and RabbitMQ are pinned for it", "a Linux machine, x86_64", _machine),
    Check("python", "everything", "Python 3.11 or newer: apt-get install python3", _python),
    Check("git", "the registry compares a change with its base", "apt-get install git",
          _program("git", "--version", oldest=(2, 20))),
    Check("make", "the two commands", "apt-get install make", _program("make", "--version")),
    Check("java", "Kafka, Pulsar, ElasticMQ, Artemis, Broker-J, Spark",
          "apt-get install openjdk-17-jdk-headless, or set JAVA_HOME", _java),
    Check("javac", "the Java subject", "apt-get install openjdk-17-jdk-headless", _javac),
    Check("mvn", "fetches those brokers and the Java subject's library",
          "apt-get install maven", _program("mvn", "--version", oldest=(3, 6))),
    Check("apt-get", "fetches Redis and RabbitMQ (nothing is installed, no root is needed)",
          "it is part of Debian and Ubuntu; elsewhere start these two by other means",
          _program("apt-get", "--version")),
    Check("dpkg-deb", "unpacks them", "it is part of Debian and Ubuntu",
          _program("dpkg-deb", "--version")),
    Check("node", "the Node subject", "Node.js 20 or newer: apt-get install nodejs",
          _program("node", "--version", oldest=(20, 0))),
    Check("go", "the Go subject", "Go 1.22 or newer: apt-get install golang-go",
          _program("go", "version", oldest=(1, 22))),
    Check("chromium", "looks at the report as a reader does", "apt-get install chromium",
          _program("chromium", "--version"), needed=False),
    Check("disk", "the brokers' programs and data", "free some, or set XDG_CACHE_HOME", _disk),
    Check("memory", "one broker and Spark at a time", "end other programs", _memory),
    _extra("redis", "redis"),
    _extra("pika", "rabbitmq"),
    _extra("boto3", "sqs"),
    _extra("azure.servicebus", "servicebus"),
    _extra("pulsar", "pulsar"),
    _extra("confluent_kafka", "kafka"),
    _extra("proton", "artemis"),
    _extra("psycopg", "postgresql"),
    _extra("opentelemetry.sdk", "telemetry"),
)  # fmt: skip
"""Every thing Tallystick may use, in the order of their weight."""

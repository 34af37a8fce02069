"""The one table of what Tallystick can use: tools, extras, and the machine itself.

A row says what the thing is for and the command that gets it. No row says that a thing is needed:
that depends on the task, and `areas.py` has the tasks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tallystick.cli.doctor.look import (
    Look,
    find_cargo,
    find_compiler,
    find_disk,
    find_java_version,
    find_javac,
    find_machine,
    find_memory,
    find_python,
    look_for_extra,
    look_for_program,
)
from tallystick.core.extras import EXTRAS

__all__ = ["THINGS", "Thing"]


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that may be missing: what it is for, how to get it, how to look for it."""

    name: str
    group: str
    used_for: str
    get: str
    look: Look


_JDK: Final = "apt-get install openjdk-17-jdk-headless"
_DEBIAN: Final = "part of Debian and Ubuntu; elsewhere start Redis and RabbitMQ by other means"

_TOOLS: Final = (
    Thing("python", "tools", "everything", "Python 3.11 or newer: apt-get install python3",
          find_python),
    Thing("java", "tools", "Spark; the brokers Kafka, Pulsar, ElasticMQ, Artemis, Qpid",
          f"{_JDK}, or set JAVA_HOME", find_java_version),
    Thing("git", "tools", "comparing a schema with its base; make prove", "apt-get install git",
          look_for_program("git", ask="--version", oldest=(2, 20))),
    Thing("make", "tools", "make prove and make test", "apt-get install make",
          look_for_program("make", ask="--version")),
    Thing("javac", "tools", "the Java implementations and the Java client of the lab", _JDK,
          find_javac),
    Thing("mvn", "tools", "fetching brokers and the libraries of Java programs",
          "apt-get install maven", look_for_program("mvn", ask="--version", oldest=(3, 6))),
    Thing("go", "tools", "the Go implementations and the Go client of the lab",
          "Go 1.23 or newer: apt-get install golang-go, or the archive of the Go project",
          look_for_program("go", ask="version", oldest=(1, 23))),
    Thing("node", "tools", "the Node.js implementations and client; tests of the pages",
          "Node.js 20 or newer: apt-get install nodejs",
          look_for_program("node", ask="--version", oldest=(20, 0))),
    Thing("npm", "tools", "libraries of the Node.js programs; it brings the TypeScript compiler",
          "apt-get install npm", look_for_program("npm", ask="--version")),
    Thing("cargo", "tools", "the Rust client of the lab",
          "Rust 1.88 or newer: rustup (the installer of the Rust project)",
          find_cargo),
    Thing("cc", "tools", "building the extra artemis, which has no wheel",
          "apt-get install gcc libc6-dev python3-dev", find_compiler),
    Thing("chromium", "tools", "make test: opening the pages as a reader does",
          "apt-get install chromium", look_for_program("chromium", ask="--version")),
    Thing("fish", "tools", "make test: completion in fish", "apt-get install fish",
          look_for_program("fish", ask="--version")),
    Thing("zsh", "tools", "make test: completion in zsh", "apt-get install zsh",
          look_for_program("zsh", ask="--version")),
    Thing("apt-get", "tools", "fetching Redis and RabbitMQ (installs nothing, needs no root)",
          _DEBIAN, look_for_program("apt-get", ask="--version")),
    Thing("dpkg-deb", "tools", "unpacking Redis and RabbitMQ", _DEBIAN,
          look_for_program("dpkg-deb", ask="--version")),
    Thing("bash", "tools", "Spark's own start script", "apt-get install bash",
          look_for_program("bash", ask="--version")),
    Thing("awk", "tools", "the start scripts of the lab's clients", "apt-get install mawk",
          look_for_program("awk")),
    Thing("grep", "tools", "the start scripts of the lab's clients", "apt-get install grep",
          look_for_program("grep")),
)  # fmt: skip

_MACHINE: Final = (
    Thing("machine", "machine", "Redis and RabbitMQ are pinned for it", "a Linux machine, x86_64",
          find_machine),
    Thing("disk", "machine", "programs and data of brokers", "free some, or set XDG_CACHE_HOME",
          find_disk),
    Thing("memory", "machine", "one broker and Spark at the same time", "end other programs",
          find_memory),
)  # fmt: skip

_LIBRARIES: Final = tuple(
    Thing(f"[{name}]", "extras", row.used_for, f"pip install 'tallystick[{name}]'",
          look_for_extra(name))
    for name, row in EXTRAS.items()
)  # fmt: skip

THINGS: Final[Mapping[str, Thing]] = MappingProxyType(
    {thing.name: thing for thing in (*_TOOLS, *_MACHINE, *_LIBRARIES)}
)
"""By name; the name of an extra stands in brackets, as in the pip command."""

"""The recipe of a broker as data: downloads, files, the start command, the readiness check.

One `Server` per broker, in `brokers/<name>/server.py`. Every text in it is a template: `$data` is
the private data folder, `$install` the fetched program, `$port_<name>` a port of the machine,
`$java` and `$python` the programs. Everything listens only on the loopback address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from signal import SIGTERM, Signals
from string import Template
from typing import Final

__all__ = [
    "HOST", "Archive", "Bundle", "Debian", "Fetch", "Here", "Jars", "Probe", "Server", "fill",
    "override", "probe_http",
]  # fmt: skip

HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Debian:
    """Packages unpacked beside each other; each patch is (glob, old text, new text)."""

    patches: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Jars:
    """Artifacts with everything they need at run time, in one folder: `group:artifact:version`."""

    artifacts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Archive:
    """One `.tar.gz` release, unpacked; `inside` is the folder in it that becomes `$install`."""

    artifact: str
    inside: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """One jar for one kind of machine, and the compressed tar file in it that is unpacked."""

    artifact: str
    member: str


@dataclass(frozen=True, slots=True)
class Here:
    """Nothing to fetch: the server is part of Tallystick; an extra brings the library it needs."""

    extra: str = ""


Fetch = Debian | Jars | Archive | Bundle | Here


@dataclass(frozen=True, slots=True)
class Probe:
    """Ready when `send` on the port is answered by bytes with `expect` at offset `at`."""

    port: str
    send: bytes
    expect: bytes
    at: int = 0


def probe_http(port: str, path: str) -> Probe:
    """Make a probe that requests a page; the broker is ready when the page exists."""
    send = f"GET {path} HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()
    return Probe(port, send, b" 200 ", at=len("HTTP/1.1"))


@dataclass(frozen=True, slots=True)
class Server:
    """One broker that can be started here. The first port and the first URL are the client's."""

    name: str
    title: str
    version: str
    fetch: Fetch
    ports: tuple[str, ...]
    urls: Mapping[str, str]
    command: tuple[str, ...]
    probe: Probe
    memory: int
    """Memory when idle in MB, for `tally doctor` and `tally broker list`."""
    says: str = ""
    """The log text that shows that it is ready, if it answers before it is ready."""
    settles: tuple[str, float] = ("", 0.0)
    """If this file of an earlier run exists, the log must first be silent for this time."""
    admin: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    properties: Mapping[str, tuple[str, Mapping[str, str]]] = field(default_factory=dict)
    """Properties files based on the program's own: file -> (the program's file, our values)."""
    folders: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    once: tuple[str, ...] = ()
    """A command to run before the first start on empty data."""
    once_makes: str = ""
    """The file under `$data` that shows that this command was run."""
    shared_classes: bool = False
    """Keep a class archive (AppCDS): JVM starts take half the time from the second one on."""
    farewell: Signals = SIGTERM
    """The signal that stops it without waiting for its clients."""
    tidies: bool = False
    """It needs time to end even if its data is not kept, because a kill leaves traces."""
    refuses_root: bool = False
    """It does not run as root: root starts it as `nobody`, with access to all files."""

    @property
    def uses_java(self) -> bool:
        """Whether a Java runtime is needed."""
        return self.command[0] == "$java"


def override(text: str, values: Mapping[str, str]) -> str:
    """Set values in a properties file, each in its own place, or at the end if it has none."""
    left = dict(values)
    lines = [
        f"{key}={left.pop(key)}" if (key := line.partition("=")[0].strip()) in left else line
        for line in text.splitlines()
    ]
    return "\n".join([*lines, *(f"{key}={value}" for key, value in left.items()), ""])


def fill(template: str, values: Mapping[str, str]) -> str:
    """Put values into a template; an unknown name is an error in the recipe."""
    return Template(template).substitute(values)

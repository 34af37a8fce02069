"""The registries' own clients, one row each: apt-get for Debian packages, mvn for the rest.

The clients are configured with their registry; this module names none. Neither needs root. Each
method is a list of commands; if one method fails, the next is tried.
"""

from __future__ import annotations

import platform
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from tallystick.brokers.servers.pins import Pin
from tallystick.brokers.servers.recipe import Archive, Bundle, Debian, Fetch, Jars
from tallystick.core.errors import Unavailable

__all__ = ["CLIENTS", "Client", "Order"]

Way = Sequence[Sequence[str]]

_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
_MACHINES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class Order:
    """The server to download, the folder of this attempt, and the folder of the client."""

    fetch: Fetch
    pins: tuple[Pin, ...]
    stage: Path
    shared: Path

    @property
    def files(self) -> Path:
        """The folder of the downloads."""
        return self.stage / "files"


@dataclass(frozen=True, slots=True)
class Client:
    """How to download one kind: whether it is possible, the commands, the clean-up."""

    check: Callable[[Order], None]
    steps: Callable[[Order], Sequence[Way]]
    tidy: Callable[[Order], None]


def _need(program: str, why: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise Unavailable(
            f"`{program}` is not installed, and {why}",
            code=f"no_{program}",
            hint="`tally doctor` shows how to install it",
        )
    return found


def _check_debian(order: Order) -> None:
    for program in ("apt-get", "dpkg-deb"):
        _need(program, "this broker comes as Debian packages")
    machine = _MACHINES.get(platform.machine(), platform.machine())
    pinned = {pin.file.removesuffix(".deb").rpartition("_")[2] for pin in order.pins} - {"all"}
    if machine not in pinned:
        raise Unavailable(
            f"its packages are pinned for {', '.join(pinned)}, but this machine is {machine}",
            code="machine",
            hint="brokers that run on Java work here",
        )


def _debian_ways(order: Order) -> Sequence[Way]:
    """Ask with the machine's own lists of packages; if they are old or absent, with new ones."""
    names = [_package(pin) for pin in order.pins]
    apt = ["apt-get", "-q", "-o", "APT::Sandbox::User=root"]
    private = order.stage / "apt"
    for folder in ("lists/partial", "cache/archives/partial"):
        (private / folder).mkdir(parents=True)
    own = [*apt, "-o", f"Dir::State::lists={private}/lists", "-o", f"Dir::Cache={private}/cache"]
    update = [*own, "-o", "Acquire::Languages=none", "update"]
    return [[[*apt, "download", *names]], [update, [*own, "download", *names]]]


def _package(pin: Pin) -> str:
    name, version, _ = pin.file.split("_")
    return f"{name}={unquote(version)}"


def _check_maven(_order: Order) -> None:
    _need("mvn", "this broker is downloaded with Maven")
    _need("java", "Maven needs Java")


def _maven(order: Order, goal: str, *options: str) -> list[str]:
    repository = order.shared / "maven"
    return ["mvn", "-B", "-U", "-ntp", f"-Dmaven.repo.local={repository}", *options,
            f"{_PLUGIN}:{goal}", f"-DoutputDirectory={order.files}"]  # fmt: skip


def _jars_ways(order: Order) -> Sequence[Way]:
    assert isinstance(order.fetch, Jars)
    rows = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version></dependency>"
        for group, artifact, version in (text.split(":") for text in order.fetch.artifacts)
    )
    pom = order.stage / "pom.xml"
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>tallystick</groupId>"
        "<artifactId>fetch</artifactId><version>1</version>"
        f"<dependencies>{rows}</dependencies></project>",
        encoding="utf-8",
    )
    copy = _maven(order, "copy-dependencies", "-f", str(pom))
    return [[[*copy, "-DincludeScope=runtime"]]]


def _check_bundle(order: Order) -> None:
    assert isinstance(order.fetch, Bundle)
    _check_maven(order)
    machine = _MACHINES.get(platform.machine(), platform.machine())
    if machine not in order.fetch.artifact:
        raise Unavailable(f"it is not pinned for this machine, {machine}", code="machine")


def _archive_ways(order: Order) -> Sequence[Way]:
    assert isinstance(order.fetch, Archive | Bundle)
    return [[[*_maven(order, "copy"), f"-Dartifact={order.fetch.artifact}"]]]


def _drop_archive(order: Order) -> None:
    """Keep no second copy of a release of hundreds of MB."""
    assert isinstance(order.fetch, Archive | Bundle)
    group, artifact, version = order.fetch.artifact.split(":")[:3]
    kept = order.shared / "maven" / group.replace(".", "/") / artifact / version
    shutil.rmtree(kept, ignore_errors=True)


def _nothing(_order: Order) -> None:
    """Leave it unchanged."""


CLIENTS: Final[Mapping[type, Client]] = {
    Debian: Client(_check_debian, _debian_ways, _nothing),
    Jars: Client(_check_maven, _jars_ways, _nothing),
    Archive: Client(_check_maven, _archive_ways, _drop_archive),
    Bundle: Client(_check_bundle, _archive_ways, _drop_archive),
}

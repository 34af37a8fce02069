"""The Spark session: local and on loopback by default, quick to start, without output.

Java classes are kept in an archive after the first run (AppCDS), which halves the start time; if
none can be kept, Spark starts without it. Small work uses only the fast compiler and the serial
collector: they start sooner and are slower in long runs. A master other than `local` gets only the
given settings. The output of Spark goes to a log file.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick import __version__
from tallystick.brokers.owner import OWNER, scratch, tied
from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.extras import importing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

__all__ = ["LOCAL", "explain", "open_session"]

LOCAL: Final = "local[2,4]"
"""Two cores; a task that is killed is tried four times."""

_SMALL: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LARGE: Final = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UseParallelGC -XX:+UseTransparentHugePages"
    " -XX:+UseBiasedLocking"
)
"""Rows move through streams that lock for each call, are grouped in tables far larger than the
processor's caches, and die young: locks that stay with their thread (Java 17; later streams lock
less, and later Javas pass over the option), large pages, and a collector that marks nothing beside
the work."""
_COLLECTOR: Final = re.compile(r"-XX:\+Use\w+GC\b")
"""Java takes one collector: where the user's environment names one, ours is left out."""
_JAVA_VARIABLES: Final = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_QUIET: Final = "-Xlog:disable -Xlog:all=error:stderr"
_KEPT: Final = 4
"""Maximum archives in the cache: each has some 180 MB; an installation has two, for small and for
large work."""
_END: Final = 60.0
"""Seconds that Java has to end in; it writes the archive meanwhile."""
_SMALL_WORK: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
}
"""Compiling a query costs more than running it when there is little to run it on."""
_LOCAL: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableQueryLevelRollbackOnMismatch": "false",
}
"""On one machine: on loopback; tasks so small that no core is idle while another does the last; no
hash of every row that moves, since no output is lost and made again while others read it (the
first setting alone leaves it on)."""
_ALWAYS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "64",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "16m",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.parquet.block.size": str(32 << 20),
}
"""Partitions are many and small ones are joined: one that does not fit its share of a heap of 1 GB
makes Spark sort what it would have grouped in memory."""


@contextmanager
def open_session(
    master: str = LOCAL, conf: Mapping[str, str] | None = None, *, small: bool = False
) -> Iterator[SparkSession]:
    """Start Spark, or raise an error with the cause; it is stopped at the end."""
    if "SPARK_HOME" not in os.environ and shutil.which(_java()) is None:
        raise Unavailable(
            "Spark needs Java, and Java was not found",
            code="java.missing",
            hint="install a JDK 17 or newer, or set JAVA_HOME; `tally doctor` shows what is "
            "installed",
        )
    log = scratch() / "spark.log"
    try:
        with _said_elsewhere(log), _tied_here():
            session = _start(master, conf or {}, small=small)
    except Exception as error:
        raise explain(error, log) from error
    try:
        yield session
    finally:
        with suppress(OSError):  # its Java may have died, and then the run has said so
            session.stop()
        log.unlink(missing_ok=True)


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else "java"


def _start(master: str, conf: Mapping[str, str], *, small: bool) -> SparkSession:
    with importing("pipeline"):
        from pyspark.accumulators import AccumulatorTCPServer  # noqa: PLC0415
        from pyspark.sql import SparkSession  # noqa: PLC0415 - loads only when a run begins

    settings = dict(_ALWAYS)
    if master.startswith("local"):
        settings |= _LOCAL
        settings |= _SMALL_WORK if small else {}
        settings["spark.local.dir"] = str(scratch())
        settings["spark.driver.memory"] = "1g" if small else "2g"
        options = [f"-Djava.io.tmpdir={scratch()}", *_java_options(small=small)]
        settings["spark.driver.extraJavaOptions"] = " ".join(options)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder: Any = SparkSession.builder.appName("tally pipeline").master(master)
    for name, value in {**settings, **conf}.items():
        builder = builder.config(name, value)
    session: SparkSession = builder.getOrCreate()
    # when Java dies, `explain` says so
    AccumulatorTCPServer.handle_error = lambda *_: None  # type: ignore[method-assign]
    session.sparkContext.setLogLevel("OFF")
    for kind in ("SQL", "DataFrame"):  # `explain` says it in one line
        logging.getLogger(f"{kind}QueryContextLogger").disabled = True
    return session


def _java_options(*, small: bool) -> list[str]:
    """Give the options that start Java quickly, from the archive of an earlier run if there is."""
    chosen = _SMALL if small else _LARGE
    if any(_COLLECTOR.search(os.environ.get(name, "")) for name in _JAVA_VARIABLES):
        chosen = _COLLECTOR.sub("", chosen)
    options = [_QUIET, *chosen.split()]
    archive = _archive(options)
    if _has_bytes(archive):
        with suppress(OSError):  # another's archive may be used, but not marked as used
            os.utime(archive)
        return [*options, f"-XX:SharedArchiveFile={archive}"]
    written = archive.with_name(f"{archive.name}.{os.getpid()}")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        written.touch()
    except OSError:  # a cache that takes no file: each start is the slow one
        return options
    atexit.register(_keep, written, archive)
    return [*options, f"-XX:ArchiveClassesAtExit={written}"]


def _archive(options: Sequence[str]) -> Path:
    """Name the archive after the Java, its options, the jars and the folder that it belongs to.

    Java crashes when it collects with an archive that was written under another kind of locks.
    """
    from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415

    told = "\0".join([__version__, *options, *(os.environ.get(v, "") for v in _JAVA_VARIABLES)])
    for one in (Path(shutil.which(_java()) or _java()), Path(_find_spark_home()) / "jars"):
        there = one.resolve()
        told += f"\0{there}\0{there.stat().st_mtime_ns if there.exists() else 0}"
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tallystick"
    return base / f"spark-{sha256(told.encode()).hexdigest()[:16]}.jsa"


def _has_bytes(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except OSError:
        return False


def _keep(written: Path, archive: Path) -> None:
    """Let Java end, which writes the archive, and give it its name if it is whole."""
    whole = _end_java() and _has_bytes(written)
    with suppress(OSError):  # the folder may be gone by now, and the next start makes another
        if whole:
            written.replace(archive)
        written.unlink(missing_ok=True)
        _sweep(archive.parent)


def _end_java() -> bool:
    """Close the pipe that Spark's Java lives by; tell whether it ended well, and in time."""
    from pyspark import SparkContext  # noqa: PLC0415

    java = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001 - no other way to its end
    if java is None:
        return False
    java.stdin.close()
    try:
        return bool(java.wait(_END) == 0)
    except subprocess.TimeoutExpired:
        java.kill()
        return False


def _sweep(folder: Path) -> None:
    """Keep the few archives that were used last, and none that a process left unfinished."""
    whole = sorted(folder.glob("spark-*.jsa"), key=lambda one: -one.stat().st_mtime)
    begun = folder.glob("spark-*.jsa.*")
    left = [one for one in begun if not Path(f"/proc/{one.suffix[1:]}").exists()]
    for one in [*whole[_KEPT:], *left]:
        one.unlink(missing_ok=True)


@contextmanager
def _said_elsewhere(log: Path) -> Iterator[None]:
    """Let the process that is started now write its stderr into a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


@contextmanager
def _tied_here() -> Iterator[None]:
    """Let the process that is started now end with this one, with the files of its start."""
    owner, folder = os.environ.get(OWNER), tempfile.tempdir
    os.environ.update(tied())
    tempfile.tempdir = str(scratch())
    try:
        yield
    finally:
        tempfile.tempdir = folder
        del os.environ[OWNER]
        if owner is not None:
            os.environ[OWNER] = owner


_DIED: Final = "the Java process of Spark died, probably because it ran out of memory"
_CAUSES: Final = (
    ("OutOfMemoryError", "memory", "Spark ran out of memory",
     "give it more with --conf spark.driver.memory=4g"),
    ("must be at least", "memory", "Spark has too little memory",
     "give it at least 1g with --conf spark.driver.memory=1g"),
    ("Could not reserve enough space", "memory", "this machine does not have that much memory",
     "ask for less with --conf spark.driver.memory=1g"),
    ("No space left on device", "disk", "the disk is full",
     "free some space, or use another folder with --conf spark.local.dir=FOLDER"),
    ("UnsupportedClassVersionError", "java.old", "this Java is too old",
     "install a JDK 17 or newer"),
    ("All masters are unresponsive", "master", "the Spark master does not answer",
     "check the address passed with --master"),
    ("Could not parse Master URL", "master", "this is not a Spark master",
     "use local[2], spark://host:7077, yarn or k8s://..."),
    ("Answer from Java side is empty", "memory", _DIED,
     "give it more with --conf spark.driver.memory=4g"),
    ("Connection refused", "memory", _DIED,
     "give it more with --conf spark.driver.memory=4g"),
)  # fmt: skip

_OWN: Final = re.compile(r"tallystick\.core\.errors\.\w+: (.+)")
"""What a task of ours said, inside of what Spark says about it."""


def explain(error: BaseException, log: Path | None = None) -> Unavailable | UsageError:
    """Turn an error of Spark into one line that a person can act on."""
    said = str(error)
    if log is not None and log.exists():
        said += log.read_text(encoding="utf-8", errors="replace")[-20_000:]
    own = _OWN.search(said)
    if own is not None:
        return Unavailable(own[1][:500], code="spark.task")
    for sign, code, message, hint in _CAUSES:
        if sign in said:
            return Unavailable(message, code=code, hint=hint)
    lines = [line for line in str(error).splitlines() if line.strip()]
    first = lines[0] if lines else type(error).__name__
    return Unavailable(f"Spark failed: {first[:300]}", code="spark")

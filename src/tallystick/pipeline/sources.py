"""The inputs: topics, and files by path, folder or pattern; the first bytes decide the format.

    JSON Lines (captures or plain envelopes), also gzip, bzip2 or zstd · Parquet captures · journals
    kafka://host:port/topic[,topic]

Every file of a folder counts, except names that begin with `.` or `_`. A file is read up to its
length at that moment; later bytes belong to the next run. `key` names a file and its state, so an
unchanged file is not read twice. A *log* only grows: the part already read never changes, so its
key is the range that was read.
"""

from __future__ import annotations

import glob
import json
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.capture_columns import COLUMNS
from tallystick.core.errors import Unavailable, UsageError
from tallystick.pipeline.arrow import pa, pq

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "GROWING", "RECORD", "Access", "Source", "Split", "find_sources", "list_files", "look", "split",
]  # fmt: skip

_MAGIC: Final = (
    (b"PAR1", "parquet"),
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bzip2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
)
_HINT: Final = "name a file, a folder or a quoted pattern, and check the name"
_HEAD: Final = 1 << 16
_SHARE: Final = 64 << 20
RECORD: Final = 512
"""About how many bytes a record has."""
GROWING: Final = ("lines", "kafka")
"""The forms of logs that grow at their end; others are read once, as a whole."""
_TEXT: Final = (pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
_BYTES: Final = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
_NUMBER: Final = (pa.types.is_signed_integer, pa.types.is_uint32, pa.types.is_null)
_KINDS: Final = {
    "string": ("text", _TEXT),
    "int64": ("a whole number of 64 bits", _NUMBER),
    "binary": ("bytes or text", (*_BYTES, *_TEXT)),
}
"""What a Parquet file may have in place of the Arrow type of a capture's column."""
Access = tuple[tuple[str, Any], ...]
"""How to get at a source: settings of its client, with their secrets."""


@dataclass(frozen=True, slots=True)
class Source:
    """One input file in one state, or a range of a log: `changed` is None then.

    `start` and `size` count bytes, and records of Kafka. `access` is never written down.
    `copy` is the part of older rules that has its bytes. `identity` tells a log from another one
    that came to stand under its name, where that can be told.
    """

    path: str
    form: str
    size: int
    changed: int | None
    start: int = 0
    access: Access = field(default=(), repr=False, compare=False)
    copy: str = field(default="", compare=False)
    identity: str = ""

    @property
    def key(self) -> str:
        """Name the file and its state."""
        return sha256(json.dumps(self.as_json(), sort_keys=True).encode()).hexdigest()[:24]

    @property
    def stop(self) -> int:
        """Give the position behind the last."""
        return self.start + self.size

    @property
    def weight(self) -> int:
        """Give about how many bytes it has."""
        return self.size * RECORD if self.form == "kafka" else self.size

    def as_json(self) -> dict[str, Any]:
        """Return its name, without secrets."""
        names = ("path", "form", "start", "size", "changed")
        told = {name: getattr(self, name) for name in names}
        return told | ({"identity": self.identity} if self.identity else {})


@dataclass(frozen=True, slots=True)
class Split:
    """A part of a source that one task reads: bytes of JSON Lines, row groups, offsets."""

    source: Source
    number: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Give about how many bytes it has."""
        if self.source.form == "parquet" or self.source.copy:
            return self.source.weight
        share = (self.stop - self.start) / max(self.source.size, 1)
        return round(self.source.weight * share)


def find_sources(inputs: Sequence[str]) -> tuple[Source, ...]:
    """Find every input, or say which name leads nowhere."""
    found: dict[str, Source] = {}
    for name in inputs:
        if "://" in name:
            from tallystick.pipeline.kafka import find_partitions  # noqa: PLC0415 - when used

            found |= {one.path: one for one in find_partitions(name)}
            continue
        paths = list_files(name)
        if not paths:
            raise UsageError(
                f"{name}: there are no files to read",
                code="input.empty",
                hint="name files, a folder with files in it, or a quoted pattern",
            )
        for path in paths:
            found.setdefault(str(path), look(path))
    return tuple(found[path] for path in sorted(found))


def list_files(name: str) -> list[Path]:
    """Give the files that a name means: itself, those in it, or those that fit."""
    path = Path(name)
    if not name:  # an unset variable of a shell is not this folder
        raise Unavailable("an input has an empty name", code="input.missing", hint=_HINT)
    if path.is_dir():
        return [
            inner.resolve()
            for inner in sorted(path.rglob("*"))
            if inner.is_file()
            and not any(part[0] in "._" for part in inner.relative_to(path).parts)
        ]
    if path.is_file():
        return [path.resolve()]
    if path.exists():  # a pipe can be read once only, and perhaps never
        raise Unavailable(f"{name}: not a regular file", code="input.missing", hint=_HINT)
    if any(sign in name for sign in "*?["):
        return [Path(one).resolve() for one in sorted(glob.glob(name, recursive=True))  # noqa: PTH207
                if Path(one).is_file()]  # fmt: skip
    raise Unavailable(f"{name}: no such file or folder", code="input.missing", hint=_HINT)


def look(path: Path) -> Source:
    """Return the format and the state of a file."""
    try:
        state = path.stat()
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError as error:
        raise Unavailable(
            f"{path}: {error.strerror or error}", code="input.missing", hint=_HINT
        ) from error
    form = next((name for magic, name in _MAGIC if head.startswith(magic)), "lines")
    if form == "lines" and _is_journal(head):
        form = "journal"
    return Source(str(path), form, state.st_size, state.st_mtime_ns)


def _is_journal(head: bytes) -> bool:
    first = next((line for line in head.split(b"\n") if line.strip()), b"")
    try:
        members = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(members, dict) and members.get("kind") == "head"


def split(source: Source, share: int = _SHARE) -> tuple[Split, ...]:
    """Split a source into parts of about `share` bytes; one that cannot be split is one part."""
    if source.copy:
        files = len(list(Path(source.copy).glob("messages-*.parquet")))
        return tuple(Split(source, number, number, number + 1) for number in range(max(files, 1)))
    if source.form in GROWING:
        step = max(1, share * source.size // max(source.weight, 1))
        starts = range(source.start, max(source.stop, source.start + 1), step)
        return tuple(
            Split(source, number, start, min(start + step, source.stop))
            for number, start in enumerate(starts)
        )
    if source.form == "parquet":
        return _split_parquet(source, share)
    return (Split(source, 0, 0, source.size),)


def _split_parquet(source: Source, share: int) -> tuple[Split, ...]:
    try:
        file = pq.ParquetFile(source.path)
    except (pa.ArrowInvalid, OSError):
        return (Split(source, 0, 0, 1),)  # reading it says what is wrong
    groups = file.num_row_groups
    if "body" not in file.schema_arrow.names:
        raise UsageError(
            f"{source.path}: a Parquet capture needs a column 'body', and this file has none",
            code="input.columns",
            hint=f"its columns: {', '.join(file.schema_arrow.names[:12])}",
        )
    for one in file.schema_arrow:
        kind = one.type.value_type if pa.types.is_dictionary(one.type) else one.type
        if one.name not in COLUMNS:
            continue
        wanted, tests = _KINDS[COLUMNS[one.name].arrow]
        if not any(test(kind) for test in tests):
            raise UsageError(
                f"{source.path}: the column {one.name!r} has the type {one.type}, not {wanted}",
                code="input.columns",
                hint="times must be nanoseconds since 1970, as whole numbers",
            )
    each = max(1, round(groups * share / max(source.size, 1)))
    return tuple(
        Split(source, number, start, min(start + each, groups))
        for number, start in enumerate(range(0, max(groups, 1), each))
    )

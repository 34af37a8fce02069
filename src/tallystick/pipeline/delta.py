"""Delta tables that are published together: the table `runs` names the version of each.

    ROOT/TABLE/     one Delta table
    ROOT/runs/      one row for each published run: its key, its time, the version of every table

The commit of `runs` publishes a run: all of its tables, or none. Every commit expects the version
that the writer saw when it began, so of two writers at the same time one is refused, and no commit
is lost. A writer that was stopped between two commits is refused too if another one has published
meanwhile. Versions that no row of `runs` names are never shown.

The commits are made by delta-rs, which writes a log entry only if there is none yet: by a rename on
a disk, by a conditional PUT on an object store.

Rows are read by delta-rs too. `to_pyarrow_table` gives Arrow's threads a file system in Python, and
the thread that drops it last may do so when the interpreter ends, which aborts the process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote, urlsplit

from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.extras import importing
from tallystick.core.variables import S3_ENDPOINT
from tallystick.pipeline.arrow import pa

if TYPE_CHECKING:
    from deltalake import DeltaTable

__all__ = [
    "RUNS", "Published", "Store", "open_store", "open_version", "publish", "read_published",
    "vacuum",
]  # fmt: skip

RUNS: Final = "runs"
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*m")
_RUN_COLUMNS: Final = pa.schema(
    [
        ("number", pa.int64()),
        ("key", pa.string()),
        ("published", pa.string()),
        ("tables", pa.map_(pa.string(), pa.int64())),
    ]
)
_SCHEMES: Final = {
    "s3": "s3", "s3a": "s3", "abfss": "abfss", "abfs": "abfs", "az": "az",
    "gs": "gs", "hdfs": "hdfs",
}  # fmt: skip
"""The scheme of a URI as Spark and Hadoop spell it -> the same scheme for delta-rs."""


@dataclass(frozen=True, slots=True)
class Store:
    """A place for Delta tables: a folder or an object store, and the options of its driver."""

    root: str
    options: Mapping[str, str] = field(default_factory=dict)

    def table(self, name: str) -> str:
        """Give the URI of one table."""
        return f"{self.root.rstrip('/')}/{name}"


@dataclass(frozen=True, slots=True)
class Published:
    """One published run: its number, the key of its content, and the version of each table."""

    number: int
    key: str
    time: str
    versions: Mapping[str, int]


def open_store(uri: str, options: Mapping[str, str] | None = None) -> Store:
    """Read the URI of a store: a path, `file:`, `s3://`, `s3a://`, `abfss://`, `gs://`, `hdfs://`."""
    parts = urlsplit(uri)
    if not uri:
        raise UsageError("the name of the store is empty", code="store", hint=_STORE_HINT)
    if not parts.scheme:
        return Store(str(Path(uri).absolute()), dict(options or {}))
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost") or not parts.path:
            raise UsageError(f"{uri} names no folder of this machine", code="store",
                             hint="write file:///folder")  # fmt: skip
        return Store(unquote(parts.path), dict(options or {}))
    if parts.scheme not in _SCHEMES:
        raise UsageError(f"unknown store {parts.scheme}://", code="store", hint=_STORE_HINT)
    if not parts.netloc:
        raise UsageError(f"{uri} names no bucket or host", code="store", hint=_STORE_HINT)
    root = parts._replace(scheme=_SCHEMES[parts.scheme]).geturl()
    return Store(root, _complete_options(options or {}))


def _complete_options(options: Mapping[str, str]) -> dict[str, str]:
    """Check the address of an S3 server, and allow plain HTTP where it has no TLS."""
    named = {name.upper(): value for name, value in options.items()}
    endpoint = named.get(S3_ENDPOINT) or os.environ.get(S3_ENDPOINT)
    if endpoint and not re.match(r"https?://[^/]", endpoint):
        raise UsageError(
            f"{S3_ENDPOINT} is not a URL: {endpoint}", code="store", hint="write http://host:9000"
        )
    plain = {"AWS_ALLOW_HTTP": "true"} if endpoint and endpoint.startswith("http:") else {}
    return {**plain, **options}


_REMOTE_HINT: Final = (
    "check the address, the credentials (AWS_..., AZURE_..., GOOGLE_... variables) "
    "and the --option values"
)
_STORE_HINT: Final = (
    "write a folder, or file:, s3://, s3a://, abfss://, gs:// or hdfs:// with a path"
)


def read_published(store: Store) -> list[Published]:
    """Give the published runs of a store, the newest first."""
    with importing("pipeline"):
        from deltalake.exceptions import TableNotFoundError  # noqa: PLC0415

    with _explained(store):
        try:
            table = _open_table(store, RUNS)
        except TableNotFoundError:
            return []
        rows = _read_rows(table)
    runs = [
        Published(row["number"], row["key"], row["published"], dict(row["tables"])) for row in rows
    ]
    return sorted(runs, key=lambda run: -run.number)


def publish(
    store: Store, tables: Mapping[str, pa.RecordBatchReader], *, key: str, now: str
) -> Published:
    """Write tables anew and publish them together; raise if another writer came between.

    Tables that were published under the same key before stay part of the run.
    """
    before = read_published(store)
    runs = _open_or_create(store, RUNS, _RUN_COLUMNS)
    heads = {name: _open_or_create(store, name, rows.schema) for name, rows in tables.items()}
    versions = dict(before[0].versions) if before and before[0].key == key else {}
    for name, rows in tables.items():
        versions[name] = _commit(store, heads[name], rows, mode="overwrite")
    run = Published(before[0].number + 1 if before else 1, key, now, versions)
    row = {"number": run.number, "key": key, "published": now, "tables": list(versions.items())}
    line = pa.Table.from_pylist([row], schema=_RUN_COLUMNS)
    _commit(store, runs, line.to_reader(), mode="append")
    return run


def vacuum(store: Store, keep: Sequence[Published]) -> None:
    """Delete data files that no kept run uses; files that are not committed yet stay."""
    for name in sorted({name for run in keep for name in run.versions}):
        versions = sorted({run.versions[name] for run in keep if name in run.versions})
        with _explained(store):
            open_version(store, name).vacuum(
                retention_hours=0,
                dry_run=False,
                enforce_retention_duration=False,
                keep_versions=versions,
            )


def _commit(
    store: Store,
    head: DeltaTable,
    rows: pa.RecordBatchReader,
    *,
    mode: Literal["append", "overwrite"],
) -> int:
    """Write rows as the version after `head`; give that version."""
    from deltalake import CommitProperties, write_deltalake  # noqa: PLC0415
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

    once = CommitProperties(max_commit_retries=0)
    try:
        with _explained(store):
            if mode == "append":
                write_deltalake(head, rows, mode="append", commit_properties=once)
            else:
                write_deltalake(
                    head, rows, mode="overwrite", schema_mode="overwrite", commit_properties=once
                )
    except CommitFailedError as error:
        raise Unavailable(
            f"{store.root}: another writer published at the same time; this one published nothing",
            code="store.conflict",
            hint="run the command again",
        ) from error
    return head.version()


def open_version(store: Store, name: str, version: int | None = None) -> DeltaTable:
    """Open one version of a table, or the newest one."""
    with _explained(store):
        return _open_table(store, name, version)


def _open_table(store: Store, name: str, version: int | None = None) -> DeltaTable:
    from deltalake import DeltaTable  # noqa: PLC0415

    return DeltaTable(store.table(name), version, storage_options=dict(store.options))


def _read_rows(table: DeltaTable) -> list[dict[str, Any]]:
    from deltalake import QueryBuilder  # noqa: PLC0415

    rows = QueryBuilder().register("rows", table).execute('SELECT * FROM "rows"')
    read: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(rows).read_all().to_pylist()
    return read


def _open_or_create(store: Store, name: str, schema: pa.Schema) -> DeltaTable:
    """Open the newest version of a table; a table that is not there is created without rows."""
    from deltalake import DeltaTable  # noqa: PLC0415
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

    with suppress(CommitFailedError), _explained(store):  # another writer created it just now
        DeltaTable.create(
            store.table(name), schema, mode="ignore", storage_options=dict(store.options)
        )
    return open_version(store, name)


@contextmanager
def _explained(store: Store) -> Iterator[None]:
    """Turn an error of the store into one line; a lost race passes through."""
    with importing("pipeline"):
        from deltalake import exceptions  # noqa: PLC0415

    try:
        yield
    except exceptions.CommitFailedError:
        raise
    except (OSError, exceptions.DeltaError, pa.ArrowException) as error:
        lines = [line.strip(" \u21b3") for line in _COLOUR.sub("", str(error)).splitlines()]
        reason = " ".join(line for line in lines if line)
        raise Unavailable(
            f"{store.root}: the store failed: {reason[:400]}",
            code="store.failed",
            hint=_REMOTE_HINT if "://" in store.root else "name a folder that you can write to",
        ) from error

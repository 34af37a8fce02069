"""OpenLineage events of a run: the inputs that it read and the tables that it wrote.

A run emits START when it begins, then COMPLETE with the tables and their rows, or FAIL with the
reason. Events go to an HTTP server (`http://host:5000`, with the key in OPENLINEAGE_API_KEY) or are
appended to a file, one JSON object per line. An event that cannot be delivered is reported and does
not fail the run.

Datasets are named as the OpenLineage naming rules say: a file by its path, a Kafka topic by its
broker and name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tallystick import __version__
from tallystick.core.errors import UsageError
from tallystick.core.extras import importing
from tallystick.core.variables import LINEAGE_KEY
from tallystick.pipeline.tables import TABLES

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent
    from openlineage.client.transport import Transport

__all__ = ["Lineage", "open_lineage"]

_PRODUCER: Final = f"urn:tallystick:{__version__}"
_JOB: Final = "tally pipeline run"
_PATIENCE: Final = 10.0
_RETRY: Final = {
    "total": 2, "backoff_factor": 0.3, "status_forcelist": [500, 502, 503, 504],
    "allowed_methods": ["POST"],
}  # fmt: skip


@dataclass(slots=True)
class Lineage:
    """The events of one run: where they go, the job, the inputs, and the delivery failures."""

    transport: Transport
    run: str
    namespace: str
    now: Callable[[], str]
    inputs: list[InputDataset]
    undelivered: list[str] = field(default_factory=list)

    def start(self) -> None:
        """Tell that the run begins."""
        self._emit("START", {}, [])

    def complete(self, lake: Path, manifest: Mapping[str, Any]) -> None:
        """Tell which tables the run wrote, with their rows."""
        from openlineage.client.facet_v2 import processing_engine_run  # noqa: PLC0415

        engine = processing_engine_run.ProcessingEngineRunFacet(
            manifest["versions"]["pyspark"], "spark", producer=_PRODUCER
        )
        outputs = [
            _describe_table(lake, name, table["rows"]) for name, table in manifest["tables"].items()
        ]
        self._emit("COMPLETE", {"processing_engine": engine}, outputs)

    def fail(self, reason: str) -> None:
        """Tell that the run failed, and why."""
        from openlineage.client.facet_v2 import error_message_run  # noqa: PLC0415

        error = error_message_run.ErrorMessageRunFacet(reason, "PYTHON", producer=_PRODUCER)
        self._emit("FAIL", {"errorMessage": error}, [])

    def _emit(self, kind: str, facets: dict[str, Any], outputs: list[OutputDataset]) -> None:
        try:
            self.transport.emit(self._make_event(kind, facets, outputs))
        except (OSError, RuntimeError) as error:  # requests raises OSError, the file RuntimeError
            self.undelivered.append(f"{kind}: {' '.join(str(error).split())[:300]}")

    def _make_event(
        self, kind: str, facets: dict[str, Any], outputs: list[OutputDataset]
    ) -> RunEvent:
        from openlineage.client.event_v2 import Job, Run, RunEvent, RunState  # noqa: PLC0415
        from openlineage.client.facet_v2 import job_type_job  # noqa: PLC0415

        about = job_type_job.JobTypeJobFacet("BATCH", "TALLYSTICK", "JOB", producer=_PRODUCER)
        return RunEvent(
            eventTime=self.now(),
            producer=_PRODUCER,
            eventType=RunState(kind),
            run=Run(self.run, facets),
            job=Job(self.namespace, _JOB, {"jobType": about}),
            inputs=self.inputs,
            outputs=outputs,
        )


def open_lineage(
    target: str, sources: Sequence[str], *, run: str, namespace: str, now: Callable[[], str]
) -> Lineage:
    """Read where the events go: the URL of a server, or a file."""
    with importing("lineage"):
        from openlineage.client.transport.file import (  # noqa: PLC0415
            FileConfig,
            FileTransport,
        )
        from openlineage.client.transport.http import (  # noqa: PLC0415
            ApiKeyTokenProvider,
            HttpConfig,
            HttpTransport,
            TokenProvider,
        )

    parts = urlsplit(target)
    transport: Transport
    if parts.scheme in ("http", "https") and parts.hostname:
        key = os.environ.get(LINEAGE_KEY)
        auth = ApiKeyTokenProvider({"api_key": key}) if key else TokenProvider({})
        transport = HttpTransport(HttpConfig(target, timeout=_PATIENCE, auth=auth, retry=_RETRY))
    elif "://" in target or not target:
        raise UsageError(
            f"--lineage {target!r} is neither a URL nor a file",
            code="lineage",
            hint="write http://host:5000 or the name of a file",
        )
    else:
        transport = FileTransport(FileConfig(str(Path(target).absolute()), append=True))
    return Lineage(transport, run, namespace, now, _describe_inputs(sources))


def _describe_inputs(sources: Sequence[str]) -> list[InputDataset]:
    """Give one dataset for each file and each topic, in the order of the sources."""
    from openlineage.client.event_v2 import InputDataset  # noqa: PLC0415

    names = dict.fromkeys(_name_dataset(source) for source in sources)
    return [InputDataset(namespace, name) for namespace, name in names]


def _name_dataset(source: str) -> tuple[str, str]:
    """Give the namespace and the name of a source: `kafka://host/topic/0` is a part of a topic."""
    parts = urlsplit(source)
    if parts.scheme == "kafka":
        return f"kafka://{parts.netloc}", parts.path.strip("/").rpartition("/")[0]
    return "file", str(Path(source).absolute())


def _describe_table(lake: Path, name: str, rows: int) -> OutputDataset:
    from openlineage.client import facet_v2  # noqa: PLC0415
    from openlineage.client.event_v2 import OutputDataset  # noqa: PLC0415

    table = TABLES[name]
    columns = [
        facet_v2.schema_dataset.SchemaDatasetFacetFields(column.name, str(column.type))
        for column in table.schema
    ]
    count = facet_v2.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet
    about = facet_v2.documentation_dataset.DocumentationDatasetFacet
    return OutputDataset(
        "file",
        str((lake / name).absolute()),
        {"outputStatistics": count(rows, producer=_PRODUCER)},
        facets={
            "schema": facet_v2.schema_dataset.SchemaDatasetFacet(columns, producer=_PRODUCER),
            "documentation": about(table.about, producer=_PRODUCER),
        },
    )

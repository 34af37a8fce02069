"""The optional libraries: which extra brings each, and the error when one is missing.

`pip install 'tallystick[NAME]'` installs an extra. Code that needs an optional library imports it
inside `with importing("NAME"):`, or calls `check_extra("NAME")` first; both raise `MissingExtra`.
`explain_import` does the same for an import that was not guarded: the command line asks it about
every `ModuleNotFoundError`. A module that is in no row here is never explained as an extra.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from types import MappingProxyType
from typing import Final

from tallystick.core.errors import MissingExtra

__all__ = [
    "EXTRAS",
    "WHOLE",
    "Extra",
    "check_extra",
    "explain_import",
    "importing",
    "missing_modules",
]


@dataclass(frozen=True, slots=True)
class Extra:
    """One extra: the modules that it brings, and what they are used for."""

    modules: tuple[str, ...]
    used_for: str


EXTRAS: Final[Mapping[str, Extra]] = MappingProxyType(
    {
        "redis": Extra(("redis",), "Redis: publish, handle, capture; claims in Redis"),
        "rabbitmq": Extra(("pika",), "RabbitMQ: publish, handle, capture"),
        "sqs": Extra(("boto3", "botocore"), "Amazon SQS: publish, handle, capture"),
        "servicebus": Extra(("azure.servicebus",), "Azure Service Bus: publish, handle, capture"),
        "pulsar": Extra(("pulsar",), "Apache Pulsar: publish, handle, capture"),
        "kafka": Extra(("confluent_kafka",), "Apache Kafka: publish, handle, capture, stream"),
        "artemis": Extra(
            ("proton",), "ActiveMQ Artemis; the Service Bus emulator; AMQP 1.0 in the lab"
        ),
        "schemas": Extra(("jsonschema_rs",), "the schema registry: check, validate, compat"),
        "server": Extra(
            ("jsonschema_rs", "starlette", "uvicorn"), "tally schema serve: the REST registry"
        ),
        "events": Extra(("google.protobuf",), "CloudEvents in Protobuf; tally prove"),
        "postgresql": Extra(("psycopg",), "the outbox and claims in PostgreSQL"),
        "telemetry": Extra(("opentelemetry.sdk", "opentelemetry"), "OpenTelemetry for workers"),
        "capture": Extra(("pyarrow",), "captures as Parquet; the pages of a lake"),
        "lineage": Extra(("openlineage.client",), "OpenLineage events of tally pipeline run"),
        "lab": Extra(
            ("pamqp", "pika", "hdrh", "covertable"), "tally lab: clients and brokers side by side"
        ),
        "pipeline": Extra(
            ("pyspark", "deltalake", "pyarrow", "jsonschema_rs"),
            "tally pipeline: captured traffic on Spark",
        ),
    }
)
"""Every extra but `all`. A module in two rows belongs to the first one."""

WHOLE: Final = ("all", "pipeline", "artemis")
"""The extras that install everything: `all` has every extra without a compiler or Java."""


def missing_modules(name: str) -> list[str]:
    """Name the modules of an extra that are not installed."""
    return [module for module in EXTRAS[name].modules if not _is_installed(module)]


def check_extra(name: str) -> None:
    """Raise `MissingExtra` unless every module of the extra is installed."""
    if absent := missing_modules(name):
        raise MissingExtra(name, absent[0])


@contextmanager
def importing(name: str) -> Iterator[None]:
    """Import libraries of an extra; one that cannot be imported is a `MissingExtra`."""
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] == "tallystick":
            raise
        raise MissingExtra(name, _full_name(name, error.name or str(error))) from error


def explain_import(error: ImportError) -> MissingExtra | None:
    """Give the error for a module of the table that is not installed; None for any other module."""
    for name, extra in EXTRAS.items():
        if any(_belongs(error.name or "", module) for module in extra.modules):
            return MissingExtra(name, _full_name(name, error.name or ""))
    return None


def _full_name(extra: str, absent: str) -> str:
    """Give the module of the table: `google.protobuf` when the import stopped at `google`."""
    modules = EXTRAS[extra].modules
    return next((one for one in modules if one.startswith(f"{absent}.")), absent)


def _belongs(absent: str, module: str) -> bool:
    """Say whether the absent module is this one, a parent of it (`azure`), or a part of it."""
    return f"{module}.".startswith(f"{absent}.") or absent.startswith(f"{module}.")


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a parent of it is absent
        return False

"""HTTP answers: Confluent's content type, and its error codes with their messages.

An error is `{"error_code": <code>, "message": <text>}`. The first three digits of the code are the
HTTP status; generic errors (400, 404, 405, 429) carry the status itself as the code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import orjson

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["JSON", "REGISTRY_JSON", "WORDS", "Answer", "Fault", "fault", "give"]

REGISTRY_JSON: Final = "application/vnd.schemaregistry.v1+json"
JSON: Final = "application/json"

WORDS: Final[dict[int, str]] = {
    400: "{}",
    404: "HTTP 404 Not Found",
    405: "HTTP 405 Method Not Allowed",
    429: "The server is checking too many schemas; try again later",
    40401: "Subject '{}' not found.",
    40402: "Version {} not found.",
    40403: "Schema {}not found",
    40409: "Subject '{}' does not have subject-level mode configured",
    42201: "{}",
    42202: "The specified version '{}' is not a valid version id. "
    'Allowed values are between [1, 2^31-1] and the string "latest"',
    42205: "Operation not permitted: this registry is read-only over REST. "
    "The schemas are kept in git: commit the change there.",
    42209: "The request body is larger than {} bytes",
    50001: "Error in the registry server: {}",
}
"""Every error code of this server, with its message."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, a body and its type; `headers` are extra headers."""

    status: int
    body: bytes
    type: str = REGISTRY_JSON
    headers: Mapping[str, str] = field(default_factory=dict)


class Fault(Exception):
    """An error that ends a request early."""

    def __init__(self, code: int, *parts: Any) -> None:
        super().__init__(code, *parts)
        self.code = code
        self.parts = parts


def give(value: Any, status: int = 200, kind: str = REGISTRY_JSON) -> Answer:
    """Answer with a JSON value."""
    return Answer(status, orjson.dumps(value), kind)


def fault(code: int, *parts: Any) -> Answer:
    """Answer with an error."""
    status = code if code < 1000 else code // 100
    return give({"error_code": code, "message": WORDS[code].format(*parts)}, status)

"""The stdio protocol for subjects written in Python (docs/reference/protocol.md).

A subject reports what its package does and never judges. An error of the package's own kind is a
rejection; whatever else it raises is an error, named as such, so a crash never passes for a no.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["Given", "Operations", "Result", "Unsupported", "serve"]

Given = dict[str, Any]
Result = dict[str, Any]
Operations = Mapping[str, Callable[[Given], Result]]


class Unsupported(Exception):
    """A declaration, not an error: what the package does not offer, and why."""


def _answer(
    request: dict[str, Any], operations: Operations, own: tuple[type[Exception], ...]
) -> dict[str, Any]:
    number, name = request["id"], request["operation"]
    if name not in operations:
        return {"id": number, "unsupported": f"no operation {name!r}"}
    try:
        return {"id": number, "result": operations[name](request["given"])}
    except Unsupported as reason:
        return {"id": number, "unsupported": str(reason)}
    except own as rejection:
        return {"id": number, "result": {"rejected": f"{type(rejection).__name__}: {rejection}"}}
    except Exception as error:  # noqa: BLE001 - whatever the package raises is what is reported
        return {"id": number, "error": f"{type(error).__name__}: {error}"}


def serve(
    identity: dict[str, Any], operations: Operations, own: tuple[type[Exception], ...]
) -> None:
    """Answer line by line until `stop` or the end of the input."""
    greeting = {"protocol": 1, **identity, "operations": sorted(operations)}
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["op"] == "stop":
            return
        reply = _answer(request, operations, own) if request["op"] == "run" else greeting
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()

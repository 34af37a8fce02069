"""The babelqueue subject: it speaks the stdio protocol (docs/reference/protocol.md).

It reports what the package does and never judges. An error of the package's own kind is a
rejection; anything else that it raises is an error, named as such.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import babelqueue
from operations import NOT_OFFERED, OPERATIONS
from wire import Unsupported

IDENTITY = {
    "protocol": 1,
    "name": "babelqueue",
    "version": babelqueue.__version__,
    "language": "python",
    "library": "json (inside babelqueue)",
    "operations": sorted(OPERATIONS),
}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Do one operation and say what came of it."""
    number, name = request["id"], request["operation"]
    if name not in OPERATIONS:
        return {"id": number, "unsupported": NOT_OFFERED.get(name, f"no operation {name!r}")}
    try:
        return {"id": number, "result": OPERATIONS[name](request["given"])}
    except Unsupported as reason:
        return {"id": number, "unsupported": str(reason)}
    except babelqueue.BabelQueueError as rejection:
        pointer = getattr(rejection, "pointer", None)
        place = {"pointer": pointer} if pointer else {}
        return {"id": number, "result": {"rejected": str(rejection), **place}}
    except Exception as error:  # noqa: BLE001 - whatever the package raises is what is reported
        return {"id": number, "error": f"{type(error).__name__}: {error}"}


def main() -> None:
    """Answer line by line until `stop` or the end of the input."""
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if request["op"] == "stop":
            return
        reply = answer(request) if request["op"] == "run" else IDENTITY
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

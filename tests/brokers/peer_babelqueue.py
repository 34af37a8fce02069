"""Run by the Python of babelqueue's own environment: publish or consume with babelqueue 1.24.0.

peer_babelqueue.py produce URL QUEUE COUNT
peer_babelqueue.py consume URL QUEUE COUNT          prints @@ and JSON per message handled
peer_babelqueue.py fail    URL QUEUE COUNT          lets each message fail once
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from babelqueue import BabelQueue  # type: ignore[import-not-found]

URN = "urn:babel:orders:created"
PATIENCE = 40.0


def main(verb: str, url: str, queue: str, count: int) -> None:
    app = (
        BabelQueue(transport=laravel(url), queue=queue)
        if "laravel" in url
        else BabelQueue(url, queue=queue)
    )
    if verb == "produce":
        for number in range(count):
            app.publish(URN, {"n": number, "text": "Grüße/…", "v": 0.5})
    else:
        consume(app, verb, count)
    close = getattr(app.transport, "close", None)
    if close is not None:
        close()


def laravel(url: str) -> Any:
    """Open their other layout; their own URL option for it does not get past redis-py 8."""
    from babelqueue.redis_transport import (  # type: ignore[import-not-found]  # noqa: PLC0415
        RedisTransport,
    )

    return RedisTransport(url.partition("?")[0], laravel_compat=True)


def consume(app: Any, verb: str, count: int) -> None:
    def handle(data: Any, meta: Any, envelope: Any) -> None:
        seen = {"data": data, "id": meta["id"], "attempts": envelope["attempts"]}
        sys.stdout.write(f"@@{json.dumps(seen)}\n")
        if verb == "fail":
            raise ValueError("once")

    app.register(URN, handle)
    done, end = 0, time.monotonic() + PATIENCE
    while done < count and time.monotonic() < end:
        done += app.consume(max_messages=count - done, timeout=2.0, handle_signals=False)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))

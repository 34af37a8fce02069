"""An app whose last message waits until the file that GO names is there."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from tallystick import App
from tallystick.runtime.retry import Backoff

URN = "urn:babel:orders:created"
app = App("memory://live", queue="orders", concurrency=2, max_attempts=2, backoff=Backoff())


@app.handler(URN)
def handle(data: dict[str, Any]) -> None:
    if data["n"] == "bad":
        raise ValueError("alice@example.org\x1b[2J")
    while data["n"] == "last" and not Path(os.environ["GO"]).exists():
        time.sleep(0.01)
    print(f"order {data['n']} is done")  # noqa: T201 (it is seen on the terminal)


app.publish_all((URN, {"n": n}) for n in [*range(10), "bad", "last"])

"""A worker of its own process: writes the number of each order to a file, in one write each."""

from __future__ import annotations

import os
import sys
from typing import Any

from tallystick import App

if __name__ == "__main__":
    app = App(sys.argv[1], queue="orders", concurrency=2)
    ledger = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    @app.handler("urn:babel:orders:created")
    def created(data: Any) -> None:
        os.write(ledger, b"%d\n" % data["n"])

    app.run()

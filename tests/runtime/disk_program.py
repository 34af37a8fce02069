"""Send and handle messages while captures hit a limit on the size of files, and then go on."""

from __future__ import annotations

import json
import logging
import resource
import sys
from typing import Any

from tallystick import App
from tallystick.runtime.capture_files import CaptureFiles

URN = "urn:babel:orders:created"


def main(folder: str) -> None:
    logging.basicConfig(stream=sys.stderr)
    files = CaptureFiles(folder, again=0)
    app = App("memory://disk", queue="orders", capture=files)
    handled: list[Any] = []
    app.handler(URN)(handled.append)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    sent = app.publish_all((URN, {"n": n}) for n in range(20))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    sent += app.publish_all((URN, {"n": n}) for n in range(20))
    sent += app.publish_all((URN, {"n": n}) for n in range(20))
    app.run(limit=10)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    app.run(limit=50)
    app.close()
    files.close()
    told = {"handled": len(handled), "sent": len(sent), "missing": files.missing}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Brokers that all workers of a test run share: each is started once, by the first who needs it.

Every test has queues of its own, so nobody is in another's way. A broker that starts at once is not
worth sharing: each worker has its own.

`servicebus-steady` is the emulator with locks of 60 seconds, as the service has them, for the laws
that are not about locks: on a busy machine a lock of 10 seconds can end too early.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tallystick.brokers.servers import down, find_server, running, up
from tallystick.brokers.servers.life import _parting
from tallystick.brokers.servicebus.server import SERVER

SHARED = ("artemis", "kafka", "pulsar", "qpid", "rabbitmq", "sqs")
STEADY = "servicebus-steady"
SLOW = 600.0
"""Seconds that a broker may take to start on a machine with much else to do."""


def _folder() -> Path:
    """Give the folder of the shared brokers: in that of the run, which the workers inherit."""
    return Path(os.environ["TALLY_TEST_RUN"]) / "shared"


@contextmanager
def own(name: str) -> Iterator[str]:
    """Have a broker that only this worker uses; give its URL."""
    recipe = None
    if name == STEADY:
        words = SERVER.command
        at = words.index("--lock") + 1
        recipe = replace(SERVER, command=(*words[:at], "60", *words[at + 1 :]))
        name = SERVER.name
    with running(name, limit=SLOW, recipe=recipe) as server:
        yield server.url


def share(name: str) -> str:
    """Give the URL of a broker that is shared, or nothing for one that is not."""
    return up(name, home=_folder(), limit=SLOW).url if name in SHARED else ""


def end_shared() -> None:
    """End every shared broker; when this is called, no test runs any more."""
    folder = _folder()
    if not folder.exists():
        return
    for name in sorted(path.name for path in folder.iterdir()):
        down(name, wipe=True, home=folder, limit=_parting(find_server(name)))
    shutil.rmtree(folder)

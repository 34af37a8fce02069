"""The unmodified Azure SDKs of Node, Go and Java on the emulator: each sees the same things.

The programs are in `tests/servicebus_sdks`. Each is built once from pinned packages; a missing tool
is a failure that says which. What they print is judged here, in one place.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest

pytestmark = pytest.mark.xdist_group("brokers")

PROGRAMS = Path(__file__).parents[1] / "servicebus_sdks"
CONNECTION = (
    "Endpoint={};SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=SAS_KEY_VALUE;"
    "UseDevelopmentEmulator=true;"
)

EXPECTED = {
    "peeked": ["one", "two", "three"],
    "received": ["one", "two", "three"],
    "count_rose": 1,
    "deferred": "two",
    "renewed": True,
    "dead": ["three", "why", "because"],
    "scheduled": "soon",
    "deleted": "gone",
    "left": 0,
    "session": ["s1", "in session", "halfway"],
}


@pytest.mark.parametrize("language", ["node", "go", "java"])
def test_an_unmodified_sdk_sees_what_the_service_promises(
    broker_url: Callable[[str], str], language: str
) -> None:
    connection = CONNECTION.format(broker_url("servicebus"))
    names = [f"tally-{uuid4().hex[:12]}" for _ in range(2)]
    done = subprocess.run(
        [str(PROGRAMS / language / "start"), connection, *names],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == EXPECTED

"""A process of its own that claims ids, or dies in the middle of a handler.

race URL FIRST LAST        waits for a line, claims every id, prints those that it may run
die URL TABLE BROKER       handles one message in a transaction, and is killed before its end
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from tallystick import App
from tallystick.runtime.claims import open_claims


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def race(url: str, first: str, last: str) -> None:
    claims = open_claims(url)
    claims.claim("warm")
    say("ready")
    sys.stdin.readline()
    won = [str(n) for n in range(int(first), int(last)) if claims.claim(str(n)).verdict == "run"]
    say(" ".join(won))


def die(url: str, table: str, broker: str) -> None:
    app = App(broker, queue="orders", idempotency=url)

    @app.handler("urn:babel:orders:created")
    def created(data: dict[str, Any], transaction: Any) -> None:
        transaction.execute(f"INSERT INTO {table} (id) VALUES ({data['id']})")
        os.kill(os.getpid(), signal.SIGKILL)

    app.run(idle=60)


if __name__ == "__main__":
    {"race": race, "die": die}[sys.argv[1]](*sys.argv[2:])

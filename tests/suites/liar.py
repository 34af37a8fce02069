"""Subjects that are wrong on purpose, one per mode: `python liar.py MODE`.

Each begins honestly and lies where its mode says. The version it gives is its process id.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import Any


def write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def say(message: Any) -> None:
    write(json.dumps(message) + "\n")


def complain(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def hang() -> None:
    signal.pause()


def honest(message: dict[str, Any]) -> None:
    say({"id": message["id"], "result": {"verdict": "ok", "echo": message["given"]}})


def die(_: dict[str, Any]) -> None:
    complain("no more memory")
    os.kill(os.getpid(), signal.SIGKILL)


def half(_: dict[str, Any]) -> None:
    write('{"id":1,"resu')
    hang()


def says_pid_and_hangs(_: dict[str, Any]) -> None:
    complain(str(os.getpid()))
    hang()


def closes(_: dict[str, Any]) -> None:
    os.close(1)
    hang()


def twice(message: dict[str, Any]) -> None:
    honest(message)
    honest(message)


def flood(_: dict[str, Any]) -> None:
    while True:
        complain("x" * 4096)


def grandchild(message: dict[str, Any]) -> None:
    sleeper = [sys.executable, "-c", "import signal; signal.pause()"]
    child = subprocess.Popen(sleeper)
    say({"id": message["id"], "result": {"pid": child.pid}})


RUNS: dict[str, Any] = {
    "honest": honest,
    "hangs": lambda _: hang(),
    "says-pid-and-hangs": says_pid_and_hangs,
    "dies": die,
    "exits": lambda _: sys.exit(7),
    "garbage": lambda _: write("Segmentation fault? \x1b[31m\n"),
    "half": half,
    "wrong-id": lambda message: say({"id": message["id"] + 40, "result": {}}),
    "twice": twice,
    "unsupported": lambda message: say({"id": message["id"], "unsupported": "I would rather not"}),
    "error": lambda message: say({"id": message["id"], "error": "disk full"}),
    "both": lambda message: say({"id": message["id"], "result": {}, "error": "x"}),
    "neither": lambda message: say({"id": message["id"]}),
    "list-result": lambda message: say({"id": message["id"], "result": []}),
    "text-id": lambda message: say({"id": str(message["id"]), "result": {}}),
    "nan": lambda message: write(f'{{"id":{message["id"]},"result":{{"n":NaN}}}}\n'),
    "deep": lambda message: write(f'{{"id":{message["id"]},"result":{"[" * 99999}\n'),
    "closes": closes,
    "flood": flood,
    "grandchild": grandchild,
    "surrogates": lambda message: say(
        {"id": message["id"], "result": {"verdict": "\ud800", "\udfff": "\udfff\x1b"}}
        if message["id"] % 2
        else {"id": message["id"], "error": "\ud800\x1b"}
    ),
    "odd": lambda message: (die if message["id"] % 2 else honest)(message),
}

IDENTITY = {
    "protocol": 1, "name": "liar", "version": str(os.getpid()), "language": "python",
    "library": "json", "operations": ["decode", "canonical"],
}  # fmt: skip


def start(mode: str) -> None:
    match mode:
        case "start-hangs":
            hang()
        case "start-dies":
            complain("subject liar: `liar` is not on the PATH")
            sys.exit(3)
        case "start-garbage":
            write("Welcome!\n")
        case "start-other-protocol":
            say({**IDENTITY, "protocol": 2})
        case "start-without-operations":
            say({key: value for key, value in IDENTITY.items() if key != "operations"})
        case "surrogates":
            say({**IDENTITY, "name": "li\ud800ar\x1b[31m", "version": "1"})
        case _:
            say(IDENTITY)


def main(mode: str) -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if message["op"] == "start":
            start(mode)
            if mode == "never-reads":
                hang()
        elif message["op"] == "run":
            RUNS.get(mode, honest)(message)
        elif mode == "never-stops":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            hang()
        elif mode == "stops-badly":
            sys.exit(9)
        else:
            return
    if mode == "never-stops":
        hang()


if __name__ == "__main__":
    main(sys.argv[1])

"""Decode, accept and encode against `babelqueue` 1.24.0 and bare `orjson`, in one run.

`encode` is from the library's own message object to bytes, for both. A Tallystick message fixes
the canonical bytes of its payload when it is made, so `make_encode_vs_babelqueue` (from plain
values to bytes, ids included) and `reencode_vs_babelqueue` (bytes to bytes) are printed as well.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import measure
import orjson
import peers

from tallystick.core.envelope import accepts, decode, encode, make

SIZES = (400, 4000)


def data_of(size: int) -> dict[str, Any]:
    """An order whose message has about this many bytes."""
    data: dict[str, Any] = {
        "order_id": 1042,
        "currency": "EUR",
        "amount": 99.95,
        "customer": "c-7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b",
        "items": [],
    }
    while len(json.dumps(data)) < size - 250:
        number = len(data["items"])
        data["items"].append(
            {"sku": f"SKU-{number:05}", "name": "Widget, blue", "qty": 3, "price": 12.5, "ok": True}
        )
    return data


def contenders(size: int) -> dict[str, Callable[[], object]]:
    from babelqueue import EnvelopeCodec as Peer  # type: ignore[import-not-found]  # noqa: PLC0415

    data = data_of(size)
    theirs = Peer.make("urn:babel:orders:created", data, queue="orders")
    text = Peer.encode(theirs)
    body = text.encode()

    def new_id() -> str:
        return str(uuid4())

    def ours() -> Any:
        now = int(time.time() * 1000)
        return make("urn:babel:orders:created", data, queue="orders", now_ms=now, new_id=new_id)

    made = ours()
    return {
        "their decode": lambda: Peer.accepts(Peer.decode(text)),
        "our decode": lambda: accepts(decode(body)),
        "our decode and data": lambda: decode(body).data,
        "orjson.loads": lambda: orjson.loads(body),
        "their encode": lambda: Peer.encode(theirs),
        "our encode": lambda: encode(made),
        "their make and encode": lambda: Peer.encode(
            Peer.make("urn:babel:orders:created", data, queue="orders")
        ),
        "our make and encode": lambda: encode(ours()),
        "their reencode": lambda: Peer.encode(Peer.decode(text)),
        "our reencode": lambda: encode(decode(body)),
    }


def ratios(times: dict[str, float]) -> dict[str, float]:
    return {
        "decode_vs_babelqueue": times["their decode"] / times["our decode"],
        "decode_vs_orjson": times["orjson.loads"] / times["our decode"],
        "decode_and_data_vs_orjson": times["orjson.loads"] / times["our decode and data"],
        "encode_vs_babelqueue": times["their encode"] / times["our encode"],
        "make_encode_vs_babelqueue": times["their make and encode"] / times["our make and encode"],
        "reencode_vs_babelqueue": times["their reencode"] / times["our reencode"],
    }


def start_up() -> dict[str, float]:
    tally = Path(sys.executable).parent / "tally"
    times = measure.best_of(
        {
            "python -c pass": lambda: subprocess.run([sys.executable, "-c", "pass"], check=True),
            "tally --version": lambda: subprocess.run(
                [tally, "--version"], check=True, stdout=subprocess.DEVNULL
            ),
        },
        3,
    )
    return {"version_vs_python": times["tally --version"] / times["python -c pass"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="under 45 seconds")
    parser.add_argument("--json", action="store_true", help="one flat object as the last line")
    arguments = parser.parse_args()
    peers.install("babelqueue==1.24.0")
    worst: dict[str, float] = {}
    for size in SIZES:
        times = measure.best_of(contenders(size), 5 if arguments.quick else 30)
        for name, value in times.items():
            print(f"{size:5} bytes  {name:22} {value:8.2f} us")
        for name, value in ratios(times).items():
            worst[name] = min(worst.get(name, value), value)
    worst |= start_up()
    for name, value in worst.items():
        print(f"{name:28} {value:6.2f}")
    if arguments.json:
        print(json.dumps({name: round(value, 3) for name, value in worst.items()}))


if __name__ == "__main__":
    main()

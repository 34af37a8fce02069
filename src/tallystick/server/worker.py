"""A process that checks candidates, one at a time, and may be killed at any moment.

Frames on stdin and stdout: four bytes of length, then MessagePack. The first frame out is empty
and says that the imports are done. The process ends when its stdin does, so it never outlives
the server. It runs with a lower priority than the server and may not use
more than `_MEMORY` bytes of memory.

    python -m tallystick.server.worker
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import TYPE_CHECKING, Final

import msgspec

from tallystick.server.examine import Job, Report, examine

if TYPE_CHECKING:
    from typing import BinaryIO

__all__ = ["frame", "main"]

_MEMORY: Final = 3 * 2**30
_NICENESS: Final = 5
_WARM: Final = Job(b'{"schema": "{}"}', ("babelqueue",), "warm.json", ("true",))


def main() -> None:
    """Answer jobs until stdin ends."""
    _be_modest()
    examine(_WARM)  # loads everything, so that the first request does not wait for it

    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sink.write(frame(b""))
    sink.flush()
    encoder, decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Job)
    while (raw := _read_frame(source)) is not None:
        sink.write(frame(encoder.encode(_examine(decoder.decode(raw)))))
        sink.flush()


def _examine(job: Job) -> Report:
    """Check a candidate; a lack of memory or stack is its fault, any other error is ours."""
    try:
        return examine(job)
    except (RecursionError, MemoryError) as error:
        kind = type(error).__name__
        return Report(fault=f"The schema is too deep or too large to check ({kind}): simplify it")
    except Exception:  # noqa: BLE001 - the process boundary: the server reports and logs it
        return Report(defect=traceback.format_exc())


def _be_modest() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends us
    if os.name == "posix":
        import resource  # noqa: PLC0415 - there is none elsewhere

        os.nice(_NICENESS)
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def frame(payload: bytes) -> bytes:
    """Put the length before a payload."""
    return len(payload).to_bytes(4, "big") + payload


def _read_frame(source: BinaryIO) -> bytes | None:
    head = source.read(4)
    return source.read(int.from_bytes(head, "big")) if len(head) == 4 else None


if __name__ == "__main__":
    main()

"""The time limit for work that hostile input could make endless.

The work is done in a child process that the system ends when its CPU time is used up; the validator
cannot be interrupted in any other way. The limit is CPU time, so that a busy machine changes no
result. The memory of the child is limited too. Only schemas that `intricacy` finds complex use
this.
"""

from __future__ import annotations

import os
import pickle
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tallystick.core.errors import Rejected, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SECONDS", "work_within"]

SECONDS: Final = 0.8
"""Maximum CPU seconds for one schema, one pair or one candidate."""
_MEMORY: Final = 1 << 30


_MULTIPLIED: Final = "the references multiply: let each subschema refer to a definition once"


def work_within(
    work: Callable[[], Any], name: str, seconds: float = SECONDS, hint: str = _MULTIPLIED
) -> Any:
    """Give the result of the work, or raise `Rejected` (`schema.time`) if it takes too long."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _work(work, seconds, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    if not answer:
        raise Rejected(
            f"{name}: checking a value takes longer than {seconds:g} s",
            code="schema.time",
            hint=hint,
        )
    done, result = pickle.loads(answer)  # noqa: S301 - written by our own child
    if not done:
        raise Unavailable(f"the validator failed: {result}", code="schema.validator")
    return result


def _work(work: Callable[[], Any], seconds: float, writing: int) -> None:
    """Be the child: answer once, or be ended."""
    try:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        _bound_memory()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the validator's last words are of no use
        try:
            answer = (True, work())
        except Exception as error:  # noqa: BLE001 - the process boundary: the parent raises it
            answer = (False, f"{type(error).__name__}: {error}")
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)
    finally:
        os._exit(0)


def _bound_memory() -> None:
    """Let the child take so much more than the parent has, where the system can say how much."""
    import resource  # noqa: PLC0415 - there is none where there is no fork

    try:
        taken = int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
    except OSError:
        return
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    limit = taken + _MEMORY if most < 0 else min(taken + _MEMORY, most)
    resource.setrlimit(resource.RLIMIT_AS, (limit, most))

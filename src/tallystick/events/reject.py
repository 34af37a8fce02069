"""Turn `Refused` of the event model into `Rejected` of a reader, with the place in the input."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tallystick.core.errors import Refused, Rejected

__all__ = ["inside", "reading"]

Locate = Callable[[str], int | None]


@contextmanager
def reading(locate: Locate = lambda _name: None) -> Iterator[None]:
    """Reject what is refused inside; `locate` gives the offset of an attribute, if it can."""
    try:
        yield
    except (Refused, Rejected) as error:
        name = (error.pointer or "/").split("/")[1]
        offset = locate(name)
        if isinstance(error, Rejected) and error.offset is not None:
            offset = error.offset if offset is None else offset + error.offset
        raise Rejected(
            error.message, code=error.code, pointer=error.pointer, offset=offset, hint=error.hint
        ) from None


@contextmanager
def inside(index: int, start: int) -> Iterator[None]:
    """Place a fault of one event within its batch: the pointer by index, the offset by start."""
    try:
        yield
    except Rejected as error:
        raise Rejected(
            error.message,
            code=error.code,
            pointer=f"/{index}{error.pointer or ''}",
            offset=start + (error.offset or 0),
            hint=error.hint,
        ) from None

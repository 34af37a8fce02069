"""`all_combinations`: the 9216 parameter sets of the thorough procedure (spec, Appendix C).

Eleven parameters of Appendix C are varied: 4 circuits x 48 JMS options x 16 AMQP options x 3 sizes.
A set has a name that is a path, so that a case can be found, filtered and repeated by it:
`ack_mode/message_size/flags that are on, joined by +`.

`transactional` is the publisher's transaction and `ack_mode=tx` the receiver's: so all twelve pairs
mean something (sheet, 1.1, fault 11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from itertools import product
from typing import Any, Final

from tallystick.core.errors import UsageError

__all__ = [
    "ACK_MODE_NAMES", "BODY_SIZES", "FLAGS", "LOCAL_FIXED", "VARIED", "Parameters",
    "all_combinations", "as_mapping", "local_combinations", "name_of", "read_name",
]  # fmt: skip

ACK_MODE_NAMES: Final = ("tx", "auto", "client", "dups_ok", "no_ack", "pre_ack")
BODY_SIZES: Final[Mapping[str, int]] = {"no_body": 0, "one_body": 512, "multi_body": 10_000}
"""Bytes of a body: none, one frame, and three frames when frames have at most 4096 bytes."""

FLAGS: Final = (
    "bind_out_route", "consumer_out_active", "transactional", "persistent", "no_local",
    "exclusive", "immediate", "mandatory", "durable",
)  # fmt: skip

VARIED: Final[Mapping[str, tuple[bool | str, ...]]] = {
    **dict.fromkeys(FLAGS, (False, True)),
    "ack_mode": ACK_MODE_NAMES,
    "message_size": tuple(BODY_SIZES),
}
"""Every varied parameter and its values, in the order of `Parameters`."""

LOCAL_FIXED: Final[Mapping[str, bool | str]] = {
    "persistent": False,
    "durable": False,
    "message_size": "one_body",
}
"""What the same-connection tier keeps fixed: none of these can change what no_local does."""

_NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Parameters:
    """One parameter set; the defaults are those of Appendix C."""

    bind_out_route: bool = True
    consumer_out_active: bool = True
    transactional: bool = False
    persistent: bool = False
    no_local: bool = False
    exclusive: bool = False
    immediate: bool = False
    mandatory: bool = False
    durable: bool = False
    ack_mode: str = "auto"
    message_size: str = "one_body"


@cache
def all_combinations() -> tuple[Parameters, ...]:
    """Give every parameter set once, always in the same order."""
    return tuple(Parameters(*values) for values in product(*VARIED.values()))  # type: ignore[arg-type]


@cache
def local_combinations() -> tuple[Parameters, ...]:
    """Give the 768 sets of the same-connection tier, where no_local can be seen."""
    return tuple(
        one
        for one in all_combinations()
        if all(getattr(one, name) == value for name, value in LOCAL_FIXED.items())
    )


def as_mapping(parameters: Parameters) -> dict[str, Any]:
    """Give the set under the names of Appendix C."""
    return asdict(parameters)


def name_of(parameters: Parameters) -> str:
    """Give the name of a set: `auto/one_body/bind_out_route+consumer_out_active`."""
    on = "+".join(flag for flag in FLAGS if getattr(parameters, flag)) or _NONE
    return f"{parameters.ack_mode}/{parameters.message_size}/{on}"


def read_name(name: str) -> Parameters:
    """Read a set from its name, flags in any order; an unknown name is a usage error."""
    mode, _, rest = name.partition("/")
    size, _, on = rest.partition("/")
    flags = [] if on == _NONE else on.split("+")
    chosen: dict[str, Any] = {flag: flag in flags for flag in FLAGS}
    found = Parameters(**chosen, ack_mode=mode, message_size=size)
    known = mode in ACK_MODE_NAMES and size in BODY_SIZES and set(flags) <= set(FLAGS)
    if not known or len(set(flags)) != len(flags):
        raise UsageError(
            f"there is no combination {name!r}",
            code="combination",
            hint="use a name that `tally lab combinations` prints",
        )
    return found

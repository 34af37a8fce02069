"""Parameters on the command line: their names and allowed values (Appendix C).

An unknown name or a wrong value is refused before anything is started. Otherwise a misspelt
parameter would run a different test than the user asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from tallystick.core.errors import UsageError
from tallystick.lab.combinations import ACK_MODE_NAMES

__all__ = [
    "CLIENT", "LOAD", "SEEDS", "SHAPE", "TRAFFIC", "check_names", "read_literal", "read_parameters",
]  # fmt: skip

SEEDS: Final = range(2**31)
"""Seeds are numbers that every client's language has; so are all other numbers."""

Rule = tuple[str, Callable[[Any], bool]]


def _one_of(*values: str) -> Rule:
    return f"one of {', '.join(values)}", lambda value: value in values


_FLAG: Final[Rule] = ("true or false", lambda value: type(value) is bool)
_ABOVE: Final[Rule] = (
    f"a whole number from 1 to {SEEDS[-1]}",
    lambda value: type(value) is int and value in SEEDS[1:],
)
_COUNT: Final[Rule] = (
    f"a whole number from 0 to {SEEDS[-1]}",
    lambda value: type(value) is int and value in SEEDS,
)

SHAPE: Final[Mapping[str, Rule]] = {
    "num_circuits": _ABOVE,
    "num_publishers": _ABOVE,
    "num_consumers": _ABOVE,
    "num_destinations": _ABOVE,
    "max_publishing_node": _ABOVE,
    "single_role": _FLAG,
    "batches": _ABOVE,
    "duration": _COUNT,
}
"""How a test of circuits is laid out."""

LOAD: Final[Mapping[str, Rule]] = {
    "persistent": _FLAG,
    "durable": _FLAG,
    "mandatory": _FLAG,
    "immediate": _FLAG,
    "transactional": _FLAG,
    "tx_batch_size": _ABOVE,
    "inbound_rate": _COUNT,
    "ack_mode": _one_of(*ACK_MODE_NAMES),
    "no_local": _FLAG,
    "exclusive": _FLAG,
    "prefetch_count": _COUNT,
    "header_fields": ("an object of tagged values", lambda value: isinstance(value, dict)),
}
"""How messages are sent and taken."""

TRAFFIC: Final[Mapping[str, Rule]] = {
    **LOAD,
    "pattern": _one_of("p2p", "pubsub"),
    "num_messages": _ABOVE,
    "message_bytes": _COUNT,
    "outgoing_rate": _COUNT,
    "consumer_out_active": _FLAG,
    "check": _one_of("hash", "count"),
    "seed": _COUNT,
}
"""That, and which messages."""

CLIENT: Final = ("username", "password", "client_name", "control_key", "control_timeout")
"""What a client is told on its command line."""


def read_parameters(given: Mapping[str, str], rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Read words by their rules: a value is one of JSON, or else text."""
    return {name: _read(name, text, rules) for name, text in given.items()}


def _read(name: str, text: str, rules: Mapping[str, Rule]) -> Any:
    check_names([name], rules)
    due, holds = rules[name]
    value = read_literal(text)
    if not holds(value):
        raise UsageError(f"{name}={text} is not valid", code="parameter", hint=f"give {due}")
    return value


def check_names(given: Collection[str], known: Collection[str]) -> None:
    """Refuse an unknown parameter."""
    for name in given:
        if name not in known:
            hint = f"use one of {', '.join(sorted(known))}"
            raise UsageError(f"there is no parameter {name!r} here", code="parameter", hint=hint)


def read_literal(text: str) -> Any:
    """Read a value of a command line as JSON, or else as text."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text

"""AMQP 1.0 types there and back over a broker, by python-qpid-proton (sheet, 7.2).

The values are those of the Qpid interop test, read in place. A float is an integer that is its bit
pattern. Two values are the same when proton encodes them to the same bytes: so the type is compared
as well as the value, and a NaN equals itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import pack, unpack
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.verdict import Difference, Outcome, Verdict

__all__ = ["BESIDE", "TypeCase", "encode_value", "make_value", "round_trip", "type_cases"]

BESIDE: Final = (
    Path(__file__).parents[4] / "shared" / "data" / "qpid-interop" / "amqp10_type_values.json"
)
"""Where the values stand beside the repository."""


@dataclass(frozen=True, slots=True)
class TypeCase:
    """One value as data: `kind` is the AMQP 1.0 type."""

    name: str
    kind: str
    value: Any


def type_cases(broker: str, file: Path = BESIDE) -> tuple[TypeCase, ...]:
    """Read the cases."""
    try:
        held = json.loads(file.read_bytes())
        return tuple(
            TypeCase(f"fields/1.0/{broker}/{kind}/{index}", kind, value)
            for group in ("primitive", "complex")
            for kind, about in held[group].items()
            for index, value in enumerate(about["values"])
        )
    except OSError as error:
        raise Unavailable(
            f"cannot read {file}: {error.strerror}",
            code="values",
            hint="give the file with --values",
        ) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{file} holds no AMQP 1.0 values: {type(error).__name__}: {error}",
            code="values",
            hint='{"primitive": {"uint": {"values": [0]}}, "complex": {}}',
        ) from error


def _bits(letter: str, integer: str) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        number = int(value, 16) if isinstance(value, str) else value
        (found,) = unpack(f">{letter}", pack(f">{integer}", number))
        return float(found)

    return read


def make_value(kind: str, value: Any) -> Any:
    """Give the value as proton has it, with its exact type."""
    import proton  # noqa: PLC0415 (needed for AMQP 1.0 only)

    match kind:
        case "array":
            element = value["element_type"]
            items = [make_value(element, one) for one in value["elements"]]
            code = (
                proton.Data.BOOL if element == "boolean" else getattr(proton.Data, element.upper())
            )
            return proton.Array(proton.UNDESCRIBED, code, *items)  # type: ignore[arg-type]
        case "list":
            return [make_value(*one) for one in value]
        case "map":
            return {make_value(*key): make_value(*held) for key, held in value}
        case "described":
            described = make_value(*value["value"])
            return proton.Described(make_value(*value["descriptor"]), described)
    float_of = _bits("f", "I")
    plain: dict[str, Callable[[Any], Any]] = {
        "null": lambda _: None,
        "boolean": bool,
        "ubyte": proton.ubyte,
        "ushort": proton.ushort,
        "uint": proton.uint,
        "ulong": proton.ulong,
        "byte": proton.byte,
        "short": proton.short,
        "int": proton.int32,
        "long": int,
        "float": lambda one: proton.float32(float_of(one)),
        "double": _bits("d", "Q"),
        "char": lambda one: proton.char(chr(one) if isinstance(one, int) else one),
        "timestamp": proton.timestamp,
        "uuid": UUID,
        "binary": bytes.fromhex,
        "string": str,
        "symbol": proton.symbol,
    }
    return plain[kind](value)


def encode_value(value: Any) -> bytes:
    """Give the bytes of a value in AMQP 1.0."""
    from proton import Data  # noqa: PLC0415

    data = Data()
    data.put_object(value)
    return bytes(data.encode())


def round_trip(url: str, cases: tuple[TypeCase, ...], limit: float = 30.0) -> Iterator[Verdict]:
    """Send every value to a queue of its own and take it back, one after the other."""
    import proton  # noqa: PLC0415
    from proton.utils import BlockingConnection, SendException  # noqa: PLC0415

    parts = urlsplit(url)
    address = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    vhost = parts.path[1:] or None
    options: dict[str, Any] = {
        "timeout": limit,
        "allowed_mechs": "PLAIN",
        "virtual_host": vhost,
        "heartbeat": 0,
    }
    try:
        connection = BlockingConnection(address, **options)
    except (proton.ProtonException, OSError) as error:
        raise Unavailable(
            f"no AMQP 1.0 at {parts.netloc}: {error}",
            code="broker",
            hint="tally broker up NAME, or leave --url away",
        ) from error
    try:
        receiver = connection.create_receiver(None, dynamic=True, credit=1)
        sender = connection.create_sender(receiver.link.remote_source.address)
        for case in cases:
            sent = make_value(case.kind, case.value)
            try:
                sender.send(proton.Message(body=sent, inferred=False), timeout=limit)
            except SendException as refused:
                yield Verdict(case.name, Outcome.FAILED, f"refused: {refused.state}")
                continue
            came = receiver.receive(timeout=limit)
            receiver.accept()
            yield _compare(case, encode_value(sent), encode_value(came.body))
    except proton.ProtonException as error:
        raise Unavailable(f"the broker ended the talk: {error}", code="broker") from error
    finally:
        connection.close()


def _compare(case: TypeCase, sent: bytes, came: bytes) -> Verdict:
    if sent == came:
        return Verdict(case.name, Outcome.PASSED, "identical")
    difference = Difference(f"/{case.kind}", sent.hex(), came.hex())
    return Verdict(case.name, Outcome.FAILED, "", (difference,))

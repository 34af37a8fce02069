"""AMQP 1.0 types there and back over a broker, by python-qpid-proton (sheet, 7.2).

The values are those of `amqp10_values.json` in this package, or of a file in the same layout. A
float, a double, a decimal32 and a decimal64 are written as their bit patterns. Two values are the
same when proton encodes them to the same bytes: so the type is compared as well as the value, and a
NaN equals itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from struct import pack, unpack
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

from tallystick.core.errors import Unavailable, UsageError
from tallystick.core.verdict import Difference, Outcome, Verdict

__all__ = ["TypeCase", "encode_value", "make_value", "round_trip", "type_cases"]


@dataclass(frozen=True, slots=True)
class TypeCase:
    """One value as data: `kind` is the AMQP 1.0 type."""

    name: str
    kind: str
    value: Any


def type_cases(broker: str, file: Path | None = None) -> tuple[TypeCase, ...]:
    """Read the cases: our own values, or those of a file."""
    source = file or files("tallystick.lab").joinpath("amqp10_values.json")
    try:
        table = json.loads(source.read_bytes())
        return tuple(
            TypeCase(f"fields/1.0/{broker}/{kind}/{index}", kind, value)
            for group in ("primitive", "complex")
            for kind, about in table[group].items()
            for index, value in enumerate(about["values"])
        )
    except OSError as error:
        raise Unavailable(
            f"cannot read {source}: {error.strerror}",
            code="values",
            hint="leave --values out to use the values that ship with Tallystick",
        ) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{source} has no AMQP 1.0 values: {type(error).__name__}: {error}",
            code="values",
            hint='{"primitive": {"uint": {"values": [0]}}, "complex": {}}',
        ) from error


def _pattern(value: Any) -> int:
    """Give a bit pattern, which a file writes as a number or in hexadecimal."""
    return int(value, 16) if isinstance(value, str) else int(value)


def _bits(letter: str, integer: str) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        (number,) = unpack(f">{letter}", pack(f">{integer}", _pattern(value)))
        return float(number)

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
        "decimal32": lambda one: proton.decimal32(_pattern(one)),
        "decimal64": lambda one: proton.decimal64(_pattern(one)),
        "decimal128": lambda one: proton.decimal128(bytes.fromhex(one)),
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
            f"no AMQP 1.0 broker at {parts.netloc}: {error}",
            code="broker",
            hint="start one with `tally broker up NAME`, or leave out --url",
        ) from error
    try:
        receiver = connection.create_receiver(None, dynamic=True, credit=1)
        sender = connection.create_sender(receiver.link.remote_source.address)
        for case in cases:
            sent = make_value(case.kind, case.value)
            try:
                sender.send(proton.Message(body=sent, inferred=False), timeout=limit)
            except SendException as refused:
                yield Verdict(
                    case.name, Outcome.FAILED, f"the broker rejected the message: {refused.state}"
                )
                continue
            came = receiver.receive(timeout=limit)
            receiver.accept()
            yield _compare(case, encode_value(sent), encode_value(came.body))
    except proton.ProtonException as error:
        raise Unavailable(f"the broker closed the connection: {error}", code="broker") from error
    finally:
        connection.close()


def _compare(case: TypeCase, sent: bytes, came: bytes) -> Verdict:
    if sent == came:
        return Verdict(case.name, Outcome.PASSED, "identical")
    difference = Difference(f"/{case.kind}", sent.hex(), came.hex())
    return Verdict(case.name, Outcome.FAILED, "", (difference,))

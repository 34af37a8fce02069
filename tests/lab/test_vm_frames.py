"""Laws of the in-process broker's wire: any name is a name, and whoever is refused is told why."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pika  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pamqp import commands, frame

from tallystick.lab.shell import Place
from tallystick.lab.vm_broker import Fault
from tallystick.lab.vm_frames import METHOD, cut, join, read_method
from tallystick.lab.vm_server import Vm
from tests.lab.company import PATIENCE

DECLARE = b"\x00\x32\x00\x0a\x00\x00"
METHODS = sorted(set(commands.INDEX_MAPPING) - {commands.Basic.RecoverAsync.index})
PROTOCOL = b"AMQP\x00\x00\x09\x01"
ODD = ["a=b", "a=b&c?d", "große Schlange", "x" * 255, '"quoted"', "tab\tand\nline", "a|b;c*"]
FRAMES = st.tuples(st.sampled_from((1, 2, 3, 8)), st.integers(0, 65535), st.binary(max_size=64))


@pytest.fixture
def connection(vm: Vm) -> Iterator[pika.BlockingConnection]:
    made = pika.BlockingConnection(Place(vm.host, vm.port).parameters())
    yield made
    if made.is_open:
        made.close()


@pytest.mark.parametrize("name", ODD)
def test_a_queue_may_have_any_name_that_real_brokers_take(
    connection: pika.BlockingConnection, name: str
) -> None:
    channel = connection.channel()
    assert channel.queue_declare(name, exclusive=True).method.queue == name
    channel.queue_bind(name, "amq.topic", f"k.{name}"[:255])
    channel.basic_publish("", name, b"one")
    channel.basic_publish("amq.topic", f"k.{name}"[:255], b"two")
    bodies = [channel.basic_get(name, auto_ack=True)[2] for _ in range(2)]
    assert bodies == [b"one", b"two"]
    channel.queue_delete(name)


@pytest.mark.parametrize("name", ODD)
def test_a_queue_that_is_not_there_closes_the_channel_only(
    connection: pika.BlockingConnection, name: str
) -> None:
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        connection.channel().queue_declare(name, passive=True)
    assert closed.value.reply_code == 404
    assert connection.channel().is_open


def test_an_exchange_of_any_name_that_is_not_there_closes_the_channel_only(
    connection: pika.BlockingConnection,
) -> None:
    with pytest.raises(pika.exceptions.ChannelClosedByBroker) as closed:
        connection.channel().exchange_declare("a=b" * 80, passive=True)
    assert closed.value.reply_code == 404
    assert connection.channel().is_open


def test_no_name_is_the_queue_the_channel_declared_last(
    connection: pika.BlockingConnection,
) -> None:
    channel = connection.channel()
    made = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind("", "amq.topic", "last")
    channel.basic_publish("amq.topic", "last", b"here")
    assert channel.basic_get("", auto_ack=True)[2] == b"here"
    channel.queue_delete("")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker):
        channel.queue_declare(made, passive=True)


def method(asked: commands.Connection.Open | object, number: int = 0) -> bytes:
    return frame.marshal(asked, number)  # type: ignore[arg-type]


OPENED = PROTOCOL + b"".join(
    method(one)
    for one in (
        commands.Connection.StartOk({}, "PLAIN", "\0guest\0guest", "en_US"),
        commands.Connection.TuneOk(0, 4096, 0),
        commands.Connection.Open("/"),
    )
)
CHANNEL = OPENED + method(commands.Channel.Open(), 1)
PUBLISH = CHANNEL + method(commands.Basic.Publish(routing_key="q"), 1)


def header(size: int) -> bytes:
    return join(2, 1, b"\x00\x3c\x00\x00" + size.to_bytes(8, "big") + b"\x00\x00")


WRONG = {
    "no type of frame": (OPENED + b"GET / HTTP/1.1\r\n", 501),
    "too long": (OPENED + join(1, 1, bytes(4096)), 501),
    "longer than all memory": (OPENED + b"\x01\x00\x01\xff\xff\xff\xff\x00", 501),
    "end missing": (OPENED + join(8, 0, b"")[:-1] + b"\x00", 501),
    "no method": (OPENED + join(1, 1, b"\xff\xff\xff\xff"), 502),
    "empty method": (OPENED + join(1, 1, b""), 502),
    "method cut short": (CHANNEL + join(1, 1, DECLARE + b"\x7fab"), 502),
    "name that is no text": (CHANNEL + join(1, 1, DECLARE + b"\x02\xff\xfe\x00"), 502),
    "table cut short": (CHANNEL + join(1, 1, DECLARE + b"\x01a\x00\x00\x00\x00\x09x"), 502),
    "header cut short": (PUBLISH + join(2, 1, b"\x00\x3c"), 502),
    "content of nothing": (CHANNEL + header(1), 505),
    "body before header": (PUBLISH + join(3, 1, b"x"), 505),
    "two headers": (PUBLISH + header(1) + header(1), 505),
    "too much body": (PUBLISH + header(1) + join(3, 1, b"xx"), 501),
    "method within content": (PUBLISH + method(commands.Basic.Qos(), 1), 505),
    "channel opened twice": (CHANNEL + method(commands.Channel.Open(), 1), 504),
    "channel not open": (OPENED + method(commands.Basic.Qos(), 7), 504),
    "server's word": (OPENED + method(commands.Connection.OpenOk()), 503),
    "tiny frames": (OPENED + method(commands.Connection.TuneOk(0, 8, 0)), 530),
    "not built": (CHANNEL + method(commands.Basic.Recover(), 1), 540),
}  # fmt: skip


def talk(vm: Vm, data: bytes) -> list[object]:
    """Send this, answer a close, and give every method that came until the end."""
    heard: list[object] = []
    with socket.create_connection((vm.host, vm.port), timeout=PATIENCE) as here:
        here.sendall(data)
        came = bytearray()
        while more := here.recv(65536):
            came += more
            while whole := cut(came, 1 << 20):
                heard += [read_method(whole[2])] if whole[0] == METHOD else []
                if isinstance(heard[-1], commands.Connection.Close):
                    here.sendall(method(commands.Connection.CloseOk()))
    return heard


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_on_the_wire_closes_the_connection_with_its_code(
    vm: Vm, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    data, code = WRONG[name]
    last = talk(vm, data)[-1]
    assert isinstance(last, commands.Connection.Close)
    assert last.reply_code == code
    assert not caplog.records, "no stack trace"


def test_a_real_client_reads_why_it_was_refused(connection: pika.BlockingConnection) -> None:
    connection.channel()
    connection._impl._transport.write(b"\x63 rubbish that is no frame at all")
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.channel()
    assert closed.value.reply_code == 501


def test_what_a_refused_connection_held_is_for_others(
    vm: Vm, connection: pika.BlockingConnection
) -> None:
    channel = connection.channel()
    channel.queue_declare("held")
    channel.basic_publish("", "held", b"x")
    talk(vm, CHANNEL + method(commands.Basic.Consume(queue="held"), 1) + b"junk" * 4)
    assert channel.basic_get("held", auto_ack=True)[2] == b"x"
    channel.queue_delete("held")


def take_all(buffer: bytearray) -> Iterator[tuple[int, int, bytes]]:
    while whole := cut(buffer, 4096):
        yield whole


def test_tables_without_end_in_each_other_are_refused() -> None:
    nested = b"t\x01"
    for _ in range(5000):
        nested = b"F" + (len(nested) + 2).to_bytes(4, "big") + b"\x01a" + nested
    table = (len(nested) + 2).to_bytes(4, "big") + b"\x01a" + nested
    assert refusal(lambda: read_method(DECLARE + b"\x01q\x00" + table)) == 502


@given(st.lists(FRAMES, max_size=8), st.data())
def test_frames_are_the_same_however_the_stream_is_cut(
    sent: list[tuple[int, int, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(join(*one) for one in sent)
    buffer = bytearray()
    found: list[tuple[int, int, bytes]] = []
    at = 0
    while at < len(stream):
        step = data.draw(st.integers(1, len(stream) - at))
        buffer += stream[at : at + step]
        at += step
        found += take_all(buffer)
    assert (found, bytes(buffer)) == (sent, b"")


def refusal(read: Callable[[], object]) -> int:
    """Give the code a reader refuses with; nothing else may be raised."""
    try:
        read()
    except Fault as fault:
        return fault.code if fault.level == "connection" else -1
    return 0


@given(st.binary(max_size=200))
def test_rubbish_is_cut_or_refused_and_nothing_else(data: bytes) -> None:
    assert refusal(lambda: list(take_all(bytearray(data)))) in (0, 501)


@given(st.sampled_from(METHODS), st.binary(max_size=200))
def test_a_known_method_with_rubbish_in_it_is_read_or_refused(index: int, data: bytes) -> None:
    assert refusal(lambda: read_method(index.to_bytes(4, "big") + data)) in (0, 502)
    assert refusal(lambda: read_method(data)) in (0, 502)

"""Every broker, once: it answers in its own protocol and keeps a message over kill -9."""

from __future__ import annotations

import base64
import os
import re
import signal
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest

from tallystick.brokers import servers
from tallystick.brokers.servers import Running
from tallystick.brokers.servers.ports import is_free
from tallystick.brokers.servers.process import find_marked, is_alive

BODY: Final = b"kept \xe2\x9c\x93"
Client = tuple[Callable[[Running], None], Callable[[Running], bytes]]


def load(name: str) -> Any:
    """Import a client library when its broker is tested; some carry no types."""
    return import_module(name)


def redis_client(running: Running) -> Any:
    return load("redis").Redis.from_url(running.url)


def redis_write(running: Running) -> None:
    with redis_client(running) as client:
        assert client.ping()
        client.rpush("kept", BODY)


def redis_read(running: Running) -> bytes:
    with redis_client(running) as client:
        body: bytes = client.lpop("kept")
    return body


def rabbitmq_write(running: Running) -> None:
    pika = load("pika")
    with pika.BlockingConnection(pika.URLParameters(running.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("kept", durable=True)
        persistent = pika.BasicProperties(delivery_mode=2)
        channel.basic_publish("", "kept", BODY, persistent, mandatory=True)
    tables = running.data_dir / "mnesia/tally@localhost"
    while b"kept" not in read_if_there(tables / "rabbit_durable_queue.DCD"):
        assert is_alive(running.identity)  # it confirms a queue up to a second before it is safe


def read_if_there(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # it is being replaced
        return b""


def rabbitmq_read(running: Running) -> bytes:
    pika = load("pika")
    with pika.BlockingConnection(pika.URLParameters(running.url)) as connection:
        body: bytes = connection.channel().basic_get("kept", auto_ack=True)[2]
    with get(running, "/api/overview", "guest:guest") as answer:
        assert answer.status == 200
    return body


def kafka_write(running: Running) -> None:
    kafka, admin = load("confluent_kafka"), load("confluent_kafka.admin")
    settings = {"bootstrap.servers": f"{running.host}:{running.ports['kafka']}"}
    client = admin.AdminClient(settings)
    client.create_topics([admin.NewTopic("kept", 1, 1)])["kept"].result(30)
    assert list(client.list_topics(timeout=30).brokers) == [1]
    producer = kafka.Producer({**settings, "acks": "all"})
    producer.produce("kept", BODY)
    assert producer.flush(30) == 0


def kafka_read(running: Running) -> bytes:
    kafka = load("confluent_kafka")
    bootstrap = f"{running.host}:{running.ports['kafka']}"
    consumer = kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "tally"})
    try:
        consumer.assign([kafka.TopicPartition("kept", 0, 0)])
        message = consumer.poll(30)
    finally:
        consumer.close()
    body: bytes = message.value()
    return body


def sqs_call(running: Running, **parameters: str) -> str:
    query = urllib.parse.urlencode(parameters)
    with urllib.request.urlopen(f"{running.urls['http']}/?{query}", timeout=30) as answer:
        text: str = answer.read().decode()
    return text


def sqs_write(running: Running) -> None:
    assert "<ListQueuesResult" in sqs_call(running, Action="ListQueues")
    assert running.urls["http"] in sqs_call(running, Action="CreateQueue", QueueName="kept")
    sqs_call(running, Action="SendMessage", QueueUrl=sqs_queue(running), MessageBody=BODY.decode())


def sqs_queue(running: Running) -> str:
    return f"{running.urls['http']}/000000000000/kept"


def sqs_read(running: Running) -> bytes:
    text = sqs_call(running, Action="ReceiveMessage", QueueUrl=sqs_queue(running))
    match = re.search("<Body>(.*)</Body>", text)
    assert match, text
    return match[1].encode()


def amqp_connect(running: Running) -> Any:
    connection = load("proton.utils").BlockingConnection
    return connection(running.urls["amqp"], timeout=30, allowed_mechs="PLAIN")


def amqp_write(running: Running) -> None:
    connection = amqp_connect(running)
    try:
        message = load("proton").Message(body=BODY, durable=True, inferred=True)
        connection.create_sender("kept").send(message)
    finally:
        connection.close()


def amqp_read(running: Running) -> bytes:
    connection = amqp_connect(running)
    try:
        receiver = connection.create_receiver("kept")
        message = receiver.receive(timeout=30)
        body = bytes(message.body)  # a view into the message: gone with it
        receiver.accept()
    finally:
        connection.close()
    return body


def qpid_write(running: Running) -> None:
    with get(running, "/api/latest/queue/default/default/kept", "guest:guest", "PUT") as answer:
        assert answer.status == 201
    amqp_write(running)


def pulsar_client(running: Running) -> Any:
    pulsar = load("pulsar")
    quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    return pulsar.Client(running.url, logger=quiet, operation_timeout_seconds=30)


def pulsar_write(running: Running) -> None:
    with get(running, "/admin/v2/brokers/health") as answer:
        assert answer.read() == b"ok"
    client = pulsar_client(running)
    try:
        client.create_producer("kept").send(BODY)
    finally:
        client.close()


def pulsar_read(running: Running) -> bytes:
    client = pulsar_client(running)
    try:
        body: bytes = pulsar_subscribe(client).receive(60_000).data()
    finally:
        client.close()
    return body


def pulsar_subscribe(client: Any) -> Any:
    """Subscribe, also while the broker still recovers the ledgers of the one that was killed."""
    pulsar = load("pulsar")
    deadline = time.monotonic() + 120
    while True:
        try:
            earliest = pulsar.InitialPosition.Earliest
            return client.subscribe("kept", "tally", initial_position=earliest)
        except pulsar.PulsarException:
            if time.monotonic() > deadline:
                raise


def get(running: Running, path: str, login: str = "", method: str = "GET") -> Any:
    root = f"http://{running.admin.partition('@')[2] or running.admin.partition('//')[2]}"
    request = urllib.request.Request(root + path, method=method)
    if login:
        request.add_header("Authorization", f"Basic {base64.b64encode(login.encode()).decode()}")
    if method == "PUT":
        request.data = b"{}"
        request.add_header("Content-Type", "application/json")
    return urllib.request.urlopen(request, timeout=30)


def postgresql_write(running: Running) -> None:
    with load("psycopg").connect(running.url) as connection:
        connection.execute("CREATE TABLE kept (body bytea)")
        connection.execute("INSERT INTO kept VALUES (%s)", [BODY])


def postgresql_read(running: Running) -> bytes:
    with load("psycopg").connect(running.url) as connection:
        body: bytes = connection.execute("SELECT body FROM kept").fetchone()[0]
    return body


CLIENTS: Final[dict[str, Client]] = {
    "redis": (redis_write, redis_read),
    "rabbitmq": (rabbitmq_write, rabbitmq_read),
    "kafka": (kafka_write, kafka_read),
    "pulsar": (pulsar_write, pulsar_read),
    "sqs": (sqs_write, sqs_read),
    "artemis": (amqp_write, amqp_read),
    "qpid": (qpid_write, amqp_read),
    "postgresql": (postgresql_write, postgresql_read),
}


def addresses_listened_on(mark: str) -> set[str]:
    """Read from the kernel on which addresses these processes listen, in its own notation."""
    inodes = set()
    for one in find_marked(mark):
        for entry in Path(f"/proc/{one.pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed since it was listed: it listens no more
                if match := re.fullmatch(r"socket:\[(\d+)\]", str(entry.readlink())):
                    inodes.add(match[1])
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(fields[1].partition(":")[0])
    return found


LOOPBACK: Final = {
    "0100007F",  # 127.0.0.1
    "0000000000000000FFFF00000100007F",  # the same, in an IPv6 socket
    "00000000000000000000000001000000",  # ::1
}


def test_every_broker_that_is_fetched_is_tested_here() -> None:
    assert set(CLIENTS) == set(servers.NAMES) - {"servicebus"}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_broker_answers_on_loopback_only_and_keeps_messages_over_a_kill(
    name: str, tmp_path: Path
) -> None:
    write, read = CLIENTS[name]
    with servers.running(name, home=tmp_path) as first:
        mark = str(tmp_path / name)
        assert first.version == servers.find_server(name).version
        write(first)
        assert addresses_listened_on(mark) <= LOOPBACK
        assert addresses_listened_on(mark)

        os.kill(first.pid, signal.SIGKILL)
        while is_alive(first.identity):
            pass
        assert servers.status(name, home=tmp_path).state == "dead"

        second = servers.up(name, home=tmp_path)
        assert second.pid != first.pid
        assert second.ports == first.ports
        assert read(second) == BODY
    assert find_marked(mark) == []
    assert all(map(is_free, second.ports.values()))
    assert list(tmp_path.iterdir()) == []

"""Kafka 4.3.1: one node that is broker and controller (KRaft), with small settings.

The short session timeout halves the recovery after a crash (brokers sheet, 5.1). Records are never
deleted by age: the time stamp of a record is the creation time of its message, so an old message
could be deleted before it is read.
"""

from __future__ import annotations

from typing import Final

from tallystick.brokers.servers.recipe import Jars, Probe, Server

__all__ = ["SERVER"]

_CONFIGURATION: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@$host:$port_controller
listeners=PLAINTEXT://$host:$port_kafka,CONTROLLER://$host:$port_controller
advertised.listeners=PLAINTEXT://$host:$port_kafka
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs=$data/logs
num.partitions=1
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
log.retention.ms=-1
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=8388608
"""

_CLUSTER: Final = "dGFsbHlzdGljay1rYWZrYQ"
"""The id of the cluster, 16 bytes in base64; a private cluster can use a fixed id."""

_JVM: Final = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-cp", "$install/*",
)  # fmt: skip

_API_VERSIONS: Final = b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x2a\xff\xff"
"""ApiVersions, version 0, correlation id 42, no client id."""

SERVER: Final = Server(
    name="kafka",
    title="Apache Kafka",
    version="4.3.1",
    fetch=Jars(
        (
            "org.apache.kafka:kafka_2.13:4.3.1",
            "org.apache.kafka:kafka-tools:4.3.1",
            "org.slf4j:slf4j-simple:1.7.36",
        )
    ),
    ports=("kafka", "controller"),
    urls={"kafka": "kafka://$host:$port_kafka"},
    files={"server.properties": _CONFIGURATION},
    once=("$java", "-Xmx128m", *_JVM, "kafka.tools.StorageTool", "format",
          "-t", _CLUSTER, "-c", "$data/server.properties"),
    once_makes="logs/meta.properties",
    command=("$java", "-Xms128m", "-Xmx512m", *_JVM, "kafka.Kafka", "$data/server.properties"),
    probe=Probe("kafka", _API_VERSIONS, b"\x00\x00\x00\x2a\x00\x00", at=4),
    memory=190,
    shared_classes=True,
)  # fmt: skip

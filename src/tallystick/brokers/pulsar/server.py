"""Pulsar 4.0.8 standalone: broker, bookie and metadata in one small JVM (brokers sheet, 7).

`listeningInterface=lo` keeps the bookie off the network. The journal is not synced to disk:
confirmed messages survive a crash of the process, but not a power loss. Acknowledgements are
written 20 times a second instead of every ten seconds, so a crash redelivers fewer messages.
"""

from __future__ import annotations

from typing import Final

from tallystick.brokers.servers.recipe import Archive, Server, probe_http

__all__ = ["SERVER"]

_SETTINGS: Final = {
    "brokerServicePort": "$port_pulsar",
    "webServicePort": "$port_http",
    "bindAddress": "$host",
    "advertisedAddress": "$host",
    "listeningInterface": "lo",
    "allowLoopback": "true",
    "numIOThreads": "2",
    "numOrderedExecutorThreads": "2",
    "numHttpServerThreads": "8",
    "numExecutorThreadPoolSize": "2",
    "numCacheExecutorThreadPoolSize": "2",
    "bookkeeperClientNumWorkerThreads": "2",
    "bookkeeperClientNumIoThreads": "2",
    "bookkeeperNumberOfChannelsPerBookie": "2",
    "managedLedgerCacheSizeMB": "16",
    "dbStorage_writeCacheMaxSizeMb": "16",
    "dbStorage_readAheadCacheMaxSizeMb": "8",
    "dbStorage_rocksDB_blockCacheSize": "8388608",
    "webSocketServiceEnabled": "false",
    "delayedDeliveryTickTimeMillis": "100",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "managedLedgerDefaultMarkDeleteRateLimit": "20",
    "journalMaxSizeMB": "32",
    "journalPreAllocSizeMB": "4",
    "journalSyncData": "false",
    "diskUsageThreshold": "0.99",
    "diskUsageWarnThreshold": "0.98",
}

_LOGGING: Final = """\
Configuration:
  status: error
  Appenders:
    Console:
      name: console
      target: SYSTEM_OUT
      PatternLayout: {pattern: "%d %-5p %c{1} %m%n"}
  Loggers:
    Root:
      level: warn
      AppenderRef: [{ref: console}]
"""

_OPENED: Final = (
    "java.base/java.io", "java.base/java.nio", "java.base/java.util.zip",
    "java.base/jdk.internal.misc", "java.base/jdk.internal.platform",
    "java.management/sun.management", "jdk.management/com.sun.management.internal",
)  # fmt: skip

SERVER: Final = Server(
    name="pulsar",
    title="Apache Pulsar",
    version="4.0.8",
    fetch=Archive(
        "org.apache.pulsar:pulsar-server-distribution:4.0.8:tar.gz:bin", "apache-pulsar-4.0.8"
    ),
    ports=("pulsar", "http"),
    urls={"pulsar": "pulsar://$host:$port_pulsar"},
    admin="http://$host:$port_http",
    files={"log4j2.yaml": _LOGGING},
    properties={"standalone.conf": ("$install/conf/standalone.conf", _SETTINGS)},
    command=(
        "$java", "-Xms128m", "-Xmx320m", "-XX:MaxDirectMemorySize=256m",
        "-XX:MaxMetaspaceSize=192m", "-Djava.net.preferIPv4Stack=true",
        "-Dio.netty.tryReflectionSetAccessible=true", "-Dpulsar.allocator.exit_on_oom=true",
        "-Dio.netty.allocator.numDirectArenas=1", "-Dio.netty.allocator.numHeapArenas=1",
        "-Dlog4j2.is.webapp=false", "-Dlog4j.configurationFile=$data/log4j2.yaml",
        "-Dpulsar.config.file=$data/standalone.conf",
        *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED),
        "-cp", "$install/lib/*", "org.apache.pulsar.PulsarStandaloneStarter",
        "--config", "$data/standalone.conf", "-nfw", "-nss", "-a", "$host",
        "--bookkeeper-dir", "$data/bookkeeper", "--metadata-dir", "$data/metadata",
        "--num-bookies", "1",
    ),
    probe=probe_http("http", "/admin/v2/brokers/health"),
    memory=290,
    shared_classes=True,
)  # fmt: skip

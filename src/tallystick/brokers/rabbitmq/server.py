"""RabbitMQ 3.10.8 on Erlang 25 from Debian's packages (brokers sheet, 4).

Its start script is told that a supervisor watches it, so the started process is the Erlang machine
itself, which stops cleanly on SIGTERM. Every port is private, also that of epmd. Declared queues
are synced to disk every second; by default a kill soon after a declaration may lose the queue.
"""

from __future__ import annotations

from typing import Final

from tallystick.brokers.servers.recipe import Debian, Probe, Server

__all__ = ["SERVER"]

_VERSION: Final = "3.10.8"
_ERLANG: Final = "$install/usr/lib/erlang"
_RABBIT: Final = f"$install/usr/lib/rabbitmq/lib/rabbitmq_server-{_VERSION}"

_CONFIGURATION: Final = """\
listeners.tcp.1 = $host:$port_amqp
management.tcp.ip = $host
management.tcp.port = $port_management
loopback_users.guest = true
log.console = true
log.console.level = warning
log.file = false
"""

_ROOT: Final = ("ROOTDIR=/usr/lib/erlang", 'ROOTDIR="$ERL_ROOTDIR"')

SERVER: Final = Server(
    name="rabbitmq",
    title="RabbitMQ",
    version=_VERSION,
    fetch=Debian(
        patches=(
            ("usr/lib/erlang/bin/erl", *_ROOT),
            ("usr/lib/erlang/erts-*/bin/erl", *_ROOT),
        )
    ),
    ports=("amqp", "management", "distribution", "epmd"),
    urls={"amqp": "amqp://guest:guest@$host:$port_amqp/%2F"},
    admin="http://guest:guest@$host:$port_management",
    files={
        "rabbitmq.conf": _CONFIGURATION,
        "enabled_plugins": "[rabbitmq_management,rabbitmq_amqp1_0].\n",
    },
    folders=("home", "mnesia", "logs"),
    command=(f"{_RABBIT}/sbin/rabbitmq-server",),
    environment={
        "HOME": "$data/home",
        "PATH": f"{_ERLANG}/bin:{_RABBIT}/sbin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "LD_LIBRARY_PATH": "$install/usr/lib/x86_64-linux-gnu",
        "ERL_ROOTDIR": _ERLANG,
        "ERL_EPMD_PORT": "$port_epmd",
        "ERL_EPMD_ADDRESS": "$host",
        "ERL_CRASH_DUMP": "$data/erl_crash.dump",
        "RUNNING_UNDER_SYSTEMD": "true",
        "RABBITMQ_NODENAME": "tally@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "$host",
        "RABBITMQ_NODE_PORT": "$port_amqp",
        "RABBITMQ_DIST_PORT": "$port_distribution",
        "RABBITMQ_BASE": "$data",
        "RABBITMQ_MNESIA_BASE": "$data/mnesia",
        "RABBITMQ_LOG_BASE": "$data/logs",
        "RABBITMQ_CONFIG_FILE": "$data/rabbitmq.conf",
        "RABBITMQ_ADVANCED_CONFIG_FILE": "$data/advanced.config",
        "RABBITMQ_CONF_ENV_FILE": "$data/none.conf",
        "RABBITMQ_ENABLED_PLUGINS_FILE": "$data/enabled_plugins",
        "RABBITMQ_PLUGINS_DIR": f"{_RABBIT}/plugins",
        "RABBITMQ_PID_FILE": "$data/pid",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": (
            "-kernel inet_dist_use_interface {127,0,0,1} -mnesia dump_log_time_threshold 1000"
        ),
    },
    probe=Probe("amqp", b"AMQP\x00\x00\x09\x01", b"\x01\x00\x00"),
    memory=150,
)

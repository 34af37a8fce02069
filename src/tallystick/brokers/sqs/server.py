"""ElasticMQ 1.7.1, a server for the Amazon SQS API; a message is on disk before it is confirmed.

Without WRITE_DELAY=0 confirmed messages are lost on kill -9 (brokers sheet, 6.1). It answers about
half a second before it has loaded its queues and messages from disk; only its log shows when they
are loaded.
"""

from __future__ import annotations

from typing import Final

from tallystick.brokers.servers.recipe import Jars, Server, probe_http

__all__ = ["SERVER"]

_CONFIGURATION: Final = """\
include classpath("application.conf")
rest-sqs { enabled = true, bind-port = $port_http, bind-hostname = "$host", sqs-limits = strict }
rest-stats { enabled = false, bind-port = $port_http, bind-hostname = "$host" }
node-address { protocol = http, host = "$host", port = $port_http, context-path = "" }
aws { region = us-east-1, accountId = 000000000000 }
generate-node-address = false
messages-storage {
  enabled = true, driver-class = "org.h2.Driver", username = "sa", password = ""
  uri = "jdbc:h2:$data/h2;WRITE_DELAY=0"
}
queues-storage { enabled = true, path = "$data/queues.conf" }
"""

SERVER: Final = Server(
    name="sqs",
    title="ElasticMQ (Amazon SQS)",
    version="1.7.1",
    fetch=Jars(("org.elasticmq:elasticmq-server_2.13:1.7.1",)),
    ports=("http",),
    urls={
        "sqs": "sqs://us-east-1?endpoint=http://$host:$port_http",
        "http": "http://$host:$port_http",
    },
    files={"elasticmq.conf": _CONFIGURATION},
    command=(
        "$java", "-Xms64m", "-Xmx256m",
        "-Dconfig.file=$data/elasticmq.conf", "-cp", "$install/*", "org.elasticmq.server.Main",
    ),
    probe=probe_http("http", "/?Action=ListQueues"),
    says="=== ElasticMQ server (1.7.1) started",
    settles=("h2.mv.db", 1.0),
    memory=170,
    shared_classes=True,
)  # fmt: skip

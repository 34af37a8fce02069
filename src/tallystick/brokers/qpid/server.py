"""Qpid Broker-J 10.1.0: AMQP 0-8 to 0-10 and 1.0 on one port (brokers sheet, 9).

The message store is BDB, so durable messages survive a restart. The configuration of the broker is
in memory; it is read from the file below at every start.
"""

from __future__ import annotations

from typing import Final

from tallystick.brokers.servers.recipe import Archive, Probe, Server

__all__ = ["SERVER"]

_CONFIGURATION: Final = r"""{
 "name": "tally", "modelVersion": "9.1",
 "authenticationproviders": [
  {"name": "plain", "type": "Plain", "secureOnlyMechanisms": [],
   "users": [{"name": "guest", "type": "managed", "password": "guest"}]}],
 "brokerloggers": [
  {"name": "console", "type": "Console", "brokerloginclusionrules": [
   {"name": "root", "type": "NameAndLevel", "level": "WARN", "loggerName": "ROOT"},
   {"name": "operations", "type": "NameAndLevel", "level": "INFO",
    "loggerName": "qpid.message.broker.*"}]}],
 "ports": [
  {"name": "AMQP", "type": "AMQP", "port": "$port_amqp", "bindingAddress": "$host",
   "authenticationProvider": "plain",
   "protocols": ["AMQP_0_8", "AMQP_0_9", "AMQP_0_9_1", "AMQP_0_10", "AMQP_1_0"],
   "virtualhostaliases": [
    {"name": "nameAlias", "type": "nameAlias"},
    {"name": "defaultAlias", "type": "defaultAlias"},
    {"name": "hostnameAlias", "type": "hostnameAlias"}]},
  {"name": "HTTP", "type": "HTTP", "port": "$port_management", "bindingAddress": "$host",
   "authenticationProvider": "plain", "protocols": ["HTTP"]}],
 "virtualhostnodes": [
  {"name": "default", "type": "BDB", "defaultVirtualHostNode": "true",
   "virtualHostInitialConfiguration": "{\"type\":\"BDB\"}"}],
 "plugins": [
  {"type": "MANAGEMENT-HTTP", "name": "management", "httpBasicAuthenticationEnabled": true}]
}
"""

SERVER: Final = Server(
    name="qpid",
    title="Apache Qpid Broker-J",
    version="10.1.0",
    fetch=Archive("org.apache.qpid:apache-qpid-broker-j:10.1.0:tar.gz:bin", "qpid-broker/10.1.0"),
    ports=("amqp", "management"),
    urls={"amqp": "amqp://guest:guest@$host:$port_amqp/default"},
    admin="http://guest:guest@$host:$port_management",
    files={"config.json": _CONFIGURATION},
    command=(
        "$java", "-Xms64m", "-Xmx192m", "-XX:MaxDirectMemorySize=192m",
        "-DQPID_HOME=$install", "-DQPID_WORK=$data", "-cp", "$install/lib/*",
        "org.apache.qpid.server.Main", "-st", "Memory", "-icp", "$data/config.json",
        "-prop", "qpid.work_dir=$data",
    ),
    probe=Probe("amqp", b"AMQP\x00\x00\x09\x01", b"\x01\x00\x00"),
    says="BRK-1004",
    memory=150,
)  # fmt: skip

"""ActiveMQ Artemis 2.56.0: AMQP 1.0, Core and STOMP, one port each (brokers sheet, 8).

The instance files are written here instead of by `artemis create`, which takes five seconds.
Anonymous login is allowed, and `admin` with the password `admin`. After ten deliveries (the default
of Artemis) a message goes to `DLQ`.
"""

from __future__ import annotations

from typing import Final

from tallystick.brokers.servers.recipe import Archive, Probe, Server

__all__ = ["SERVER"]

_BOOTSTRAP: Final = """\
<broker xmlns="http://activemq.apache.org/schema">
  <jaas-security domain="activemq"/>
  <server configuration="file:$data/etc/broker.xml"/>
</broker>
"""

_LOGIN: Final = """\
activemq {
  org.apache.activemq.artemis.spi.core.security.jaas.PropertiesLoginModule sufficient
    reload=true
    org.apache.activemq.jaas.properties.user="users.properties"
    org.apache.activemq.jaas.properties.role="roles.properties";
  org.apache.activemq.artemis.spi.core.security.jaas.GuestLoginModule sufficient
    credentialsInvalidate=true
    org.apache.activemq.jaas.guest.user="admin"
    org.apache.activemq.jaas.guest.role="amq";
};
"""

_LOGGING: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %-5p %c{1} %m%n
"""

_ACTIONS: Final = (
    "createNonDurableQueue", "deleteNonDurableQueue", "createDurableQueue", "deleteDurableQueue",
    "createAddress", "deleteAddress", "consume", "browse", "send", "manage",
)  # fmt: skip

_PERMISSIONS: Final = "\n".join(
    f'        <permission type="{action}" roles="amq"/>' for action in _ACTIONS
)

_BROKER: Final = f"""\
<configuration xmlns="urn:activemq">
  <core xmlns="urn:activemq:core">
    <name>tally</name>
    <persistence-enabled>true</persistence-enabled>
    <journal-type>NIO</journal-type>
    <paging-directory>$data/paging</paging-directory>
    <bindings-directory>$data/bindings</bindings-directory>
    <journal-directory>$data/journal</journal-directory>
    <large-messages-directory>$data/large</large-messages-directory>
    <journal-min-files>2</journal-min-files>
    <journal-pool-files>10</journal-pool-files>
    <journal-file-size>4M</journal-file-size>
    <journal-buffer-timeout>200000</journal-buffer-timeout>
    <max-disk-usage>99</max-disk-usage>
    <acceptors>
      <acceptor name="amqp">tcp://$host:$port_amqp?protocols=AMQP</acceptor>
      <acceptor name="core">tcp://$host:$port_core?protocols=CORE</acceptor>
      <acceptor name="stomp">tcp://$host:$port_stomp?protocols=STOMP</acceptor>
    </acceptors>
    <security-settings>
      <security-setting match="#">
{_PERMISSIONS}
      </security-setting>
    </security-settings>
    <address-settings>
      <address-setting match="#">
        <dead-letter-address>DLQ</dead-letter-address>
        <expiry-address>ExpiryQueue</expiry-address>
        <redelivery-delay>0</redelivery-delay>
        <max-delivery-attempts>10</max-delivery-attempts>
        <default-address-routing-type>ANYCAST</default-address-routing-type>
        <default-queue-routing-type>ANYCAST</default-queue-routing-type>
        <auto-create-queues>true</auto-create-queues>
        <auto-create-addresses>true</auto-create-addresses>
        <auto-delete-queues>false</auto-delete-queues>
        <auto-delete-addresses>false</auto-delete-addresses>
      </address-setting>
    </address-settings>
    <addresses>
      <address name="DLQ"><anycast><queue name="DLQ"/></anycast></address>
      <address name="ExpiryQueue"><anycast><queue name="ExpiryQueue"/></anycast></address>
    </addresses>
  </core>
</configuration>
"""

SERVER: Final = Server(
    name="artemis",
    title="ActiveMQ Artemis",
    version="2.56.0",
    fetch=Archive("org.apache.artemis:apache-artemis:2.56.0:tar.gz:bin", "apache-artemis-2.56.0"),
    ports=("amqp", "core", "stomp"),
    urls={
        "artemis": "artemis://$host:$port_amqp",
        "amqp": "amqp://admin:admin@$host:$port_amqp",
        "core": "tcp://$host:$port_core",
        "stomp": "stomp://$host:$port_stomp",
    },
    files={
        "etc/bootstrap.xml": _BOOTSTRAP,
        "etc/broker.xml": _BROKER,
        "etc/management.xml": '<management-context xmlns="http://activemq.apache.org/schema"/>',
        "etc/log4j2.properties": _LOGGING,
        "etc/login.config": _LOGIN,
        "etc/users.properties": "admin = admin\n",
        "etc/roles.properties": "amq = admin\n",
    },
    folders=("journal",),
    command=(
        "$java", "-Xms64M", "-Xmx256M", "-Djava.security.auth.login.config=$data/etc/login.config",
        "-Dartemis.home=$install", "-Dartemis.instance=$data",
        "-Dlog4j2.configurationFile=$data/etc/log4j2.properties",
        "-Dartemis.instance.etc=$data/etc", "-cp", "$install/lib/artemis-boot.jar",
        "org.apache.activemq.artemis.boot.Artemis", "run",
    ),
    probe=Probe("amqp", b"AMQP\x03\x01\x00\x00", b"AMQP\x03\x01\x00\x00"),
    memory=130,
)  # fmt: skip

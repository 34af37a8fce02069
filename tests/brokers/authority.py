"""A certificate authority for one test run, and servers that speak TLS and ask for a login with it.

The recipes are those of the table with a few lines more; what they add is written here, so that
nobody starts a broker with these certificates by accident.
"""

from __future__ import annotations

import base64
import hmac
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

from tallystick.brokers.servers import find_server
from tallystick.brokers.servers.recipe import Server, probe_http

__all__ = ["PASSWORD", "TOKEN", "Authority", "make_authority", "secured", "write_token"]

PASSWORD = "s3same-0pen/+="
"""Planted: it may be in no log line, no repr and no traceback. It has to be escaped in a URL."""


_SIGNING = b"the tests' own key, thirty-two bytes and more"


def write_token(key: bytes) -> str:
    """Write a JSON web token for `tally`, signed with a key (RFC 7519, HS256)."""
    parts = ({"alg": "HS256"}, {"sub": "tally"})
    head = ".".join(_url64(json.dumps(part).encode()) for part in parts)
    return f"{head}.{_url64(hmac.digest(key, head.encode(), 'sha256'))}"


def _url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


TOKEN = write_token(_SIGNING)
"""Pulsar's login, planted as well."""


@dataclass(frozen=True)
class Authority:
    """Files: who is to be trusted, and a server's certificate and key, also as one PKCS #12."""

    ca: Path
    certificate: Path
    key: Path
    store: Path


def make_authority(folder: Path) -> Authority:
    """Make an authority and a certificate for this machine."""
    folder.mkdir(parents=True, exist_ok=True)
    root, leaf = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    issuer = _name("Tallystick test authority")
    ca = _certificate(issuer, issuer, root.public_key(), root, authority=True)
    mine = _certificate(_name("localhost"), issuer, leaf.public_key(), root, authority=False)
    made = Authority(*(folder / name for name in ("ca.pem", "server.pem", "key.pem", "all.p12")))
    made.ca.write_bytes(ca.public_bytes(Encoding.PEM))
    made.certificate.write_bytes(mine.public_bytes(Encoding.PEM) + ca.public_bytes(Encoding.PEM))
    made.key.write_bytes(leaf.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    made.store.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"server", leaf, mine, [ca], BestAvailableEncryption(b"changeit")
        )
    )
    return made


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public: rsa.RSAPublicKey,
    signer: rsa.RSAPrivateKey,
    *,
    authority: bool,
) -> x509.Certificate:
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
            critical=False,
        )
    )
    if authority:
        usage = x509.KeyUsage(
            digital_signature=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, key_cert_sign=True, crl_sign=True,
            encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = builder.add_extension(usage, critical=True)
    else:
        names = [x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(signer, SHA256())


def secured(name: str, own: Authority) -> Server:
    """Give the recipe of a broker that also listens with TLS, where `tally` may log in."""
    server = find_server(name)
    return {
        "redis": _redis, "rabbitmq": _rabbitmq, "kafka": _kafka, "pulsar": _pulsar,
        "artemis": _artemis,
    }[name](server, own)  # fmt: skip


def _redis(server: Server, own: Authority) -> Server:
    more = f"""\
tls-port $port_tls
tls-cert-file {own.certificate}
tls-key-file {own.key}
tls-ca-cert-file {own.ca}
tls-auth-clients no
user tally on >{PASSWORD} ~* &* +@all
"""
    files = {"redis.conf": server.files["redis.conf"] + more}
    return replace(
        server, ports=("tls", *server.ports), files=files, urls={"tls": "rediss://$host:$port_tls"}
    )


def _rabbitmq(server: Server, own: Authority) -> Server:
    more = f"""\
listeners.ssl.1 = $host:$port_tls
ssl_options.cacertfile = {own.ca}
ssl_options.certfile = {own.certificate}
ssl_options.keyfile = {own.key}
ssl_options.verify = verify_none
ssl_options.fail_if_no_peer_cert = false
default_user = tally
default_pass = {PASSWORD}
"""
    files = {**server.files, "rabbitmq.conf": server.files["rabbitmq.conf"] + more}
    return replace(
        server,
        ports=("tls", *server.ports),
        files=files,
        urls={"tls": "amqps://$host:$port_tls"},
        admin="",
    )


def _kafka(server: Server, own: Authority) -> Server:
    text = server.files["server.properties"]
    for old, new in (
        ("listeners=PLAINTEXT://$host:$port_kafka,",
         "listeners=PLAINTEXT://$host:$port_kafka,SECURE://$host:$port_tls,"),
        ("advertised.listeners=PLAINTEXT://$host:$port_kafka",
         "advertised.listeners=PLAINTEXT://$host:$port_kafka,SECURE://$host:$port_tls"),
        ("CONTROLLER:PLAINTEXT", "CONTROLLER:PLAINTEXT,SECURE:SASL_SSL"),
    ):  # fmt: skip
        text = text.replace(old, new, 1)
    chain = own.certificate.read_text().replace("\n", "\\n")
    key = own.key.read_text().replace("\n", "\\n")
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    text += f"""\
ssl.keystore.type=PEM
ssl.keystore.certificate.chain={chain}
ssl.keystore.key={key}
sasl.enabled.mechanisms=PLAIN
listener.name.secure.plain.sasl.jaas.config={module} required user_tally="{PASSWORD}";
"""
    return replace(
        server,
        ports=("tls", *server.ports),
        files={"server.properties": text},
        urls={"tls": "kafka+ssl://$host:$port_tls"},
    )


_PULSAR = "org.apache.pulsar"


def _pulsar(server: Server, own: Authority) -> Server:
    source, settings = server.properties["standalone.conf"]
    secret = base64.b64encode(_SIGNING).decode()
    tls = {
        **settings,
        "authenticationEnabled": "true",
        "authenticationProviders": f"{_PULSAR}.broker.authentication.AuthenticationProviderToken",
        "tokenSecretKey": f"data:;base64,{secret}",
        "brokerClientAuthenticationPlugin": f"{_PULSAR}.client.impl.auth.AuthenticationToken",
        "brokerClientAuthenticationParameters": f"token:{TOKEN}",
        "statusFilePath": str(own.ca),
        "brokerServicePortTls": "$port_tls",
        "tlsCertificateFilePath": str(own.certificate),
        "tlsKeyFilePath": str(own.key),
        "tlsTrustCertsFilePath": str(own.ca),
    }
    return replace(
        server,
        ports=("tls", *server.ports),
        properties={"standalone.conf": (source, tls)},
        urls={"tls": "pulsar+ssl://$host:$port_tls"},
        probe=probe_http("http", "/status.html"),
    )


def _artemis(server: Server, own: Authority) -> Server:
    acceptor = (
        '      <acceptor name="tls">tcp://$host:$port_tls?protocols=AMQP;sslEnabled=true;'
        f"keyStorePath={own.store};keyStoreType=PKCS12;keyStorePassword=changeit</acceptor>\n"
    )
    broker = server.files["etc/broker.xml"].replace(
        "    </acceptors>", acceptor + "    </acceptors>"
    )
    files = {
        **server.files,
        "etc/broker.xml": broker,
        "etc/users.properties": f"tally = {PASSWORD}\n",
        "etc/roles.properties": "amq = tally\n",
    }
    return replace(
        server,
        ports=("tls", *server.ports),
        files=files,
        urls={"tls": "artemis+ssl://$host:$port_tls"},
    )

"""TLS options of broker URLs, the same on every transport with TLS.

    ca=FILE     trust only the certificates in this PEM file (default: those of the system)
    verify=0    accept any certificate (default: check the chain and the host name)

They are refused in a URL that does not use TLS, because they would have no effect.
"""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass
from typing import Final

from tallystick.core.errors import UsageError
from tallystick.core.transport import Address, is_on

__all__ = ["TLS_OPTIONS", "Tls", "find_fault", "read_tls", "system_ca"]

TLS_OPTIONS: Final = ("ca", "verify")


@dataclass(frozen=True, slots=True)
class Tls:
    """The file of trusted authorities (empty: those of the system), and whether to verify."""

    ca: str
    verify: bool

    def context(self) -> ssl.SSLContext:
        """Give the context for clients that take one."""
        context = ssl.create_default_context(cafile=self.ca or None)
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


def read_tls(address: Address, *, secure: bool, instead: str) -> Tls | None:
    """Read the options; None without TLS. `instead` says how to ask for it."""
    given = [name for name in TLS_OPTIONS if name in address.options]
    if not secure:
        if given:
            raise UsageError(
                f"{given[0]} is a TLS option, but this {address.broker} URL does not use TLS",
                code="url_option",
                hint=f"use TLS with {instead}",
            )
        return None
    tls = Tls(address.options.get("ca", ""), is_on(address, "verify", default=True))
    try:
        tls.context()
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror if isinstance(error, FileNotFoundError) else "no PEM certificate"
        raise UsageError(
            f"cannot use the ca file {tls.ca!r}: {reason}",
            code="url_option",
            hint="ca must name a file with trusted PEM certificates",
        ) from error
    return tls


def find_fault(tls: Tls | None, host: str, port: int, timeout: float) -> str:
    """Repeat the TLS handshake and describe its error, for clients that give no reason."""
    if tls is None:
        return ""
    try:
        with (
            socket.create_connection((host, port), timeout=timeout) as plain,
            tls.context().wrap_socket(plain, server_hostname=host),
        ):
            return ""
    except ssl.SSLError as error:
        return str(error)
    except OSError:
        return ""  # that it cannot be reached is what the client has said


def system_ca() -> str:
    """Return the file of the system's authorities, for clients that do not find it."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile or paths.capath or paths.openssl_cafile

"""TLS in the URL of a broker, in the same two options on every transport that has it.

    ca=FILE     trust the certificates in this PEM file, and no others; without it, the system's
    verify=0    take any certificate; without it, the chain and the host name are checked

They stand in URLs that ask for TLS and in no others: a switch that does nothing would be a trap.
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
    """Whom to trust: a file of authorities (empty: the system's own), and whether to check."""

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
                f"{given[0]} is about TLS, and this {address.broker} URL does not ask for it",
                code="url_option",
                hint=f"ask for TLS with {instead}",
            )
        return None
    tls = Tls(address.options.get("ca", ""), is_on(address, "verify", default=True))
    try:
        tls.context()
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror if isinstance(error, FileNotFoundError) else "no PEM certificate"
        raise UsageError(
            f"the ca file {tls.ca!r} cannot be used: {reason}",
            code="url_option",
            hint="ca is a file of PEM certificates to trust",
        ) from error
    return tls


def find_fault(tls: Tls | None, host: str, port: int, timeout: float) -> str:
    """Shake hands once more and say what is wrong, for clients that only say that something is."""
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
    """Give where the system keeps its authorities, for clients that do not look by themselves."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile or paths.capath or paths.openssl_cafile

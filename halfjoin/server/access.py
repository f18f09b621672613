"""Who may connect: addresses, passwords, certificates. Only loopback goes without a password."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from halfjoin.errors import HalfjoinError
from halfjoin.server.scram import Verifier, of_nobody, verifier

_log = logging.getLogger("halfjoin.server")
USER = "halfjoin"  # whose password the setting `password` is
_PRIVATE = 0o077  # permissions of other users


@dataclass(frozen=True)
class Access:
    """`users`: the verifiers of passwords by user; None: nobody needs one. `tls`: None for plain connections only."""

    users: Mapping[str, Verifier] | None = None
    tls: ssl.SSLContext | None = None
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def verifier(self, user: str) -> Verifier:
        """The verifier of a user; for an unknown one, one that no password meets."""
        assert self.users is not None
        return self.users.get(user) or of_nobody(user, self.secret)


def access(
    host: str, password_file: Path | None, cert: Path | None, key: Path | None, password: str | None = None
) -> Access:
    """What the options of `halfjoin serve` say. `password` is that of the user halfjoin.

    Raises:
        HalfjoinError: a file cannot be read; there are two places for passwords; or the host is not loopback, and
            there is no password.
    """
    if password is not None and password_file is not None:
        raise HalfjoinError("there are a password and a password file", remedy="set one of them")
    users = None if password_file is None else read_passwords(password_file)
    users = users if password is None else {USER: verifier(password)}
    if users is None and not is_loopback(host):
        raise HalfjoinError(f"{host} can be reached from other machines, and there is no password",
                            remedy="give --password-file, or set HALFJOIN_PASSWORD, or listen on 127.0.0.1")
    if (cert is None) != (key is None):
        raise HalfjoinError("TLS needs a certificate and its key", remedy="give --tls-cert and --tls-key")
    if cert is None or key is None:
        if not is_loopback(host):
            _log.warning("connections are not encrypted: give --tls-cert and --tls-key")
        return Access(users)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
    except OSError as problem:  # of which the errors of TLS are a kind
        raise HalfjoinError(f"{cert} and {key} cannot be used for TLS: {problem}") from None
    return Access(users, context)


def read_passwords(file: Path) -> dict[str, Verifier]:
    """The users of a file: lines `name:password`, the password as it is or as PostgreSQL's SCRAM verifier. Lines that
    are empty or begin with # say nothing.

    Raises:
        HalfjoinError: the file cannot be read, or a line has no colon.
    """
    try:
        lines = file.read_text("utf-8").splitlines()
        if file.stat().st_mode & _PRIVATE:
            _log.warning("other users of this machine can read %s: chmod 600", file)
    except (OSError, UnicodeDecodeError) as problem:
        raise HalfjoinError(f"{file} cannot be read: {problem}") from None
    found = {}
    for number, line in enumerate(lines, 1):
        name, colon, password = line.partition(":")
        if not line.strip() or line.startswith("#"):
            continue
        if not colon or not name or not password:
            raise HalfjoinError(f"{file}, line {number}: expected name:password")
        found[name] = verifier(password)
    if not found:
        raise HalfjoinError(f"{file} has no user", remedy="write a line: name:password")
    return found


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address or the name of one."""
    try:
        found = {one[4][0] for one in socket.getaddrinfo(host, None)}
    except OSError as problem:
        raise HalfjoinError(f"{host} is not an address of this machine: {problem}") from None
    return all(ipaddress.ip_address(str(one).partition("%")[0]).is_loopback for one in found)

"""SCRAM-SHA-256 (RFC 5802, RFC 7677): a client proves that it knows a password, and neither side sends it.

The server keeps a verifier, from which the password cannot be computed. Its text is PostgreSQL's:
`SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>`.
"""

from __future__ import annotations

import hmac
import re
import secrets
import stringprep
import unicodedata
from base64 import b64decode, b64encode
from dataclasses import dataclass
from hashlib import pbkdf2_hmac, sha256

from halfjoin.errors import UnsupportedSQL

MECHANISM = "SCRAM-SHA-256"
ITERATIONS = 4096
_VERIFIER = re.compile(r"SCRAM-SHA-256\$(\d{1,9}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")
_FORBIDDEN = (stringprep.in_table_c12, stringprep.in_table_c21_c22, stringprep.in_table_c3, stringprep.in_table_c4,
              stringprep.in_table_c5, stringprep.in_table_c6, stringprep.in_table_c7, stringprep.in_table_c8,
              stringprep.in_table_c9, stringprep.in_table_a1)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verifier:
    """What the server keeps of a password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes


def verifier(password: str) -> Verifier:
    """The verifier of a password; or the one that the text of a verifier says."""
    if (written := _VERIFIER.fullmatch(password)) is not None:
        count, *parts = written.groups()
        salt, stored, server = map(b64decode, parts)
        return Verifier(int(count), salt, stored, server)
    salt = secrets.token_bytes(16)
    return _verifier(prepared(password).encode(), salt)


def of_nobody(name: str, secret: bytes) -> Verifier:
    """A verifier that no password meets, always the same for a name: an answer must not tell which names exist."""
    salt = hmac.digest(secret, name.encode(), sha256)[:16]
    return Verifier(ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32))


def _verifier(password: bytes, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    salted = pbkdf2_hmac("sha256", password, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", sha256)
    return Verifier(iterations, salt, sha256(client_key).digest(), hmac.digest(salted, b"Server Key", sha256))


def meets(password: str, kept: Verifier) -> bool:
    """Whether a password is the one of a verifier, for protocols that send it."""
    found = _verifier(prepared(password).encode(), kept.salt, kept.iterations)
    return hmac.compare_digest(found.stored_key, kept.stored_key)


def prepared(password: str) -> str:
    """The password as SASLprep (RFC 4013) has it; as it is, if SASLprep forbids it."""
    mapped = "".join(" " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c))
    normal = unicodedata.normalize("NFKC", mapped)
    if not normal or any(forbidden(c) for c in normal for forbidden in _FORBIDDEN):
        return password
    right = [c for c in normal if stringprep.in_table_d1(c)]
    mixed = right and (any(map(stringprep.in_table_d2, normal)) or {normal[0], normal[-1]} - {*right})
    return password if mixed else normal


class Exchange:
    """One client's proof, in two steps.

    Raises:
        UnsupportedSQL: the messages are not SCRAM's, or the proof fails.
    """

    def __init__(self, kept: Verifier) -> None:
        self._kept = kept
        self._nonce, self._signed, self._header = "", "", b""

    def first(self, message: bytes) -> bytes:
        """The answer to the client's first message: the whole nonce, the salt, the iterations."""
        found = re.fullmatch(r"([ny]),(?:a=[^,]*)?,(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)", _ascii(message))
        if found is None:
            raise malformed()
        self._header = message[: found.start(2)]
        self._nonce = found[3] + secrets.token_urlsafe(18)
        answer = f"r={self._nonce},s={b64encode(self._kept.salt).decode()},i={self._kept.iterations}"
        self._signed = f"{found[2]},{answer}"
        return answer.encode()

    def last(self, message: bytes) -> bytes:
        """Check the proof; the answer is the server's."""
        found = re.fullmatch(r"(c=([A-Za-z0-9+/=]+),r=([^,]+)(?:,.*)?),p=([A-Za-z0-9+/=]+)", _ascii(message))
        if found is None or found[3] != self._nonce:
            raise malformed()
        try:
            header, proof = b64decode(found[2], validate=True), b64decode(found[4], validate=True)
        except ValueError:
            raise malformed() from None
        if header != self._header or len(proof) != sha256().digest_size:
            raise malformed()
        signed = f"{self._signed},{found[1]}".encode()
        signature = hmac.digest(self._kept.stored_key, signed, sha256)
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        if not hmac.compare_digest(sha256(client_key).digest(), self._kept.stored_key):
            raise refused()
        return b"v=" + b64encode(hmac.digest(self._kept.server_key, signed, sha256))


def refused(user: str = "") -> UnsupportedSQL:
    """The error of a wrong password, and of a user who does not exist."""
    whom = f' for user "{user}"' if user else ""
    return UnsupportedSQL(f"password authentication failed{whom}", code="28P01")


def malformed() -> UnsupportedSQL:
    """The error of a message that is not SCRAM's."""
    return UnsupportedSQL("malformed SCRAM message", code="08P01")


def _ascii(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise malformed() from None

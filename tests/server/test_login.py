"""Passwords, TLS, addresses: who may connect."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from halfjoin.errors import HalfjoinError
from halfjoin.server.access import Access, access, read_passwords
from halfjoin.server.scram import prepared, verifier
from tests.support.serving import Raw, Served, fields, serving

pytest_plugins = ("tests.support.postgres",)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Served]:
    file = tmp_path / "passwords"
    file.write_text("# comment\n\nhalfjoin:pa:ss wörd\nother:x\n")
    file.chmod(0o600)
    with serving(access=Access(read_passwords(file))) as found:
        yield found


def test_the_right_password_connects(guarded: Served) -> None:
    with guarded.psycopg(password="pa:ss wörd") as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.parametrize(("user", "password"), [("halfjoin", "wrong"), ("nobody", "x"), ("other", "pa:ss wörd")])
def test_a_wrong_password_and_an_unknown_user_are_refused_alike(guarded: Served, user: str, password: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    with pytest.raises(psycopg.OperationalError, match=f'password authentication failed for user "{user}"'):
        guarded.psycopg(user=user, password=password)


def test_each_login_gives_the_same_salt_for_an_unknown_user(guarded: Served) -> None:
    def salt() -> bytes:
        raw = Raw(guarded.port, password=True)
        assert raw.receive()[1].startswith(struct.pack(">i", 10))
        raw.send(("p", b"SCRAM-SHA-256\0" + struct.pack(">i", 24) + b"n,,n=,r=abcdefghijklmnop"))
        found = raw.receive()[1].split(b",s=")[1]
        raw.close()
        return found

    assert salt() == salt()


@pytest.mark.parametrize("message", [
    b"", b"PLAIN\0\0\0\0\0", b"SCRAM-SHA-256\0\xff\xff\xff\xff", b"SCRAM-SHA-256\0\0\0\0\x03n,,",
    b"SCRAM-SHA-256\0\0\0\0\x14p=tls-x,,n=,r=abcdef",
])  # fmt: skip
def test_a_bad_proof_closes_the_connection(guarded: Served, message: bytes) -> None:
    raw = Raw(guarded.port, password=True)
    raw.receive()
    raw.send(("p", message))
    assert fields(raw.until("E")[-1][1])["C"] == "08P01"
    assert raw.closed()


def test_nothing_is_answered_before_the_login(guarded: Served) -> None:
    raw = Raw(guarded.port, password=True)
    raw.receive()
    raw.send(("Q", b"SELECT 1\0"))
    assert [letter for letter, _ in raw.until("E")] == ["E"]
    assert raw.closed()


def test_postgresqls_verifiers_are_passwords(postgres: Any, tmp_path: Path) -> None:
    postgres.execute("SET password_encryption = 'scram-sha-256'")
    postgres.execute("DROP ROLE IF EXISTS scrammed")
    postgres.execute("CREATE ROLE scrammed PASSWORD 'I \u2168 secret'")
    (kept,) = postgres.execute("SELECT rolpassword FROM pg_authid WHERE rolname = 'scrammed'").fetchone()
    postgres.execute("DROP ROLE scrammed")
    with serving(access=Access({"halfjoin": verifier(kept)})) as found:
        found.psycopg(password="I \u2168 secret").close()


def test_passwords_are_prepared_as_rfc_4013_has_it() -> None:
    examples = {"I\u00adX": "IX", "user": "user", "USER": "USER", "\u00aa": "a", "\u2168": "IX", "\u0007": "\u0007",
                "\u0627\u0031": "\u0627\u0031", "a\u00a0b": "a b"}  # fmt: skip
    assert {text: prepared(text) for text in examples} == examples


def test_an_address_that_others_reach_needs_a_password(tmp_path: Path) -> None:
    with pytest.raises(HalfjoinError, match="there is no password"):
        access("0.0.0.0", None, None, None)
    file = tmp_path / "passwords"
    for text in ("", "nocolon", "name:", ":x"):
        file.write_text(text)
        with pytest.raises(HalfjoinError):
            read_passwords(file)
    with pytest.raises(HalfjoinError, match="cannot be read"):
        read_passwords(tmp_path / "none")
    with pytest.raises(HalfjoinError, match="certificate and its key"):
        access("127.0.0.1", None, file, None)
    with pytest.raises(HalfjoinError, match="cannot be used for TLS"):
        access("127.0.0.1", None, file, file)
    assert access("localhost", None, None, None).users is None


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[tuple[Served, Path]]:
    trustme = pytest.importorskip("trustme", reason="pip install '.[test-server]'")
    authority = trustme.CA()
    made = authority.issue_cert("localhost", "127.0.0.1")
    cert, key, root = (tmp_path / name for name in ("cert", "key", "root"))
    cert.write_bytes(b"".join(one.bytes() for one in made.cert_chain_pems))
    key.write_bytes(made.private_key_pem.bytes())
    authority.cert_pem.write_to_path(str(root))
    with serving(access=access("127.0.0.1", None, cert, key)) as found:
        yield found, root


def test_tls_encrypts_and_proves_who_the_server_is(encrypted: tuple[Served, Path]) -> None:
    server, root = encrypted
    with server.psycopg(sslmode="verify-full", sslrootcert=str(root), host="localhost") as connection:
        assert connection.execute("SELECT repeat('x', 100000)").fetchone() == ("x" * 100_000,)
        assert connection.pgconn.ssl_in_use
    server.psycopg(sslmode="disable").close()  # on this machine


def test_bytes_before_tls_are_refused(encrypted: tuple[Served, Path]) -> None:
    server, _ = encrypted
    raw = Raw.__new__(Raw)
    raw.socket = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    raw.socket.sendall(struct.pack(">ii", 8, 80877103) + struct.pack(">ii", 20, 3 << 16) + b"user\0x\0\0")
    assert raw.closed()


def test_a_server_without_tls_says_so(guarded: Served) -> None:
    psycopg = pytest.importorskip("psycopg")
    with pytest.raises(psycopg.OperationalError, match="server does not support SSL"):
        guarded.psycopg(password="pa:ss wörd", sslmode="require")

"""Malformed and hostile messages close their connection alone; the server and other connections go on."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from random import Random

import pytest

from halfjoin.server.limits import Limits
from tests.support.serving import Raw, Served, fields, serving

ROUNDS = int(os.environ.get("HALFJOIN_FUZZ_WIRE", "150"))
LETTERS = "PBDECSHQXFdcfp"
TEXTS = (
    b"SELECT 1", b"SELECT $1::int", b"INSERT INTO t VALUES ($1)", b"BEGIN", b"COMMIT", b"ROLLBACK", b"", b"SET x = ",
    b"COPY t FROM STDIN", b"COPY t TO STDOUT (FORMAT binary)", b"COPY t FROM STDIN (FORMAT binary)", b"FETCH ALL c",
    b"SELECT '\xff", b"DECLARE c CURSOR FOR SELECT * FROM t", b"SHOW ALL", b"SELECT * FROM t; SELECT 1/0", b"((((((((",
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    with serving(limits=Limits(startup=5, idle=5, idle_in_transaction=5, statement=5)) as found:
        found.engine.execute("CREATE TABLE t (a integer)")
        yield found


def _works(server: Served) -> bool:
    raw = Raw(server.port)
    found = raw.query("SELECT 42")
    raw.close()
    return found[1][1].endswith(b"42")


@pytest.mark.parametrize("data", [
    b"", b"\0", b"\0\0\0\0", b"\xff" * 100, struct.pack(">i", 5), struct.pack(">ii", 8, 12345),
    struct.pack(">i", 2**31 - 1), struct.pack(">ii", 8, 3 << 16), struct.pack(">ii", 9, 3 << 16) + b"\0",
    struct.pack(">ii", 20, 3 << 16) + b"user\0x\0", struct.pack(">ii", 16, 80877102) + b"\0" * 8,
    b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", struct.pack(">ii", 8, 80877103) * 9,
], ids=range(14))  # fmt: skip
def test_a_bad_beginning_closes_the_connection(server: Served, data: bytes) -> None:


    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(1 << 16):
            pass
    assert _works(server)


@pytest.mark.parametrize(("letter", "body", "length"), [
    ("Z", b"", None), ("\x01", b"", None), ("Q", b"", -1), ("Q", b"", 2**31 - 1), ("Q", b"SELECT 1", None),
    ("Q", b"SELECT 1\0\0", None), ("P", b"\0SELECT 1\0\xff\xff", None), ("B", b"\0\0\0\1\0\1\0\1", None),
    ("B", b"\0\0\0\0\0\1\xff\xff\xff\xfe\0\0", None), ("D", b"X\0", None), ("E", b"\0\0", None), ("C", b"Q\0", None),
    ("F", b"\0\0\0\0", None), ("p", b"x", None),
])  # fmt: skip
def test_a_bad_message_closes_the_connection(server: Served, letter: str, body: bytes, length: int | None) -> None:
    raw, other = Raw(server.port), Raw(server.port)
    raw.socket.sendall(letter.encode("latin-1") + struct.pack(">i", len(body) + 4 if length is None else length) + body)
    if letter in "B":
        raw.send(("S", b""))
    data = b""
    try:
        while b"Z\0\0\0\x05" not in data and (part := raw.socket.recv(1 << 16)):
            data += part
    except ConnectionError:
        pass
    assert b"08P01" in data or b"26000" in data
    assert other.query("SELECT 1")[-1] == ("Z", b"I")


def test_random_messages_close_their_connection_alone(server: Served) -> None:
    random = Random(20)
    witness = Raw(server.port)
    for _ in range(ROUNDS):
        raw = Raw(server.port)
        raw.socket.settimeout(0.05)
        try:
            for _ in range(random.randint(1, 12)):
                raw.socket.sendall(_message(random))
            raw.socket.recv(1 << 16)
        except OSError:
            pass
        raw.close()
        assert witness.query("SELECT 7")[1][1].endswith(b"7")
    assert _works(server)
    server.engine.execute("INSERT INTO t VALUES (1)")


def _message(random: Random) -> bytes:
    letter = random.choice(LETTERS)
    text = random.choice(TEXTS)
    names = (b"", b"p", b"c", b"s", random.randbytes(3))
    kinds = {
        "Q": text + b"\0", "P": random.choice(names) + b"\0" + text + b"\0\0" + random.choice([b"\0", b"\1\0\0\0\x17"]),
        "B": random.choice(names) + b"\0" + random.choice(names) + b"\0" + random.choice(
            [b"\0\0\0\0\0\0", b"\0\1\0\1\0\1\0\0\0\4\0\0\0\1\0\1\0\1", b"\0\0\0\1\xff\xff\xff\xff\0\0"]),
        "D": random.choice([b"S", b"P"]) + random.choice(names) + b"\0",
        "E": random.choice(names) + b"\0" + struct.pack(">i", random.choice([0, 1, -1, 2**31 - 1])),
        "C": random.choice([b"S", b"P"]) + random.choice(names) + b"\0", "f": b"no\0",
        "d": random.choice([b"1\n", b"x\n", b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\1\0\0\0\4\0\0\0\1\xff\xff"]),
    }  # fmt: skip
    body = kinds.get(letter, b"")
    if random.random() < 0.2:
        at = random.randrange(len(body) + 1)
        body = body[:at] + random.randbytes(random.randint(0, 4)) + body[at + random.randint(0, 3) :]
    length = len(body) + 4 + (random.choice([-4, 1, 1000]) if random.random() < 0.05 else 0)
    return letter.encode() + struct.pack(">i", length) + body


def test_a_large_message_is_refused_before_it_is_read() -> None:
    with serving(limits=Limits(message=1000)) as found:
        raw = Raw(found.port)
        raw.socket.sendall(b"Q" + struct.pack(">i", 5000))
        assert fields(raw.until("E")[-1][1])["C"] == "08P01"
        assert raw.closed()


def test_a_copy_takes_so_many_bytes_and_no_more() -> None:
    with serving(limits=Limits(copied=100)) as found:
        found.engine.execute("CREATE TABLE t (a integer)")
        raw = Raw(found.port)
        raw.send(("Q", b"COPY t FROM STDIN\0"), ("d", b"1\n" * 100), ("c", b""))
        assert fields(dict(raw.until("Z"))["E"])["C"] == "54000"
        assert raw.query("SELECT count(*) FROM t")[1][1].endswith(b"0")


def test_a_client_that_says_nothing_is_closed() -> None:


    with serving(limits=Limits(startup=0.2)) as found, socket.create_connection(("127.0.0.1", found.port), 60) as quiet:
        while quiet.recv(1000):
            pass

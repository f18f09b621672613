"""Messages are the same however their bytes come: a byte at a time, or many messages at once."""

from __future__ import annotations

import asyncio
import struct

from halfjoin.server.limits import Limits
from halfjoin.server.wire import Message, Wire
from tests.support.serving import Raw, serving


def _bytes(letter: str, body: bytes) -> bytes:
    return letter.encode() + struct.pack(">i", len(body) + 4) + body


def test_messages_are_the_same_in_any_pieces() -> None:
    one = _bytes("P", b"\0SELECT 1\0\0\0") + _bytes("B", bytes(8)) + _bytes("E", bytes(5)) + _bytes("S", b"")
    with serving() as server:
        raw, answers = Raw(server.port), []
        for pieces in ([one], [one[n : n + 1] for n in range(len(one))], [one[:7], one[7:]]):
            for piece in pieces:
                raw.socket.sendall(piece)
            answers.append(raw.until("Z"))
        assert answers[0] == answers[1] == answers[2] and [letter for letter, _ in answers[0]] == list("12DCZ")
        raw.socket.sendall(one * 50)
        assert [raw.until("Z") for _ in range(50)] == answers[:1] * 50


def test_a_connection_with_many_messages_lets_others_have_their_turn() -> None:
    async def taken() -> list[str]:
        reader = asyncio.StreamReader()
        wire = Wire(reader, None, Limits())  # type: ignore[arg-type]  # it only reads
        reader.feed_data(_bytes("S", b"") * 1000)
        turns: list[str] = []

        async def other() -> None:
            for _ in range(10):
                turns.append("other")
                await asyncio.sleep(0)

        async def many() -> None:
            for _ in range(1000):
                assert await wire.take() == Message("S", b"")
                turns.append("mine")

        await asyncio.gather(many(), other())
        return turns

    turns = asyncio.run(taken())
    last = len(turns) - 1 - turns[::-1].index("other")
    assert turns[:last].count("mine") < 500  # the other had its ten turns long before the end

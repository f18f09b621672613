"""DECLARE, FETCH, MOVE and CLOSE. A cursor of a query holds its answer; one of SUBSCRIBE waits for changes."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.server.splitting import Piece
from halfjoin.server.variables import seconds

_OPTIONS = ("BINARY", "ASENSITIVE", "INSENSITIVE", "NO", "SCROLL")
_ALL = 1 << 62


def declared(piece: Piece) -> tuple[str, bool, bool, str]:
    """Of DECLARE: the name, whether it is binary, whether it stays after its transaction, and the query.

    Raises:
        UnsupportedSQL: it is not `DECLARE name [BINARY] [NO SCROLL] CURSOR [WITH | WITHOUT HOLD] FOR query`.
    """
    words = piece.words
    at = 2
    while at < len(words) and words[at] in _OPTIONS:
        at += 1
    options, rest = words[2:at], words[at:]
    hold = tuple(rest[1:3]) == ("WITH", "HOLD")
    if rest[:1] != ("CURSOR",) or (rest[1:2] != ("FOR",) and (rest[1:2] not in (("WITH",), ("WITHOUT",)) or
                                                               rest[2:4] != ("HOLD", "FOR"))):  # fmt: skip
        raise _syntax("write DECLARE name CURSOR [WITH HOLD] FOR SELECT ..., or FOR SUBSCRIBE ...")
    begin = at + (2 if rest[1] == "FOR" else 4)
    if begin >= len(words):
        raise _syntax("write a query after FOR")
    return name_at(piece, 1), "BINARY" in options, hold, piece.between(begin, len(words))


def fetched(piece: Piece) -> tuple[str, int | None, float | None]:
    """Of FETCH or MOVE: the cursor, how many rows (None: all), and how long to wait for the first change.

    Raises:
        UnsupportedSQL: it does not go forward, as all cursors do.
    """
    words = list(piece.words[1:])
    most, wait = 1, None
    if "WITH" in words[1:]:
        at = len(words) - 1 - words[::-1].index("WITH")
        wait = _wait(words[at:])
        words = words[:at]
    if not words:
        raise _syntax("name a cursor")
    place, words = len(words), words[:-1]
    if words and words[-1] in ("FROM", "IN"):
        words = words[:-1]
    if words and words[0] in ("FORWARD", "NEXT"):
        words = words[1:] or ["1"]
    if words and (words[0] in ("PRIOR", "FIRST", "LAST", "ABSOLUTE", "RELATIVE", "BACKWARD") or words[0] == "-"):
        raise UnsupportedSQL("cursor can only scan forward", remedy="declare another cursor", code="55000")
    if len(words) > 1 or (words and words[0] != "ALL" and not words[0].isdigit()):
        raise _syntax("write FETCH [n | ALL | FORWARD n] FROM name")
    if words:
        most = _ALL if words[0] == "ALL" else int(words[0])
    return name_at(piece, place), None if most == _ALL else most, wait


def name_at(piece: Piece, place: int) -> str:
    """The name at a place among the words."""
    if place >= len(piece.tokens):
        raise _syntax("a name is missing")
    token = piece.tokens[place]
    return token.text if piece.text[token.start - piece.start] == '"' else token.text.lower()


def _wait(words: Sequence[str]) -> float:
    """Of `WITH (TIMEOUT = '1s')`: the seconds."""
    given = [word for word in words if word not in ("WITH", "(", ")", "TIMEOUT", "=")]
    if "TIMEOUT" not in words or len(given) != 1:
        raise _syntax("write FETCH ... WITH (TIMEOUT = '1s')")
    return seconds(given[0])


def _syntax(remedy: str) -> UnsupportedSQL:
    return UnsupportedSQL("syntax error", remedy=remedy, code="42601")

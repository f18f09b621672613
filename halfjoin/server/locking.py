"""LOCK TABLE: nobody waits for it. A transaction that has it guards the table as `SELECT ... FOR UPDATE` does."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.errors import UnsupportedSQL
from halfjoin.server.splitting import Piece

_WEAK = ("ACCESS SHARE", "ROW SHARE", "ROW EXCLUSIVE")  # these let others change the table
_MODES = (*_WEAK, "SHARE UPDATE EXCLUSIVE", "SHARE", "SHARE ROW EXCLUSIVE", "EXCLUSIVE", "ACCESS EXCLUSIVE")


def locking(piece: Piece) -> list[str]:
    """The queries that lock the tables of a LOCK, each without a row.

    Raises:
        UnsupportedSQL: it is not `LOCK [TABLE] [ONLY] name [*] [, ...] [IN mode MODE] [NOWAIT]`.
    """
    words = piece.words
    end = len(words) - (words[-1] == "NOWAIT")
    mode = "ACCESS EXCLUSIVE"
    if words[end - 1] == "MODE" and "IN" in words[1:end]:
        begin = len(words) - 1 - words[::-1].index("IN")
        mode, end = " ".join(words[begin + 1 : end - 1]), begin
    parts = _names(piece, 2 if words[1:2] == ("TABLE",) else 1, end)
    if mode not in _MODES or not all(parts):
        raise UnsupportedSQL("syntax error in LOCK", code="42601", remedy="write LOCK TABLE t IN EXCLUSIVE MODE")
    guards = "" if mode in _WEAK else " FOR UPDATE"
    return [f"SELECT 1 FROM {name} WHERE false{guards}" for name in parts]


def _names(piece: Piece, first: int, end: int) -> Sequence[str]:
    """The names between two tokens, as they are written; an empty one where a name is missing."""
    made = [""]
    for place in range(first, end):
        match piece.words[place]:
            case ",":
                made.append("")
            case "ONLY" if not made[-1]:
                pass
            case "*" if made[-1]:
                pass
            case _:
                made[-1] += piece.between(place, place + 1)
    return [name.strip() for name in made]

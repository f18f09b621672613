"""EXPLAIN of a statement that a client has prepared, as sqlx's macros ask while a program is compiled."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.server.cursors import name_at
from halfjoin.server.splitting import Piece

_OPTIONS = frozenset(("EXPLAIN", "(", ")", ",", "VERBOSE", "FORMAT", "JSON", "TEXT", "COSTS", "TRUE", "ON"))


def explains_prepared(words: Sequence[str]) -> bool:
    """Whether a statement is EXPLAIN [options] EXECUTE."""
    return words[0] == "EXPLAIN" and "EXECUTE" in words and _OPTIONS.issuperset(words[: words.index("EXECUTE")])


def explained(piece: Piece) -> tuple[str, bool]:
    """The name of the prepared statement, and whether the plan is to be JSON."""
    at = piece.words.index("EXECUTE")
    return name_at(piece, at + 1), "JSON" in piece.words[:at]

"""Tells which statements the server carries out by itself; all others are the engine's."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.server.explained import explains_prepared

_SHOWS = ("TABLES", "VIEWS", "MATERIALIZED", "INDEXES", "SINKS", "COLUMNS", "CREATE", "SETTINGS", "COMMENTS", "SOURCES")
_OWN = ("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SET", "RESET", "SHOW", "DISCARD", "DECLARE", "FETCH",
        "MOVE", "CLOSE", "DEALLOCATE", "UNLISTEN", "LISTEN", "NOTIFY", "DO", "GRANT", "REVOKE", "LOCK",
        "CHECKPOINT", "REINDEX", "CLUSTER")  # fmt: skip
# Extensions that there is no need to make: PostgreSQL has the first from the beginning, and so Rails' schemas make it;
# of the others programs use the function that makes a UUID.
_EXTENSIONS = ("plpgsql", "uuid-ossp", "pgcrypto")


def is_own(words: Sequence[str]) -> bool:
    """Whether the server carries the statement out by itself."""
    first, second = words[0], words[1] if len(words) > 1 else ""
    if first == "SHOW":
        return second not in _SHOWS
    if first in ("SET", "RESET"):
        return second != "TIME" or words[2:3] == ("ZONE",)
    if first == "ROLLBACK":
        return "TO" not in words
    if (first, second) in (("PREPARE", "TRANSACTION"), ("ALTER", "DEFAULT")):
        return True
    return first in _OWN or explains_prepared(words) or bool(extension_of(words)) or _is_owner(words)


def extension_of(words: Sequence[str]) -> str:
    """The extension that a statement makes, if what clients use of it is there; else an empty text."""
    rest = words[5:] if tuple(words[2:5]) == ("IF", "NOT", "EXISTS") else words[2:]
    made = rest[0].lower() if rest and tuple(words[:2]) == ("CREATE", "EXTENSION") else ""
    return made if made in _EXTENSIONS else ""


def _is_owner(words: Sequence[str]) -> bool:
    """Whether a statement gives a table or another thing an owner and does no more, as pg_dump writes for each."""
    return words[0] == "ALTER" and tuple(words[-3:-1]) == ("OWNER", "TO") and {",", "RENAME"}.isdisjoint(words)

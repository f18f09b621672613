"""PostgreSQL's command tags of statements, which clients read."""

from __future__ import annotations

from collections.abc import Sequence

_KINDS = ("TABLE", "MATERIALIZED VIEW", "VIEW", "INDEX", "TYPE", "DOMAIN", "SCHEMA", "SEQUENCE", "SINK", "SOURCE")
_SKIPPED = ("OR", "REPLACE", "UNIQUE", "TEMP", "TEMPORARY", "LOCAL", "GLOBAL", "UNLOGGED")
_OTHER = {"END": "COMMIT", "ABORT": "ROLLBACK", "ANALYSE": "ANALYZE", "DESC": "SHOW", "DESCRIBE": "SHOW"}
_COUNTED = ("SELECT", "VALUES", "WITH", "TABLE", "(")


def tag_of(words: Sequence[str]) -> str:
    """The tag of a statement that has no count of rows."""
    first = words[0]
    if first in ("CREATE", "DROP", "ALTER"):
        rest = [word for word in words[1:] if word not in _SKIPPED]
        kind = "MATERIALIZED VIEW" if rest[:1] == ["MATERIALIZED"] else rest[0] if rest else ""
        return f"{first} {kind}" if kind in _KINDS else first
    if tuple(words[:2]) == ("REFRESH", "MATERIALIZED"):
        return "REFRESH MATERIALIZED VIEW"
    if first in ("REFRESH", "START", "DISCARD"):
        return " ".join(words[:2])
    return _OTHER.get(first, first)


def counted(words: Sequence[str]) -> bool:
    """Whether the tag is SELECT and the number of rows."""
    return words[0] in _COUNTED

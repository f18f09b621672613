"""Which statements change something: a transaction that only reads refuses them, and one that nobody wrote has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from halfjoin.server.tags import tag_of

_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "CREATE", "DROP", "ALTER", "COMMENT", "REFRESH")
_IN_WITH = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_MAIN = frozenset({"SELECT", "VALUES", "TABLE", *_IN_WITH})  # what may follow the queries of WITH
_NAMING = ("AS", ".")  # a keyword behind these is the name of a column
_PERHAPS = ("EXECUTE", "DECLARE")  # what PREPARE or WITH HOLD has kept decides
# What no transaction contains, or changes nothing that a transaction could undo.
_ALONE = ("SUBSCRIBE", "DISCARD", "VACUUM")
_KINDS_ALONE = ("SINK", "SOURCE")
_ENDS = ("BEGIN", "START", "COMMIT", "END", "ABORT")


def change_of(words: Sequence[str]) -> str | None:
    """The change that a statement with these keywords makes, as errors name it, such as CREATE TABLE; None if it only
    reads."""
    match words[0]:
        case first if first in _CHANGES:
            return tag_of(words)
        case "COPY":
            ways = (word for word in list(_outside(words))[2:] if word in ("FROM", "TO"))
            return "COPY FROM" if next(ways, "TO") == "FROM" else None
        case "WITH" if not _IN_WITH.isdisjoint(words):
            main = next((word for word in _outside(words) if word in _MAIN), "")
            begun = (word for before, word in pairwise(words) if before in ("(", ")") and word in _IN_WITH)
            if (found := next(begun, main)) in _IN_WITH:
                return found
    if words[0] in ("SELECT", "WITH") and "INTO" in words:
        into = (before for before, word in pairwise(_outside(words)) if word == "INTO")
        if any(before not in _NAMING for before in into):
            return "SELECT INTO"
    return None


def changes(words: Sequence[str]) -> bool:
    """Whether a statement may change something that a transaction can undo."""
    return (words[0] in _PERHAPS or change_of(words) is not None) and not _alone(words)


def begins_or_ends(words: Sequence[str]) -> bool:
    """Whether a statement begins or ends a transaction."""
    return words[0] in _ENDS or (words[0] == "ROLLBACK" and "TO" not in words)


def together(statements: Sequence[Sequence[str]]) -> bool:
    """Whether the statements of one text, or those before one Sync, are one transaction, up to where they say
    otherwise, as in PostgreSQL. They are not if no transaction may contain one of them: then each is on its own."""
    return len(statements) > 1 and any(map(changes, statements)) and not any(map(_alone, statements))


def _outside(words: Sequence[str]) -> Iterator[str]:
    """The words that no parentheses are around."""
    depth = 0
    for word in words:
        depth -= word == ")"
        if not depth and word != ")":
            yield word
        depth += word == "("


def _alone(words: Sequence[str]) -> bool:
    if words[0] in ("CREATE", "DROP", "ALTER"):
        kind = words[3] if tuple(words[1:3]) == ("OR", "REPLACE") and len(words) > 3 else "".join(words[1:2])
        return kind in _KINDS_ALONE or (words[0] == "ALTER" and ("RETAIN", "HISTORY") in pairwise(words))
    return words[0] in _ALONE or tuple(words[:2]) == ("REFRESH", "PLAN")

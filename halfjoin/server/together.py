"""Which statements are one transaction that nobody wrote: those of one query text, or before one Sync of a driver."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

_CHANGES = ("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE", "WITH", "COPY", "EXECUTE", "DECLARE", "CREATE", "DROP",
            "ALTER", "COMMENT")  # fmt: skip
# What no transaction contains, or changes nothing that a transaction could undo.
_ALONE = ("SUBSCRIBE", "DISCARD", "VACUUM")
_KINDS_ALONE = ("SINK", "SOURCE")
_ENDS = ("BEGIN", "START", "COMMIT", "END", "ABORT")


def changes(words: Sequence[str]) -> bool:
    """Whether a statement may change something that a transaction can undo."""
    return (words[0] in _CHANGES or (words[0] == "SELECT" and "INTO" in words)) and not _alone(words)


def begins_or_ends(words: Sequence[str]) -> bool:
    """Whether a statement begins or ends a transaction."""
    return words[0] in _ENDS or (words[0] == "ROLLBACK" and "TO" not in words)


def together(statements: Sequence[Sequence[str]]) -> bool:
    """Whether the statements of one text are one transaction, up to where they say otherwise, as in PostgreSQL. They
    are not if no transaction may contain one of them: then each is on its own."""
    return len(statements) > 1 and any(map(changes, statements)) and not any(map(_alone, statements))


def _alone(words: Sequence[str]) -> bool:
    if words[0] in ("CREATE", "DROP", "ALTER"):
        kind = words[3] if tuple(words[1:3]) == ("OR", "REPLACE") and len(words) > 3 else "".join(words[1:2])
        return kind in _KINDS_ALONE or (words[0] == "ALTER" and ("RETAIN", "HISTORY") in pairwise(words))
    return words[0] in _ALONE or tuple(words[:2]) == ("REFRESH", "PLAN")

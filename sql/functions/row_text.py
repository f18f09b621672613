"""The text of a row, as PostgreSQL reads it: `(1,"a b",)`."""

from __future__ import annotations

import re

from halfjoin.errors import UnsupportedSQL

_PART = re.compile(r'"((?:[^"\\]|\\.|"")*)"|\\(.)|([^",()\\]+)', re.DOTALL)


def members_of_text(text: str, count: int) -> list[str | None]:
    """The texts of a row's members; None for NULL, which is written as nothing.

    >>> members_of_text('(1,"a, b",)', 3)
    ['1', 'a, b', None]

    Raises:
        UnsupportedSQL: the text is malformed, or has another number of members.
    """
    inner = text.strip()
    if not inner.startswith("("):
        raise _malformed(text, "missing left parenthesis")
    place, found, end = 1, list[str | None](), False
    while not end:
        parts: list[str] = []
        while match := _PART.match(inner, place):
            quoted, escaped, plain = match.groups()
            parts.append(re.sub(r'\\(.)|""', lambda m: m[1] or '"', quoted, flags=re.DOTALL) if quoted is not None
                         else escaped or plain)  # fmt: skip
            place = match.end()
        if place >= len(inner) or inner[place] not in ",)":
            raise _malformed(text, "unexpected end of input" if place >= len(inner) else "it has a stray character")
        found.append("".join(parts) if parts else None)
        end = inner[place] == ")"
        place += 1
    if place != len(inner):
        raise _malformed(text, "junk after right parenthesis")
    if not count and found == [None]:
        return []
    if len(found) != count:
        raise _malformed(text, f"too {'few' if len(found) < count else 'many'} columns")
    return found


def _malformed(text: str, why: str) -> UnsupportedSQL:
    return UnsupportedSQL(f'malformed record literal: "{text}": {why}', code="22P02")

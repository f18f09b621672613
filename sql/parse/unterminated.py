"""Finds the quote or comment that has no end, in a text that cannot be taken apart into tokens."""

from __future__ import annotations

import re

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.parse.locate import line_and_column

_BEGIN = re.compile(r"--|/\*|(?<!\w)[eE]'|'|\"|(?<!\w)\$(?:[A-Za-z_]\w*)?\$")
_WHOLE = re.compile(r"--[^\n]*|(?<!\w)[eE]'(?:[^'\\]|\\.|'')*+'|'(?:[^']|'')*+'|\"(?:[^\"]|\"\")*+\"|"
                    r"(\$\w*\$).*?\1", re.DOTALL)  # fmt: skip
_COMMENT = re.compile(r"/\*|\*/")
_KINDS = {"/*": "/* comment", '"': "quoted identifier", "$": "dollar-quoted string"}


def unterminated(text: str) -> UnsupportedSQL | None:
    """The error for the first quote or comment without an end; None if each has one.

    >>> print(unterminated("SELECT 1, 'one"))
    unterminated quoted string (line 1, column 11)
      SELECT 1, 'one
                ^
      write its end: '
    """
    at = 0
    while (begin := _BEGIN.search(text, at)) is not None:
        end = _comment_end(text, begin.start()) if begin[0] == "/*" else _end(text, begin.start())
        if end is None:
            kind = _KINDS.get(begin[0][:1] if begin[0][0] in "\"$" else begin[0], "quoted string")
            line, column = line_and_column(begin.start(), text)
            close = {"/*": "*/"}.get(begin[0], begin[0].lstrip("eE"))
            return UnsupportedSQL(f"unterminated {kind}", remedy=f"write its end: {close}", code="42601", sql=text,
                                  line=line, column=column)  # fmt: skip
        at = end
    return None


def _end(text: str, start: int) -> int | None:
    found = _WHOLE.match(text, start)
    return None if found is None else found.end()


def _comment_end(text: str, start: int) -> int | None:
    """Comments may contain comments."""
    depth = 0
    for mark in _COMMENT.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return None

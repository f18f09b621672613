"""Splits what a user types into statements, as psql does: at semicolons outside of quotes, comments and parentheses.

The parser's tokens would not do: a text that is still being typed has none, and a script holds rows that are no SQL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# What may hold a semicolon that ends nothing. A group that never ends takes the rest of the text.
_TOKEN = re.compile(
    r"""
    (?P<line>--[^\n]*)
  | (?P<comment>/\*)
  | (?P<escaped>\b[eE]'(?:[^'\\]|\\.|'')*(?P<closed_e>'|\Z))
  | (?P<text>'(?:[^']|'')*(?P<closed_t>'|\Z))
  | (?P<name>"(?:[^"]|"")*(?P<closed_n>"|\Z))
  | (?P<dollar>(?<![\w$])\$(?:[A-Za-z_]\w*)?\$)
  | (?P<open>[(\[])
  | (?P<close>[)\]])
  | (?P<end>;)
  | (?P<command>\\[a-z][^\n]*)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Split:
    """Complete statements, without their semicolons, and what was typed after the last one.

    `open`: what the rest has begun and not ended: `'`, `"`, `(`, `/*`, `$tag$`; empty if nothing.
    """

    statements: tuple[str, ...]
    rest: str
    open: str = ""

    @property
    def complete(self) -> bool:
        """Whether nothing but white space and comments follows the last statement."""
        return not self.open and not bare(self.rest)


def split(text: str) -> Split:
    """Split a text into statements.

    >>> split("SELECT ';' AS a; SELECT 2; SELECT (3;")
    Split(statements=("SELECT ';' AS a", 'SELECT 2'), rest=' SELECT (3;', open='(')
    """
    found: list[str] = []
    while True:
        statement, rest, opened = first(text)
        if rest is None:
            return Split(tuple(found), text, opened)
        if bare(statement):
            found.append(statement.strip())
        text = rest


def first(text: str) -> tuple[str, str | None, str]:
    """The first statement, without its semicolon, and what follows it. If it does not end: the text, None, and what is
    open. A command behind a statement, such as `\\gx`, ends it with its line, and belongs to it.
    """
    at, depth = 0, 0
    while (token := _TOKEN.search(text, at)) is not None:
        at, after = token.end(), None
        match token.lastgroup:
            case "comment":
                at, after = (end, None) if (end := _comment_end(text, at)) is not None else (at, "/*")
            case "dollar":
                end = text.find(token[0], at)
                at, after = (end + len(token[0]), None) if end >= 0 else (at, token[0])
            case "open":
                depth += 1
            case "close":
                depth = max(depth - 1, 0)
            case "end" if depth == 0:
                return text[: at - 1], text[at:], ""
            case "command":
                return text[:at], text[at:], ""
            case "escaped" | "text":
                after = None if token["closed_e"] or token["closed_t"] else "'"
            case "name":
                after = None if token["closed_n"] else '"'
        if after:
            return text, None, after
    return text, None, "(" if depth else ""


def bare(text: str) -> str:
    """The text without its comments and the white space around it; empty if it says nothing.

    >>> bare("  -- only a comment ")
    ''
    """
    made, at = [], 0
    while (token := _TOKEN.search(text, at)) is not None:
        made.append(text[at : token.start()])
        at = token.end()
        if token["comment"]:
            at = _comment_end(text, at) or len(text)
        elif token["dollar"]:
            end = text.find(token[0], at)
            made.append(text[token.start() : (at := len(text) if end < 0 else end + len(token[0]))])
        elif not token["line"]:
            made.append(token[0])
    return "".join([*made, text[at:]]).strip()


def _comment_end(text: str, at: int) -> int | None:
    """The place after a comment that began before `at`; comments nest. None: it does not end."""
    depth = 1
    while (mark := _COMMENT.search(text, at)) is not None:
        depth += 1 if mark[0] == "/*" else -1
        at = mark.end()
        if depth == 0:
            return at
    return None

"""Takes what a client sends apart into statements, and each into its first words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.parse.dialect import Halfjoin
from halfjoin.sql.parse.literal_rows import literal_rows
from halfjoin.sql.parse.unterminated import unterminated


@dataclass(frozen=True)
class Piece:
    """A statement's text, where it begins in what the client sent, and its tokens."""

    text: str
    start: int
    tokens: tuple[Token, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens in upper case; a quoted name or text as it is."""
        return tuple(token.text if token.token_type in _QUOTED else token.text.upper() for token in self.tokens)

    @property
    def keywords(self) -> tuple[str, ...]:
        """The tokens in upper case; an empty text for a quoted name or text, which is no keyword whatever it says."""
        return tuple("" if token.token_type in _QUOTED else token.text.upper() for token in self.tokens)

    def between(self, first: int, last: int) -> str:
        """The text from one token to before another."""
        end = self.tokens[last].start - self.start if last < len(self.tokens) else len(self.text)
        return self.text[self.tokens[first].start - self.start : end]


QUERY = (Token(TokenType.SELECT, "SELECT"),)  # all that matters of the tokens of a query
_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER)


def split(text: str) -> list[Piece]:
    """The statements of a text, which semicolons separate. Empty ones are left out.

    Raises:
        UnsupportedSQL: a quote or comment does not end.
    """
    if (rows := literal_rows(text)) is not None:
        first, *others = split(rows.shortened)
        end = max(first.start + len(first.text), rows.end)  # blanks may end the shortened text
        return [replace(first, text=text[first.start : end]), *others]
    try:
        tokens = Halfjoin().tokenize(text)
    except SqlglotError as problem:
        reason = re.sub(r"\s+", " ", str(problem).partition("\n")[0])
        raise (unterminated(text) or UnsupportedSQL(f"syntax error: {reason}", code="42601")) from None
    pieces, held = list[Piece](), list[Token]()
    for token in tokens:
        if token.token_type is not TokenType.SEMICOLON:
            held.append(token)
        elif held:
            pieces.append(_piece(text, held))
            held = []
    return [*pieces, _piece(text, held)] if held else pieces


def _piece(text: str, tokens: list[Token]) -> Piece:
    start, end = tokens[0].start, tokens[-1].end + 1
    return Piece(text[start:end], start, tuple(tokens))

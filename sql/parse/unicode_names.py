"""Names with escapes of Unicode: `U&"d\\0061t"`, and `U&"d!0061t" UESCAPE '!'`. sqlglot reads them as three tokens."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from halfjoin.sql.parse.string_escapes import unicode_text


def with_unicode_names(tokens: list[Token]) -> list[Token]:
    """The tokens, with one identifier in place of `U`, `&` and the quoted name that follow each other at once.

    Raises:
        UnsupportedSQL: an escape stands for no character.
    """
    places = [place for place in range(len(tokens) - 2) if _begins(tokens, place)]
    for place in reversed(places):
        first, name, rest = tokens[place], tokens[place + 2], tokens[place + 3 : place + 5]
        escape, taken = "\\", 3
        if len(rest) == 2 and rest[0].text.upper() == "UESCAPE" and rest[1].token_type is TokenType.STRING:
            escape, taken = rest[1].text, 5
        text = unicode_text(name.text, escape)
        last = tokens[place + taken - 1]
        tokens[place : place + taken] = [
            Token(TokenType.IDENTIFIER, text, last.line, last.col, first.start, last.end, first.comments)]
    return tokens


def _begins(tokens: list[Token], place: int) -> bool:
    mark, sign, name = tokens[place : place + 3]
    return (mark.token_type is TokenType.VAR and mark.text in ("U", "u") and sign.token_type is TokenType.AMP
            and name.token_type is TokenType.IDENTIFIER and mark.end + 1 == sign.start and sign.end + 1 == name.start)

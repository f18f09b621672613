"""Refuses letters right behind a number: `1_000` is not 1 with the name _000, and `5k` is not 5 with the name k."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.parse.locate import line_and_column


def refuse_junk(tokens: Sequence[Token], text: str) -> None:
    """Refuse a number that a word follows without a space between them.

    Raises:
        UnsupportedSQL: there is one.
    """
    for number, word in pairwise(tokens):
        if number.token_type is not TokenType.NUMBER or word.start != number.end + 1:
            continue
        first = text[word.start]
        if first.isalpha() or first == "_":
            line, column = line_and_column(number.start, text)
            raise UnsupportedSQL(
                f"trailing junk after numeric literal at {text[number.start : word.end + 1]!r}", sql=text, line=line,
                column=column, code="42601",
                remedy="write the digits without _" if first == "_" else "write a space behind the number",
            )  # fmt: skip

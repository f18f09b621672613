"""The words of SQL text: sqlglot's tokens for `materialize`, as PostgreSQL has them."""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot.dialects.materialize import Materialize
from sqlglot.parsers.materialize import MaterializeParser
from sqlglot.tokenizer_core import Token, TokenType

from halfjoin.sql.parse.unicode_names import with_unicode_names

# PostgreSQL's own names of types that sqlglot has words for, and the words that mean something else, too. What other
# databases call a type, such as `short` or `string`, is a name like any other: a user may create a domain of that name.
TYPE_WORDS = frozenset((
    "ARRAY", "BIGINT", "BIGSERIAL", "BIT", "BOOL", "BOOLEAN", "BPCHAR", "BYTEA", "CHAR", "CHAR VARYING",
    "CHARACTER", "CHARACTER VARYING", "CSTRING", "DATE", "DATEMULTIRANGE", "DATERANGE", "DEC", "DECIMAL",
    "DOUBLE PRECISION", "ENUM", "FLOAT", "FLOAT4", "FLOAT8", "INET", "INT", "INT2", "INT4", "INT4MULTIRANGE",
    "INT4RANGE", "INT8", "INT8MULTIRANGE", "INT8RANGE", "INTEGER", "INTERVAL", "JSON", "JSONB", "MONEY", "NCHAR",
    "NULL", "NUMERIC", "NUMMULTIRANGE", "NUMRANGE", "POINT", "RANGE", "REAL", "SERIAL", "SMALLINT", "SMALLSERIAL",
    "TEXT", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "TIMETZ", "TSMULTIRANGE", "TSRANGE", "TSTZMULTIRANGE", "TSTZRANGE",
    "UNION", "UNKNOWN", "UUID", "VARCHAR", "XML",
))  # fmt: skip
NUMBERED = "\0"  # stands for the `$` of `$1`: no SQL text of PostgreSQL has it
NUMBERED_DOLLAR = re.compile(r"(?<![\w$])\$(?=[0-9])")
PLUS, MINUS = "\1", "\2"  # stand for the sign after a number such as `1e5`
AFTER_EXPONENT = re.compile(r"(?<=[0-9.])([eE][0-9]+)(?:(\+)|-(?![->]))")


class HalfjoinTokenizer(Materialize.Tokenizer):
    """The tokens of `materialize`, without the commands that sqlglot would keep as opaque text."""

    COMMANDS: ClassVar[set[TokenType]] = set()
    SINGLE_TOKENS: ClassVar = {**Materialize.Tokenizer.SINGLE_TOKENS, NUMBERED: TokenType.PARAMETER,
                               PLUS: TokenType.PLUS, MINUS: TokenType.DASH}
    KEYWORDS: ClassVar = {
        text: token for text, token in Materialize.Tokenizer.KEYWORDS.items()
        if text != "|>" and (token not in MaterializeParser.TYPE_TOKENS or text in TYPE_WORDS)
    }

    def tokenize(self, sql: str) -> list[Token]:
        """The tokens of a text. sqlglot reads `$1,$2` as text between the tags `$1,$`, and `1e5+1` as one number,
        so the `$` of a numbered parameter and the sign are other characters meanwhile."""
        signs, given = {}, sql
        if "$" in sql and NUMBERED not in sql:
            given, signs[NUMBERED] = NUMBERED_DOLLAR.sub(NUMBERED, given), "$"
        if PLUS not in sql and MINUS not in sql and AFTER_EXPONENT.search(sql):
            given = AFTER_EXPONENT.sub(lambda found: found[1] + (PLUS if found[2] else MINUS), given)
            signs |= {PLUS: "+", MINUS: "-"}
        tokens = super().tokenize(given)
        for token in tokens if signs else ():
            for other, sign in signs.items():
                token.text = token.text.replace(other, sign)
        return _with_brackets(with_unicode_names(tokens))


def _with_brackets(tokens: list[Token]) -> list[Token]:
    """`integer ARRAY` and `integer ARRAY[4]` as `integer[]`: sqlglot takes what follows ARRAY for its length."""
    if not any(token.token_type is TokenType.ARRAY for token in tokens):
        return tokens
    made = list[Token]()
    for token, after in zip(tokens, (*tokens[1:], None), strict=True):
        if token.token_type is not TokenType.ARRAY or not _ends_type(made):
            made.append(token)
        elif after is None or after.token_type is not TokenType.L_BRACKET:
            for kind, text in ((TokenType.L_BRACKET, "["), (TokenType.R_BRACKET, "]")):
                made.append(Token(kind, text, token.line, token.col, token.start, token.end, []))
    return made


def _ends_type(tokens: list[Token]) -> bool:
    """Whether tokens end with a type, such as `text` or `varchar(20)`."""
    last = len(tokens) - 1
    if last > 0 and tokens[last].token_type is TokenType.R_PAREN:
        last = next((n for n in range(last, -1, -1) if tokens[n].token_type is TokenType.L_PAREN), 0) - 1
    return last >= 0 and tokens[last].token_type in MaterializeParser.TYPE_TOKENS and (
        tokens[last].token_type not in (TokenType.ARRAY, TokenType.NULL, TokenType.UNKNOWN))  # fmt: skip

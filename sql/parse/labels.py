"""Names of outputs without AS, and texts that go on in the next line: where PostgreSQL's grammar is stricter."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.parsers.materialize import MaterializeParser
from sqlglot.tokenizer_core import TokenType

if TYPE_CHECKING:
    from halfjoin.errors import UnsupportedSQL

# Key words that name an output only after AS. The first go on with the expression, the second with the query.
AFTER_AN_EXPRESSION = frozenset((
    "CHAR", "CHARACTER", "DAY", "FILTER", "HOUR", "ISNULL", "MINUTE", "MONTH", "NOTNULL", "OVER", "OVERLAPS",
    "PRECISION", "SECOND", "VARYING", "WITHIN", "WITHOUT", "YEAR",
))  # fmt: skip
AFTER_AN_OUTPUT = frozenset((
    "ARRAY", "AS", "CREATE", "EXCEPT", "FETCH", "FOR", "FROM", "GRANT", "GROUP", "HAVING", "INTERSECT", "INTO",
    "LIMIT", "OFFSET", "ON", "ORDER", "RETURNING", "TO", "UNION", "WHERE", "WINDOW", "WITH",
))  # fmt: skip
# Key words that name an output without AS if nothing follows that they could begin.
ALONE = frozenset((
    "ALTER", "CROSS", "DISTINCT", "DROP", "ELSE", "INNER", "INSERT", "JOIN", "LATERAL", "ONLY", "OUTER", "REVOKE",
    "ROLLBACK", "SELECT", "TABLESAMPLE", "THEN", "USING", "VALUES", "VARIADIC", "WHEN",
))  # fmt: skip
AFTER_A_NAME = (TokenType.COMMA, TokenType.FROM, TokenType.R_PAREN, TokenType.SEMICOLON)
# Key words that never name an item of FROM, not even after AS.
RESERVED = AFTER_AN_OUTPUT | frozenset((
    "ALL", "ANALYSE", "ANALYZE", "AND", "ANY", "ASC", "ASYMMETRIC", "AUTHORIZATION", "BINARY", "BOTH", "CASE", "CAST",
    "CHECK", "COLLATE", "COLLATION", "COLUMN", "CONCURRENTLY", "CONSTRAINT", "CROSS", "CURRENT_CATALOG",
    "CURRENT_DATE", "CURRENT_ROLE", "CURRENT_SCHEMA", "CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "DEFAULT",
    "DEFERRABLE", "DESC", "DISTINCT", "DO", "ELSE", "END", "FALSE", "FOREIGN", "FREEZE", "FULL", "ILIKE", "IN",
    "INITIALLY", "INNER", "IS", "ISNULL", "JOIN", "LATERAL", "LEADING", "LEFT", "LIKE", "LOCALTIME", "LOCALTIMESTAMP",
    "NATURAL", "NOT", "NOTNULL", "NULL", "ONLY", "OR", "OUTER", "OVERLAPS", "PLACING", "PRIMARY", "REFERENCES",
    "RIGHT", "SELECT", "SESSION_USER", "SIMILAR", "SOME", "SYMMETRIC", "TABLE", "TABLESAMPLE", "THEN", "TRAILING",
    "TRUE", "UNIQUE", "USER", "USING", "VARIADIC", "VERBOSE", "WHEN",
))  # fmt: skip
# What PostgreSQL allows between two parts of a text: a new line, but no /* comment */.
CONTINUED = re.compile(r"(?:[ \t\f]|--[^\n\r]*)*[\n\r](?:[ \t\n\r\f]+|--[^\n\r]*[\n\r])*")


class LabelParser(MaterializeParser):
    """Parses what may follow an output or a text, as PostgreSQL does."""

    strict = True  # not for the texts of views: earlier versions took more, and their warehouses still open

    if TYPE_CHECKING:

        def _refused(self, reason: str, remedy: str | None = None) -> UnsupportedSQL: ...

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        token = self._curr
        if this is None or not token or token.token_type in (TokenType.IDENTIFIER, TokenType.STRING):
            return super()._parse_alias(this, explicit)
        word = token.text.upper()
        if not explicit and word in ALONE and (not self._next or self._next.token_type in AFTER_A_NAME):
            self._advance()
            return self.expression(exp.Alias(this=this, alias=exp.to_identifier(token.text.lower())))
        if self.strict and token.token_type is TokenType.ALIAS and not self._named():
            raise self._refused("AS needs a name").with_(code="42601")
        if self.strict and not explicit and word in AFTER_AN_EXPRESSION:
            raise self._refused(f"syntax error at {token.text!r}", f"write AS {token.text}").with_(code="42601")
        self._check_by(token.text)
        if self.strict and word in AFTER_AN_OUTPUT and token.token_type is not TokenType.ALIAS:
            return this
        return super()._parse_alias(this, explicit)

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> exp.TableAlias | None:
        explicit = bool(self._curr) and self._curr.token_type is TokenType.ALIAS
        token = self._next if explicit else self._curr
        if self.strict and explicit and not self._named():
            raise self._refused("AS needs a name").with_(code="42601")
        quoted = token.token_type is TokenType.IDENTIFIER
        if not self.strict or not token or quoted or token.text.upper() not in RESERVED:
            return super()._parse_table_alias(alias_tokens)
        if explicit:
            raise self._refused(f"syntax error at {token.text!r}", f'write AS "{token.text}"').with_(code="42601")
        self._check_by(token.text)
        return None

    def _parse_primary(self) -> exp.Expr | None:
        at = self._index
        while self.strict and self._is_text(at) and self._is_text(at + 1):
            other = self._tokens[at + 1]
            if not self._continues(at + 1):
                self._advance(at + 1 - self._index)
                raise self._refused(f"syntax error at {self._find_sql(other, other)}",
                                    "write || between two texts, or a new line").with_(code="42601")
            at += 1
        return super()._parse_primary()

    def _check_by(self, word: str) -> None:
        """ORDER and GROUP need BY. With it they are one token."""
        if self.strict and word.upper() in ("ORDER", "GROUP") and self._next:
            self._advance()
            raise self._refused(f"syntax error at {self._curr.text!r}", f"write {word} BY").with_(code="42601")

    def _named(self) -> bool:
        """Whether something follows AS."""
        ends = (TokenType.COMMA, TokenType.R_PAREN, TokenType.SEMICOLON)
        return bool(self._next) and self._next.token_type not in ends

    def _continues(self, at: int) -> bool:
        """Whether the text at `at` goes on with the one before it."""
        return self._is_text(at) and bool(
            CONTINUED.fullmatch(self.sql, self._tokens[at - 1].end + 1, self._tokens[at].start))

    def _is_text(self, at: int) -> bool:
        return at < len(self._tokens) and self._tokens[at].token_type is TokenType.STRING

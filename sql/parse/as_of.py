"""Parses times in queries: AS OF behind a query, and SUBSCRIBE with its two times."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.parse.syntax import AsOf, Subscribe
from halfjoin.sql.parse.with_clause import WithParser

_AFTER_AS_OF = (TokenType.NUMBER, TokenType.STRING, TokenType.L_PAREN, TokenType.DASH, TokenType.VAR,
                TokenType.TIMESTAMP, TokenType.TIMESTAMPTZ, TokenType.DATE, TokenType.INTERVAL)


class AsOfParser(WithParser):
    """Adds AS OF, which is not an alias named `of`."""

    def _with_as_of(self, statement: exp.Expr | None) -> exp.Expr | None:
        """The statement together with the AS OF that follows it."""
        if not self._after_with and isinstance(statement, (exp.Query, exp.Values)) and (time := self._parse_as_of()):
            return self.expression(AsOf(this=statement, expression=time))
        return statement

    def _parse_as_of(self) -> exp.Expr | None:
        if not self._match_text_seq("AS", "OF"):
            return None
        time: exp.Expr | None = self._parse_disjunction()
        if time is None:
            raise self._refused("AS OF needs a time", "write AS OF 5, or AS OF '2024-01-31 10:00'")
        return time

    def _at_as_of(self) -> bool:
        """Whether AS OF and a time come next, not an alias named `of`."""
        if not (self._curr and self._curr.token_type is TokenType.ALIAS and self._next):
            return False
        after = self._tokens[self._index + 2] if self._index + 2 < len(self._tokens) else None
        named_of = self._next.token_type is TokenType.VAR and self._next.text.upper() == "OF"
        return named_of and after is not None and after.token_type in _AFTER_AS_OF

    def _parse_subscribe(self) -> exp.Expr:
        self._match_text_seq("TO")
        if self._curr and self._curr.token_type is TokenType.L_PAREN:
            raise self._refused("SUBSCRIBE takes the name of a view", "create a materialized view of the query first")
        collection = self._parse_table_parts()
        as_of = self._parse_as_of()
        up_to = self._parse_disjunction() if self._match_text_seq("UP", "TO") else None
        return self.expression(Subscribe(this=collection, as_of=as_of, up_to=up_to))

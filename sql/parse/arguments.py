"""Parses arguments of functions that are no values: VARIADIC, and tables."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.parse.syntax import TableArgument, Variadic
from halfjoin.sql.parse.with_clause import WithParser

_TAKE_QUERIES = ("ARRAY", "EXISTS", "ANY", "SOME", "ALL")  # where `TABLE t` is a query


class ArgumentParser(WithParser):
    """Adds `VARIADIC array` and `TABLE t PARTITION BY k ORDER BY x`."""

    def _parse_lambda(self, alias: bool = False) -> exp.Expr | None:
        """Parse an argument of a call."""
        if self._curr and self._curr.text.upper() == "VARIADIC" and not self._next_ends_argument():
            self._advance()
            return self.expression(Variadic(this=self._parse_assignment()))
        return self._parse_table_argument() or super()._parse_lambda(alias)

    def _next_ends_argument(self) -> bool:
        """Whether the word here is the whole argument: a column."""
        return self._next is None or self._next.token_type in (TokenType.COMMA, TokenType.R_PAREN)

    def _parse_table_argument(self) -> exp.Expr | None:
        called = self._tokens[self._index - 2].text.upper() if self._index > 1 else ""
        if called in _TAKE_QUERIES or not self._match(TokenType.TABLE):
            return None
        table = self._parse_table()
        if table is None:
            raise self._refused("TABLE needs a table, a view or a subquery", "write f(TABLE t PARTITION BY k)")
        by = [part for one in self._parse_partition_by() for part in _columns(one)]
        return self.expression(TableArgument(this=table, partition_by=by, order=self._parse_order()))


def _columns(node: exp.Expr) -> list[exp.Expr]:
    """The parts of `(a, b)` and `(a)`."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.unnest() if isinstance(node, exp.Paren) else node]

"""Parses the clauses of a query: SELECT, WHERE, GROUP BY, ORDER BY, FOR UPDATE, and those behind parentheses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.parse.from_items import ItemParser


class ClauseParser(ItemParser):
    """Adds forms of clauses that sqlglot's parser lacks, or reads in another way."""

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        """The SELECT list. It may be empty, but not a comma alone."""
        made: tuple[list[exp.Expr], list[exp.Expr] | None] = super()._parse_projections()
        if not made[0] and self._prev is not None and self._prev.token_type is TokenType.COMMA:
            self.raise_error("an expression is missing", self._prev)
        return made

    def _parse_where(self, skip_where_token: bool = False) -> exp.Where | None:
        words = [token.text.upper() for token in self._tokens[self._index : self._index + 3]]
        if words == ["WHERE", "CURRENT", "OF"]:
            raise self._refused("WHERE CURRENT OF is not supported: no cursor stays at a row",
                                "name the row by its key, as in WHERE id = 5")  # fmt: skip
        return super()._parse_where(skip_where_token)

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:
        """Parse CUBE or ROLLUP. Their keys may be conditions, as those of GROUP BY."""
        if with_prefix or not self._match_set((TokenType.CUBE, TokenType.ROLLUP)):
            return super()._parse_cube_or_rollup(with_prefix)
        kind = exp.Cube if self._prev.token_type is TokenType.CUBE else exp.Rollup
        return self.expression(kind(expressions=self._parse_wrapped_csv(self._parse_disjunction)))

    def _parse_grouping_set(self) -> exp.Expr | None:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()

    def _parse_ordered(self, parse_method: Callable[[], exp.Expr | None] | None = None) -> exp.Ordered | None:
        """Parse a key of ORDER BY. `USING <` is ASC, `USING >` is DESC."""
        using: list[bool] = []

        def key() -> exp.Expr | None:
            node = parse_method() if parse_method else self._parse_disjunction()
            if node is not None and self._match(TokenType.USING):
                if not self._match_set((TokenType.LT, TokenType.GT)):
                    raise self._refused("ORDER BY ... USING takes < or > only", "write ASC or DESC")
                using.append(self._prev.token_type is TokenType.GT)
            return node

        made = super()._parse_ordered(key)
        if made is not None and using and using[0]:
            made.set("desc", True)
            made.set("nulls_first", made.args.get("nulls_first") or self._prev.text.upper() != "LAST")
        return made

    def _parse_locks(self) -> list[exp.Lock]:
        """FOR UPDATE OF x: the name of an item of FROM, and of no table."""
        locks = super()._parse_locks()
        for lock in locks:
            names = [table.this for table in lock.expressions]
            lock.set("expressions", [name for name in names if isinstance(name, exp.Identifier)])
        return locks

    def _parse_query_modifiers(self, this: Any) -> Any:
        """Parse the clauses after a query. Those after `(SELECT ...)` are the query's own, as without parentheses.

        LATERAL may be the first of joined items in parentheses.
        """
        made = super()._parse_query_modifiers(this)
        for join in self._parse_joins() if isinstance(made, exp.Lateral) else ():
            made.append("joins", join)
        if isinstance(made, exp.Subquery) and not made.args.get("alias"):
            inner = made.unnest()
            for key in ("order", "limit", "offset"):
                if (clause := made.args.get(key)) is not None:
                    if inner.args.get(key):
                        clauses = "ORDER BY" if key == "order" else key.upper()
                        raise self._refused(f"multiple {clauses} clauses not allowed").with_(code="42601")
                    inner.set(key, clause.pop())
        return made

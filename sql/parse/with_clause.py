"""Parses WITH: what sqlglot does, and WITH MUTUALLY RECURSIVE, WITH ITERATIVE, SEARCH and CYCLE."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.parsers.materialize import MaterializeParser
from sqlglot.tokenizer_core import TokenType

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.parse.locate import as_query, line_and_column
from halfjoin.sql.parse.syntax import Cycle, IterativeWith, MutualWith, Search

QUERY_TOKENS = (TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.TABLE, TokenType.L_PAREN)
_ONE = "write WITH a AS (...), b AS (...) SELECT ..."


class WithParser(MaterializeParser):
    """The part of the parser that reads WITH."""

    _after_with = False  # whether the query after a WITH is being parsed; an AS OF after it belongs to both
    _iterating = False  # whether the queries of WITH ITERATIVE are being parsed

    def _parse_with(self, skip_with_token: bool = False) -> exp.With | None:
        index = self._index
        if skip_with_token or self._match(TokenType.WITH):
            if self._match_text_seq("MUTUALLY"):
                self._match(TokenType.RECURSIVE)
                return self._parse_rounds("WITH MUTUALLY RECURSIVE", MutualWith)
            if self._match_text_seq("ITERATIVE") and self._at_rounds():
                return self._parse_rounds("WITH ITERATIVE", IterativeWith)
        self._retreat(index)
        return super()._parse_with(skip_with_token)

    def _parse_select_query(self, *args: Any, **options: Any) -> exp.Expr | None:
        """Parse a query. A WITH belongs to what follows it, which may be VALUES."""
        clause = self._parse_with()
        if clause is None:
            return super()._parse_select_query(*args, **options)
        outer, self._after_with = self._after_with, True
        try:
            query: Any = self._parse_statement()
        finally:
            self._after_with = outer
        if query is None:
            raise self._refused("WITH needs a query after it", "write WITH a AS (...) SELECT ...")
        while isinstance(query, exp.Subquery) and query.is_wrapper:
            query = query.this
        query = as_query(query)
        if query.args.get("with_"):
            raise self._refused("a query has one WITH", _ONE)
        if "with_" not in query.arg_types:
            raise self._refused("WITH needs a query after it", "write WITH a AS (...) SELECT ...")
        query.set("with_", clause)
        made: exp.Expr = query
        return made

    def _at_rounds(self) -> bool:
        """Whether the word before was a keyword, not the name of a query: options come next, or a name."""
        if self._curr and self._curr.token_type is TokenType.L_PAREN:
            return bool(self._next and self._next.text.upper() in ("RETURN", "ERROR"))
        return bool(self._curr) and self._curr.token_type is not TokenType.ALIAS

    def _parse_rounds(self, words: str, kind: type[exp.With]) -> exp.With:
        """What follows `WITH MUTUALLY RECURSIVE` and `WITH ITERATIVE`: the options in parentheses, and the queries."""
        options: dict[str, Any] = {}
        if self._match(TokenType.L_PAREN):
            error = bool(self._match_text_seq("ERROR"))
            known = error or bool(self._match_text_seq("RETURN"))
            if known and not error and kind is IterativeWith and self._match_text_seq("ROUNDS", "AS"):
                options["rounds"] = self._parse_id_var()
                known = self._curr.token_type is TokenType.R_PAREN or self._parse_most_rounds(options)
            else:
                known = known and self._parse_most_rounds(options)
            if not known:
                raise self._refused(f"{words} takes a limit of rounds, a positive integer",
                                    "write (RETURN AT RECURSION LIMIT 10), or ERROR instead of RETURN")
            options["error"] = error
            self._match_r_paren()
        outer, self._iterating = self._iterating, kind is IterativeWith
        queries = self._parse_csv(self._parse_cte)
        self._iterating = outer
        return self.expression(kind(expressions=queries, recursive=True, **options))

    def _parse_most_rounds(self, options: dict[str, Any]) -> bool:
        """Parse AT RECURSION LIMIT n into the options; whether it is there."""
        limit = self._parse_number() if self._match_text_seq("AT", "RECURSION", "LIMIT") else None
        options["limit"] = limit
        return limit is not None and limit.name.isdigit() and int(limit.name) > 0

    def _at_iterate(self) -> bool:
        """Whether ITERATE and a query come next, not an alias named `iterate`."""
        return bool(
            self._iterating and self._curr and self._next and self._curr.text.upper() == "ITERATE"
            and self._curr.token_type is TokenType.VAR and self._next.token_type in QUERY_TOKENS
        )

    def _parse_cte(self) -> Any:
        query = super()._parse_cte()
        if query is not None and self._match_text_seq("SEARCH"):
            kind = "DEPTH" if self._match_text_seq("DEPTH") else "BREADTH"
            by = (kind == "DEPTH" or self._match_text_seq("BREADTH")) and self._match_text_seq("FIRST", "BY")
            columns = self._parse_csv(self._parse_id_var) if by else []
            column = self._parse_id_var() if columns and self._match_text_seq("SET") else None
            if column is None:
                raise self._refused("SEARCH takes columns, and a new column to order by",
                                    "write SEARCH DEPTH FIRST BY id SET place, or BREADTH instead of DEPTH")
            query.set("search", self.expression(Search(kind=kind, expressions=columns, set=column)))
        if query is not None and self._match_text_seq("CYCLE"):
            columns = self._parse_csv(self._parse_id_var)
            mark = self._parse_id_var() if self._match_text_seq("SET") else None
            to = self._parse_unary() if self._match_text_seq("TO") else None
            default = self._parse_unary() if to is not None and self._match(TokenType.DEFAULT) else None
            path = self._parse_id_var() if self._match(TokenType.USING) else None
            if mark is None or path is None or (to is None) != (default is None):
                raise self._refused("CYCLE takes columns, and two new ones: a mark and a path",
                                    "write CYCLE id SET again USING path, or SET again TO 'Y' DEFAULT 'N' USING path")
            cycle = Cycle(expressions=columns, mark=mark, to=to, default=default, path=path)
            query.set("cycle", self.expression(cycle))
        if self._curr and query is not None:  # sqlglot reads `WITH a AS (...) WITH b AS (...)` as one clause
            after = self._next if self._curr.token_type is TokenType.COMMA else self._curr
            if after and after.token_type is TokenType.WITH:
                raise self._refused("a query has one WITH", _ONE).with_(code="42601")
        return query

    def _refused(self, reason: str, instead: str | None = None) -> UnsupportedSQL:
        """The error at the next token, or at the last token if the text ends."""
        line, column = line_and_column((self._curr or self._prev).start, self.sql)
        return UnsupportedSQL(reason, remedy=instead, sql=self.sql, line=line, column=column)

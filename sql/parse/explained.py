"""EXPLAIN with PostgreSQL's options, and VACUUM and ANALYZE: their syntax."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from halfjoin.sql.parse.locate import as_query
from halfjoin.sql.parse.named import NamedParser
from halfjoin.sql.parse.syntax import Explain, Maintain

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "(")  # what follows the parenthesis of a query
_SAME = ("VERBOSE", "COSTS", "SETTINGS")  # a plan has its columns and costs; no setting changes it
_OF_A_RUN = ("ANALYZE", "BUFFERS", "WAL", "TIMING", "SUMMARY")
_FORMATS = ("TEXT", "JSON")
_TRUE, _FALSE = ("TRUE", "ON", "1"), ("FALSE", "OFF", "0")
_MEASURED = "write EXPLAIN SELECT ...; engine.activity() and the console tell what each node of a view did"


class ExplainParser(NamedParser):
    """The part of the parser that reads these statements."""

    def _parse_explain(self) -> Explain:
        format = self._parse_explain_options()
        for words in (("MATERIALIZED", "VIEW"), ("VIEW",)):
            if self._match_text_seq(*words):
                kind = " ".join(words).lower()
                return self.expression(Explain(this=self._parse_table_parts(), kind=kind, format=format))
        query = self._parse_statement()
        if query is None:
            raise self._refused("EXPLAIN needs a query, or VIEW and a name")
        return self.expression(Explain(this=as_query(query), format=format))

    def _parse_explain_options(self) -> str:
        """Parse ANALYZE VERBOSE, or options in parentheses; the format of the plan."""
        format = "TEXT"
        if self._at_options():
            for option, value in self._parse_options():
                if option == "FORMAT":
                    format = value
                else:
                    self._check_option(option, value)
        else:
            if self._match_texts(("ANALYZE", "ANALYSE")):
                self._check_option("ANALYZE", "TRUE")
            self._match_text_seq("VERBOSE")
        if format not in _FORMATS:
            raise self._refused(f"EXPLAIN has no format {format}", f"write FORMAT {' or FORMAT '.join(_FORMATS)}")
        return format.lower()

    def _check_option(self, option: str, value: str) -> None:
        """Refuse an option that would ask for more than a plan."""
        if option not in (*_SAME, *_OF_A_RUN):
            raise self._refused(f"EXPLAIN has no option {option}", f"options: {', '.join((*_SAME, 'FORMAT'))}")
        if value not in (*_TRUE, *_FALSE):
            raise self._refused(f"{option} is true or false, not {value}", f"write {option} or {option} FALSE")
        if option == "ANALYZE" and value in _TRUE:
            raise self._refused("EXPLAIN ANALYZE is not supported", _MEASURED)
        if option in _OF_A_RUN and value in _TRUE:
            raise self._refused(f"EXPLAIN ({option}) tells of a run, and a query is explained without one", _MEASURED)

    def _parse_maintain(self, kind: str) -> Maintain:
        """Parse what follows VACUUM or ANALYZE: options, and tables with columns."""
        if self._at_options():
            for _ in self._parse_options():
                pass
        while self._match_texts(("FULL", "FREEZE", "VERBOSE", "ANALYZE", "ANALYSE")):
            pass
        named = self._curr and self._curr.token_type is not TokenType.SEMICOLON
        tables = self._parse_csv(self._parse_maintained) if named else []
        return self.expression(Maintain(kind=kind, expressions=tables))

    def _parse_maintained(self) -> exp.Expr:
        """Parse a table and its columns."""
        parts: list[Any] = [self._parse_table_parts(schema=True)]
        if self._match(TokenType.L_PAREN):
            parts += self._parse_csv(self._parse_id_var)
            self._match_r_paren()
        return exp.Tuple(expressions=parts)

    def _at_options(self) -> bool:
        """Whether options in parentheses come next, not a query."""
        opened = self._curr and self._curr.token_type is TokenType.L_PAREN
        return bool(opened and self._next and self._next.text.upper() not in _QUERIES)

    def _parse_options(self) -> Iterator[tuple[str, str]]:
        """Parse options in parentheses, each with its value, in capitals; an option alone is true."""
        self._match(TokenType.L_PAREN)
        more = True
        while more:
            option = self._word()
            alone = self._curr and self._curr.token_type in (TokenType.COMMA, TokenType.R_PAREN)
            yield ("ANALYZE" if option == "ANALYSE" else option), ("TRUE" if alone else self._word())
            more = bool(self._match(TokenType.COMMA))
        self._match_r_paren()

    def _word(self) -> str:
        """The next word, in capitals."""
        if not self._curr or self._curr.token_type in (TokenType.COMMA, TokenType.L_PAREN, TokenType.R_PAREN):
            self.raise_error("Expecting an option")
        word: str = self._curr.text.upper()
        self._advance()
        return word

"""Parses constants: texts with escapes, those after a type or the name of one (`date '2024-01-01'`), intervals."""

from __future__ import annotations

from typing import Any

from sqlglot import exp
from sqlglot.parsers.materialize import MaterializeParser
from sqlglot.tokenizer_core import Token, TokenType

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.parse.labels import LabelParser
from halfjoin.sql.parse.locate import line_and_column
from halfjoin.sql.parse.string_escapes import unescaped

INTERVAL_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
TYPED = MaterializeParser.TYPE_TOKENS - {TokenType.INTERVAL}  # an interval's unit may follow its text
BEFORE_TEXTS = ("UESCAPE", "ESCAPE", "U", "IS", "OF", "BY", "TO", "WITH")  # words that a text may follow
STRING_TOKENS = (TokenType.STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING)


class ConstantParser(LabelParser):
    """Parses constants as PostgreSQL writes them."""

    def _parse_escapes(self, token: Token) -> exp.Literal:
        """Parse `E'...'` from the SQL text, since sqlglot's tokenizer decodes escapes otherwise than PostgreSQL."""
        body = self.sql[token.start + 2 : token.end]
        while self._continues(self._index):
            body += self.sql[self._curr.start + 1 : self._curr.end]
            self._advance()
        try:
            text = unescaped(body)
        except UnsupportedSQL as error:
            raise error.at(self.sql, *line_and_column(token.start, self.sql)) from None
        return self.expression(exp.Literal(this=text, is_string=True), token=token)

    def _parse_type(self, parse_interval: bool = True, fallback_to_identifier: bool = False) -> exp.Expr | None:
        """Parse `type 'text'` as a constant, so that a `::` after it casts the constant."""
        here, after = (one and one.token_type for one in (self._curr, self._next))
        if not fallback_to_identifier and here is TokenType.ARRAY and after is TokenType.L_BRACKET:
            return self._parse_column()  # no type: else its elements are parsed to see that
        index = self._index
        if not fallback_to_identifier and self._curr and self._curr.token_type in TYPED:
            type = self._parse_types(check_func=True, allow_identifiers=False)
            text = self._parse_primary() if isinstance(type, exp.DataType) and self._at_string() else None
            if isinstance(text, (exp.Literal, exp.Concat, exp.RawString)):
                return self._parse_column_ops(self.expression(exp.Cast(this=text, to=type)))
            self._retreat(index)
        if not fallback_to_identifier and self._curr and self._curr.token_type is TokenType.VAR and self._next and (
                self._next.token_type is TokenType.STRING and self._curr.text.upper() not in BEFORE_TEXTS):
            named = self.expression(exp.DataType(this=exp.DType.USERDEFINED, kind=self._parse_id_var()))
            return self._parse_column_ops(self.expression(exp.Cast(this=self._parse_primary(), to=named)))
        return super()._parse_type(parse_interval, fallback_to_identifier)

    def _parse_types(self, *given: Any, **more: Any) -> exp.Expr | None:
        """Parse a type, which keeps its place for errors."""
        first = self._curr
        made = super()._parse_types(*given, **more)
        if isinstance(made, exp.DataType) and first is not None:
            made.meta.update(start=first.start, end=self._prev.end)
        return made

    def _at_string(self) -> bool:
        return bool(self._curr) and self._curr.token_type in STRING_TOKENS

    def _parse_interval(self, require_interval: bool = True, parse_function_unit: bool = True) -> exp.Interval | None:
        index = self._index
        if not self._match(TokenType.INTERVAL):
            return None
        unit = self._digits()
        if not self._match(TokenType.STRING):  # `interval` is a column's name here
            self._retreat(index)
            return None
        text = self.expression(exp.Literal(this=self._prev.text, is_string=True), token=self._prev)
        if self._match_texts(INTERVAL_UNITS):
            unit = self._prev.text.upper()
            if self._match_text_seq("TO") and self._match_texts(INTERVAL_UNITS):
                unit += f" TO {self._prev.text.upper()}"
            unit += self._digits() if unit.endswith("SECOND") else ""
        return self.expression(exp.Interval(this=text, unit=exp.var(unit) if unit else None))

    def _digits(self) -> str:
        """A number in parentheses, if there is one."""
        index = self._index
        if self._match(TokenType.L_PAREN) and self._match(TokenType.NUMBER):
            number = self._prev.text
            if self._match(TokenType.R_PAREN) and number.isdigit():
                return f"({number})"
        self._retreat(index)
        return ""

"""Parses PostgreSQL's prefix operators, SUBSTRING with a pattern, ESCAPE, and the words of Unicode's normal forms."""

from __future__ import annotations

from typing import ClassVar

from sqlglot import exp
from sqlglot.parsers.materialize import MaterializeParser
from sqlglot.tokenizer_core import TokenType

_NORMAL_FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def quantifier(right: exp.Expr) -> tuple[bool, exp.Expr] | None:
    """Of `ANY (array)`, `SOME` or `ALL` behind an operator whether it is ALL, and the array; None for another value."""
    if isinstance(right, exp.Any | exp.All):
        return isinstance(right, exp.All), right.this
    if isinstance(right, exp.Anonymous) and right.name.lower() in ("all", "some") and len(right.expressions) == 1:
        return right.name.lower() == "all", right.expressions[0]
    return None


class OperatorParser(MaterializeParser):
    """Adds operators that sqlglot's parser lacks, or to which it gives another precedence or meaning.

    A prefix operator binds looser than `+`: `~ 5 + 1` is `~ (5 + 1)`.
    """

    UNARY_PARSERS: ClassVar = {
        **MaterializeParser.UNARY_PARSERS,
        TokenType.TILDE: lambda self: self._parse_prefixed(exp.BitwiseNot),
        TokenType.RLIKE: lambda self: self._parse_prefixed(exp.BitwiseNot),  # what the tokenizer makes of a `~`
        TokenType.PIPE_SLASH: lambda self: self._parse_prefixed(exp.Sqrt),
        TokenType.DPIPE_SLASH: lambda self: self._parse_prefixed(exp.Cbrt),
        TokenType.PARAMETER: lambda self: self._parse_at(),
    }

    TYPED_LAMBDA_ARGS: ClassVar = False  # else each argument is parsed twice: 2^n times inside n calls
    LAMBDAS: ClassVar = {
        kind: made for kind, made in MaterializeParser.LAMBDAS.items() if kind is not TokenType.ARROW  # `->` of jsonb
    }
    ASSIGNMENT: ClassVar = {TokenType.COLON_EQ: exp.Kwarg}  # f(name := value) is f(name => value)
    JSON_OPERATORS: ClassVar = {
        **MaterializeParser.JSON_OPERATORS,  # its `->` would read a key as a path
        TokenType.ARROW: lambda self, value, step: self.expression(exp.JSONExtract(this=value, expression=step)),
        TokenType.DARROW: lambda self, value, step: self.expression(exp.JSONExtractScalar(this=value, expression=step)),
    }

    def _parse_lambda_arg(self) -> exp.Expr | None:
        """Parse the name of an argument before `=>`."""
        return self._parse_id_var()

    def _parse_prefixed(self, kind: type[exp.Expr]) -> exp.Expr:
        return self.expression(kind(this=self._parse_term()))

    def _parse_at(self) -> exp.Expr | None:
        if self._prev.text == "@":
            return self._parse_prefixed(exp.Abs)
        self._retreat(self._index - 1)
        return self._parse_type()

    def _parse_parameter(self) -> exp.Parameter | None:  # type: ignore[override]
        """A numbered parameter; `@` alone is an operator."""
        return None if self._prev.text == "@" else super()._parse_parameter()

    def _parse_substring(self) -> exp.Substring:
        """`substring(text SIMILAR pattern ESCAPE character)`, besides FROM and FOR."""
        if not self._similar_ahead():  # do not parse the text to see what follows it: 2^n times inside n calls
            return super()._parse_substring()
        index = self._index
        text = self._parse_bitwise()
        if not self._match_text_seq("SIMILAR"):
            self._retreat(index)
            return super()._parse_substring()
        pattern = self._parse_bitwise()
        escape = self._parse_bitwise() if self._match_text_seq("ESCAPE") else None
        return self.expression(exp.Substring(this=text, start=pattern, length=escape))

    def _similar_ahead(self) -> bool:
        """Whether SIMILAR stands in the parentheses here, but not in those inside them."""
        depth = 0
        for token in self._tokens[self._index :]:
            depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
            if depth < 0:
                return False
            if depth == 0 and token.text.upper() == "SIMILAR":
                return True
        return False

    def _parse_escape(self, this: exp.Expr | None) -> exp.Expr | None:
        """The escape character of LIKE may be any expression, such as `E'\\\\'`."""
        if not self._match(TokenType.ESCAPE):
            return this
        return self.expression(exp.Escape(this=this, expression=self._parse_bitwise()))

    def _negate_range(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """`!~ ANY` negates what it does for each pattern, as NOT LIKE ANY does."""
        if isinstance(this, (exp.RegexpLike, exp.RegexpILike)) and quantifier(this.expression):
            this.set("negate", True)
            return this
        return super()._negate_range(this)

    def _parse_normalize(self) -> exp.Anonymous:  # type: ignore[override]
        """`normalize(text, NFC)`: the form is a word."""
        text = self._parse_disjunction()
        if not self._match(TokenType.COMMA):
            return self.expression(exp.Anonymous(this="normalize", expressions=[text]))
        form = self._parse_normal_form() or self._parse_disjunction()
        return self.expression(exp.Anonymous(this="normalize", expressions=[text, form]))

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        """`text IS [NOT] [NFC] NORMALIZED`, besides what else IS asks."""
        index = self._index
        negated = self._match(TokenType.NOT)
        form = self._parse_normal_form()
        if not self._match_text_seq("NORMALIZED"):
            self._retreat(index)
            return super()._parse_is(this)
        asked = self.expression(exp.Anonymous(this="is_normalized", expressions=[this, *([form] if form else [])]))
        return self.expression(exp.Not(this=asked)) if negated else asked

    def _parse_normal_form(self) -> exp.Literal | None:
        return exp.Literal.string(self._prev.text.upper()) if self._match_texts(_NORMAL_FORMS) else None

"""The place inside a node that is at fault: the operator between its operands, or a constant that is no value."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.parse.dialect import Halfjoin
from halfjoin.sql.parse.locate import line_and_column, place

CANNOT_CAST = "42846"
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)

# How operators are written, with the longest first.
_WRITTEN: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Add: ("+",), exp.Sub: ("-",), exp.Mul: ("*",), exp.Div: ("/",), exp.Mod: ("%",), exp.Pow: ("^",),
    exp.DPipe: ("||",), exp.EQ: ("=",), exp.NEQ: ("<>", "!="), exp.LT: ("<",), exp.LTE: ("<=",), exp.GT: (">",),
    exp.GTE: (">=",), exp.NullSafeEQ: ("IS",), exp.NullSafeNEQ: ("IS",), exp.Like: ("NOT", "LIKE", "~~"),
    exp.ILike: ("NOT", "ILIKE", "~~*"), exp.RegexpLike: ("~", "!~"), exp.RegexpILike: ("~*", "!~*"),
    exp.Between: ("NOT", "BETWEEN"), exp.In: ("NOT", "IN"), exp.BitwiseAnd: ("&",), exp.BitwiseOr: ("|",),
    exp.BitwiseXor: ("#",), exp.BitwiseLeftShift: ("<<",), exp.BitwiseRightShift: (">>",),
    exp.ArrayContainsAll: ("@>",), exp.ArrayContainedBy: ("<@",), exp.ArrayOverlaps: ("&&",),
    exp.JSONExtract: ("->",), exp.JSONExtractScalar: ("->>",), exp.JSONBExtract: ("#>",),
    exp.JSONBExtractScalar: ("#>>",), exp.Cast: ("::",),
}  # fmt: skip


def fault(node: exp.Expr, sql: str, error: UnsupportedSQL | UnknownName) -> tuple[int | None, int | None]:
    """Line and column (from 1) of what an error is about in the node where it was raised."""
    if isinstance(error, UnsupportedSQL) and error.constant is not None:
        for part in node.walk():
            if isinstance(part, exp.Literal) and part.is_string and part.this == error.constant and part.meta:
                return place(part, sql)
    if isinstance(error, UnsupportedSQL) and error.argument is not None and isinstance(node, exp.Anonymous | exp.Array):
        return place(node.expressions[error.argument] if error.argument < len(node.expressions) else node, sql)
    start = None
    if not isinstance(node, exp.Cast) or error.sqlstate == CANNOT_CAST:
        start = _operator(node, sql)
    return place(node, sql) if start is None else line_and_column(start, sql)


def _operator(node: exp.Expr, sql: str) -> int | None:
    """Where the operator after a node's first operand begins; None if it has none, or is written as a call."""
    signs, left = _WRITTEN.get(type(node)), node.this
    ends = [part.meta["end"] for part in left.walk() if "end" in part.meta] if isinstance(left, exp.Expr) else []
    if signs is None or not ends or (after := max(ends) + 1) >= len(sql):
        return None
    right = node.args.get("expression")
    starts = [part.meta["start"] for part in right.walk() if "start" in part.meta] if right is not None else []
    until = min(starts, default=0)
    try:
        tokens = Halfjoin().tokenize(sql[after:until] if until > after else sql[after:])
    except TokenError:  # a quote without an end, in the next statement
        return None
    depth = 0
    for token in tokens:
        if depth <= 0 and sql[after + token.start :].upper().startswith(signs):
            return int(after + token.start)
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
    return None

"""Binds temporal filters: comparisons of mz_now(), the time of the read, with an expression of the row.

To maintain a view, the engine needs the times at which each row's comparison starts and stops holding. So mz_now()
must be alone on one side; the bound on the other is an integer (time units), a numeric, or a date or timestamp
(converted to milliseconds since 1970).
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.context import Context
from halfjoin.sql.expr import Call, Expr, Literal, Now
from halfjoin.sql.parse.locate import written
from halfjoin.sql.types import BIGINT, BOOLEAN, INTEGERS, TIMESTAMP, Kind

COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}
BOUNDS = (*INTEGERS, Kind.NUMERIC, Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)
CASTS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.BIGINT)
FORM = "write mz_now() alone on one side, as in mz_now() < created + interval '1 day'"


def mentions_now(node: exp.Expr) -> bool:
    """Whether the expression itself contains mz_now(). A subquery in it has conditions of its own."""
    inner = node.walk(prune=lambda one: isinstance(one, exp.Query))
    return any(isinstance(one, exp.Anonymous) and one.name.lower() == "mz_now" for one in inner)


def is_now(node: exp.Expr) -> bool:
    """Whether the node is mz_now(), possibly in parentheses or cast to a type that compares with times."""
    if isinstance(node, exp.Paren) or (isinstance(node, exp.Cast) and _keeps_time(node.to)):
        return is_now(node.this)
    return isinstance(node, exp.Anonymous) and node.name.lower() == "mz_now" and not node.expressions


def comparison(node: exp.Expr, value: Callable[[exp.Expr], Expr], context: Context) -> Expr:
    """A comparison or BETWEEN with mz_now() alone on one side; UnsupportedSQL for every other use."""
    if isinstance(node, exp.Between) and not node.args.get("symmetric"):
        low = exp.GTE(this=node.this, expression=node.args["low"])
        high = exp.LTE(this=node.this, expression=node.args["high"])
        return functions.resolve("and", tuple(_between_part(part, value, context) for part in (low, high)))
    if type(node) not in COMPARISONS:
        raise misplaced(node, context)
    sides: list[Expr] = []
    for side, other in ((node.this, node.expression), (node.expression, node.this)):
        if is_now(side):
            sides.append(Now())
        elif mentions_now(side):
            raise moved(node, side, other, context)
        else:
            sides.append(_bound(side, value, context))
    if all(isinstance(side, Now) for side in sides):
        raise context.refuse(node, "mz_now() is compared with itself", "leave the comparison out")
    return Call(COMPARISONS[type(node)], tuple(sides), BOOLEAN)


def _between_part(node: exp.Binary, value: Callable[[exp.Expr], Expr], context: Context) -> Expr:
    if mentions_now(node):
        return comparison(node, value, context)
    return value(node)


def _bound(node: exp.Expr, value: Callable[[exp.Expr], Expr], context: Context) -> Expr:
    bound = value(node)
    if bound.type.kind is Kind.UNKNOWN:
        null = isinstance(bound, Literal) and bound.value is None
        bound = functions.cast(bound, BIGINT if null else TIMESTAMP)
    if bound.type.kind not in BOUNDS:
        raise context.refuse(node, f"mz_now() cannot be compared with {bound.type}",
                             "compare it with an integer, numeric, date or timestamp")
    return bound


def misplaced(node: exp.Expr, context: Context) -> UnsupportedSQL:
    """The error for mz_now() at a place that does not allow it."""
    reason = "mz_now() is allowed only in comparisons of WHERE and ON, joined by AND, OR and NOT"
    return context.refuse(node, reason, FORM)


def moved(node: exp.Expr, side: exp.Expr, other: exp.Expr, context: Context) -> UnsupportedSQL:
    """The error for arithmetic on mz_now(); its remedy moves the rest to the other side, if it can."""
    inner = side.unnest()
    instead = FORM
    if isinstance(inner, (exp.Add, exp.Sub)) and is_now(inner.this) and not mentions_now(inner.expression):
        sign = "-" if isinstance(inner, exp.Add) else "+"
        shifted = f"{_sql(other)} {sign} {_sql(inner.expression)}"
        operator = COMPARISONS[type(node)]
        left = side is node.this
        instead = f"write mz_now() {operator} {shifted}" if left else f"write {shifted} {operator} mz_now()"
    return context.refuse(side, "arithmetic on mz_now() is not supported", instead)


def _keeps_time(type: exp.DataType) -> bool:
    return type.this in CASTS or type.sql("materialize").lower() == "mz_timestamp"


def _sql(node: exp.Expr) -> str:
    return written(node)

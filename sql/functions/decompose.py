"""What adds up: the sums that an aggregate needs for each group, and its result as an expression over them.

A sum is kept for each group and changes by what a batch adds and retracts. Nothing else of the group is needed. The
kinds of sums:

- `count`: of the rows in which no argument is NULL.
- `integers`, `floats`, `intervals`: the sum of the first argument over those rows.
- `integer products`, `float products`: the sum of the first argument times the second.
- `bits`: for each bit of an integer, the count of rows that have it.

A count is a bigint. The others are exact and may be wide, so they are kept as bytes (`engine.scalar.wide`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from halfjoin.sql.expr import TRUE, Call, Column, Expr, Literal
from halfjoin.sql.functions.coercion import digits
from halfjoin.sql.functions.resolve import resolve
from halfjoin.sql.relation import AggregateCall
from halfjoin.sql.types import BIGINT, BYTEA, FLOATS, INTEGER, Kind, SqlType

SUMS = frozenset(("count", "integers", "floats", "intervals", "integer products", "float products", "bits"))


@dataclass(frozen=True, slots=True)
class Part:
    """One sum to keep for each group. A row in which an argument is NULL adds nothing.

    `type`: of the kept column; bigint for a count, bytea for the others.
    """

    kind: str
    args: tuple[Expr, ...]
    type: SqlType


@dataclass(frozen=True, slots=True)
class Decomposed:
    """The sums of an aggregate, and `result`: from the columns that keep them to the aggregate's value."""

    parts: tuple[Part, ...]
    result: Callable[[Sequence[Column]], Expr]


# The sums over pairs (y, x) that a function of pairs needs besides their count. `xy`: of the products.
_PAIRS = {
    "covar_pop": ("x", "y", "xy"),
    "covar_samp": ("x", "y", "xy"),
    "corr": ("x", "y", "xx", "yy", "xy"),
    "regr_sxx": ("x", "xx"),
    "regr_syy": ("y", "yy"),
    "regr_sxy": ("x", "y", "xy"),
    "regr_slope": ("x", "y", "xx", "xy"),
    "regr_intercept": ("x", "y", "xx", "xy"),
    "regr_r2": ("x", "y", "xx", "yy", "xy"),
}
_SAME = {"variance": "var_samp", "stddev": "stddev_samp", "every": "bool_and", "regr_syy": "regr_sxx"}
_ZERO = Literal(0, BIGINT)


def decompose(call: AggregateCall) -> Decomposed | None:
    """What adds up in the call; None if nothing does: min and max, array_agg, and all that sees DISTINCT or an order.

    A FILTER is part of the arguments: a row for which its condition is not true has a NULL there.
    """
    if call.distinct or call.order:
        return None
    args, name = filtered(call), _SAME.get(call.function, call.function)
    match name:
        case "count" | "regr_count":
            return Decomposed((_count(args),), lambda columns: columns[0])
        case "sum" | "avg":
            return _sum(name, args, call.type)
        case "regr_avgx" | "regr_avgy":
            return _sum("avg", args if call.function == "regr_avgy" else args[::-1], call.type)
        case "bool_and" | "bool_or":
            return _booleans(name, args[0])
        case "bit_and" | "bit_or" | "bit_xor":
            parts = (_count(args), Part("bits", args, BYTEA))
            return Decomposed(parts, lambda columns: Call(f"{name} of bits", tuple(columns), call.type))
        case "var_pop" | "var_samp" | "stddev_pop" | "stddev_samp":
            return _spread(name, args[0], call.type)
        case _ if call.function in _PAIRS:
            return _pairs(name, _PAIRS[call.function], *args)
    return None


def adds_up(call: AggregateCall) -> bool:
    """Whether a call, without its DISTINCT, sums what each row with arguments adds."""
    return bool(call.sums and call.args) or decompose(replace(call, distinct=False)) is not None


def decompose_lifted(columns: Sequence[Column]) -> tuple[Decomposed, ...]:
    """The sum of each column that the lift of a user's aggregate gives; NULL over no rows.

    The columns are bigint or double precision. They are NULL in the same rows, which do not count.
    """
    return tuple(_lifted(columns[0], column) for column in columns)


def _lifted(first: Column, column: Column) -> Decomposed:
    family = _family(column.type)
    parts = (_count((first,)), Part(family, (column,), BYTEA))
    return Decomposed(parts, lambda kept: Call(f"sum of {family}", tuple(kept), column.type))


def filtered(call: AggregateCall) -> tuple[Expr, ...]:
    """The arguments, NULL where the condition of FILTER is not true."""
    if call.condition is None:
        return call.args
    args = call.args or (TRUE,)  # count(*) counts the rows for which the condition is true
    return tuple(Call("case", (call.condition, arg, Literal(None, arg.type)), arg.type) for arg in args)


def _count(args: tuple[Expr, ...]) -> Part:
    return Part("count", args, BIGINT)


def _family(type: SqlType) -> str:
    if type.kind is Kind.INTERVAL:
        return "intervals"
    return "floats" if type.kind in FLOATS else "integers"


def _sum(name: str, args: tuple[Expr, ...], type: SqlType) -> Decomposed:
    """A sum or an average of the first argument. Of exact numbers, the result needs the digits of the argument."""
    family = _family(args[0].type)
    parts = (_count(args), Part(family, args, BYTEA))
    known = _digits(args[0]) if type.kind is Kind.NUMERIC else ()
    return Decomposed(parts, lambda columns: Call(f"{name} of {family}", (*columns, *known), type))


def _digits(arg: Expr) -> tuple[Expr, ...]:
    """The digits before the point and after it of an exact argument."""
    if arg.type.kind in FLOATS:
        return ()
    return tuple(Literal(number, INTEGER) for number in digits(arg.type))


def _booleans(name: str, arg: Expr) -> Decomposed:
    """Counts of the values, and of those that decide: false for bool_and, true for bool_or."""
    other = resolve("nullif", (arg, Literal(name == "bool_and", arg.type)))  # the values that decide; NULL for others
    decided = "=" if name == "bool_and" else "<>"

    def result(columns: Sequence[Column]) -> Expr:
        some = resolve("<>", (columns[0], _ZERO))
        return resolve("case", (some, resolve(decided, (columns[1], _ZERO))))

    return Decomposed((_count((arg,)), _count((other,))), result)


def _spread(name: str, arg: Expr, type: SqlType) -> Decomposed:
    family = _family(arg.type)
    products = "float products" if family == "floats" else "integer products"
    parts = (_count((arg,)), Part(family, (arg,), BYTEA), Part(products, (arg, arg), BYTEA))
    return Decomposed(parts, lambda columns: Call(f"{name} of {family}", (*columns, *_digits(arg)), type))


def _pairs(name: str, sums: tuple[str, ...], y: Expr, x: Expr) -> Decomposed:
    """The sums of pairs. The last arguments of a part are there for their NULLs: such a row adds nothing."""
    named = {"x": x, "y": y}
    parts = [_count((y, x))]
    for letters in sums:
        factors = tuple(named[letter] for letter in letters)
        others = tuple(expr for letter, expr in named.items() if letter not in letters)
        parts.append(Part("floats" if len(letters) == 1 else "float products", factors + others, BYTEA))
    return Decomposed(tuple(parts), lambda columns: Call(f"{name} of pairs", tuple(columns), x.type))

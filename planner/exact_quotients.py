"""Queries: a sum of numerics that are divided by a constant adds products up where each quotient is exact.

A quotient has as many decimals as PostgreSQL gives it, so `x / 2` has 24 of them, and 128 bits for each row. But where
x has two decimals, `x / 2` is `x * 0.5`, which has three. So `sum(x / 2)` is the sum of these, written with the
decimals that it has otherwise. A divisor whose only prime factors are 2 and 5 has such a factor, and the digits of x
tell that no quotient is rounded (`sql.functions.decimal_places`).
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Context, Decimal

from halfjoin.sql.expr import Call, Expr, Literal
from halfjoin.sql.functions.aggregates import resolve_aggregate
from halfjoin.sql.functions.casting import cast
from halfjoin.sql.functions.decimal_places import GROUP, SIGNIFICANT, leading
from halfjoin.sql.functions.fallible import fallible
from halfjoin.sql.functions.resolve import resolve
from halfjoin.sql.relation import Aggregate, AggregateCall, Project, Relation, with_inputs
from halfjoin.sql.types import Kind, numeric
from halfjoin.sql.unseen import is_unseen

_MOST = 12  # decimals of the factor
_EXACT = Context(prec=200)


def with_exact_quotients(relation: Relation) -> Relation:
    """The same rows, from sums of products in place of sums of exact quotients."""
    relation = with_inputs(relation, with_exact_quotients)
    if not isinstance(relation, Aggregate):
        return relation
    calls = [(column, call, _of_products(call)) for column, call in relation.calls]
    if all(made is None for _, _, made in calls):
        return relation
    sums = tuple((column, call) if made is None else (replace(column, type=made.type), made)
                 for column, call, made in calls)  # fmt: skip
    shown = ((column, column if made is None else cast(replace(column, type=made.type), column.type))
             for column, _, made in calls)  # fmt: skip
    keys = ((column, column) for column, _ in relation.keys)
    return Project(replace(relation, calls=sums), (*keys, *shown))


def _of_products(call: AggregateCall) -> AggregateCall | None:
    """The sum of products that is a sum of quotients; None: it is not one."""
    if call.function != "sum" or call.distinct or call.order or call.type.kind is not Kind.NUMERIC:
        return None
    made = _product(call.args[0])
    return None if made is None else resolve_aggregate("sum", (made,), condition=call.condition)


def _product(expr: Expr) -> Expr | None:
    """The product that is always equal to a quotient, with fewer decimals; None: there is none."""
    match expr:
        case Call("/", (dividend, Literal(value)), type) if (
            not is_unseen(value) and isinstance(value, Decimal) and value.is_finite() and value
            and dividend.type.kind is type.kind is Kind.NUMERIC and dividend.type.scale is not None
            and dividend.type.precision is not None
        ):
            factor = _inverse(value)
            if factor is None:
                return None
            decimals = dividend.type.scale + _decimals(factor)
            before = max(dividend.type.precision - dividend.type.scale, 1)
            scale = _decimals(value)
            w1, (w2, _) = (before - 1) // GROUP, leading(int(value.scaleb(scale, _EXACT)), scale)
            digits = max(len(factor.as_tuple().digits), _decimals(factor))
            made = resolve("*", (dividend, Literal(factor, numeric(digits, _decimals(factor)))))
            exact = decimals <= min(SIGNIFICANT - GROUP * (w1 - w2), type.scale or 0)
            return made if exact and (made.type.scale or 0) < (type.scale or 0) and not fallible(made) else None
        case _:
            return None


def _inverse(divisor: Decimal) -> Decimal | None:
    """1 / divisor, if it has few decimals."""
    scale = _decimals(divisor)
    for decimals in range(_MOST):
        factor, rest = divmod(10 ** (decimals + scale), int(divisor.scaleb(scale, _EXACT)))
        if not rest:
            return Decimal(factor).scaleb(-decimals, _EXACT)
    return None


def _decimals(value: Decimal) -> int:
    return max(-int(value.as_tuple().exponent), 0)

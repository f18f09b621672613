"""Kernels of NOT, the IS tests, GREATEST and LEAST."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.scalar.comparison import kernel_for
from halfjoin.engine.scalar.order_text import order_text
from halfjoin.engine.scalar.values import Datum, Kernel, call, fail_where
from halfjoin.sql.expr import Call

_invert = call("invert")
_is_null = call("is_null")
_is_valid = call("is_valid")
_greater = call("greater")


def _known(datum: Datum, null: bool) -> Datum:
    """A boolean datum, with NULL replaced by `null`."""
    if isinstance(datum, pa.Scalar):
        return datum if datum.is_valid else pa.scalar(null)
    return datum.fill_null(null) if datum.null_count else datum


def _extreme(operator: str) -> Callable[[Call], Kernel]:
    """The greatest (`>`) or least (`<`) argument that is not NULL."""

    def build(expr: Call) -> Kernel:
        wins = kernel_for(operator, expr.type)

        def better(a: Datum, b: Datum) -> Datum:
            chosen = pc.if_else(wins(b, a), b, a)
            return pc.coalesce(chosen, a, b)

        return lambda *data: reduce(better, data)

    return build


def _single_row(value: Datum, count: Datum) -> Datum:
    """The value of a subquery that has `count` rows. Two rows are an error even if both have NULL."""
    fail_where(_greater(count, 1), "more than one row returned by a subquery used as an expression", strict=False)
    return value


def _number_of(clause: str) -> Kernel:
    def check(number: Datum) -> Datum:
        fail_where(_greater(0, number), f"{clause} must not be negative")
        return number

    return check


LOGIC: dict[str, Callable[[Call], Kernel]] = {
    "not": lambda _: _invert,
    "is null": lambda _: _is_null,
    "is not null": lambda _: _is_valid,
    "is unknown": lambda _: _is_null,
    "is not unknown": lambda _: _is_valid,
    "is true": lambda _: lambda a: _known(a, False),
    "is not true": lambda _: lambda a: _invert(_known(a, False)),
    "is false": lambda _: lambda a: _invert(_known(a, True)),
    "is not false": lambda _: lambda a: _known(a, True),
    "greatest": _extreme(">"),
    "least": _extreme("<"),
    "single row": lambda _: _single_row,
    "limit rows": lambda _: _number_of("LIMIT"),
    "offset rows": lambda _: _number_of("OFFSET"),
    "order text": lambda _: order_text,
}

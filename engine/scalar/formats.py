"""Kernels of to_char, to_number, and of date_part and date_trunc with a unit that is a column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.by_distinct import Unknown, by_distinct
from halfjoin.engine.scalar.date_text import moment_to_char
from halfjoin.engine.scalar.dates import DATES
from halfjoin.engine.scalar.interval_text import interval_to_char
from halfjoin.engine.scalar.number_input import to_number
from halfjoin.engine.scalar.number_text import number_to_char
from halfjoin.engine.scalar.values import Kernel
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Call, Literal
from halfjoin.sql.functions.coercion import NUMBERS
from halfjoin.sql.functions.dates import named_unit
from halfjoin.sql.types import TEXT, Kind


def _to_char(expr: Call) -> Kernel:
    value, pattern = expr.args
    if value.type.kind in NUMBERS:
        return number_to_char(expr)
    if value.type.kind is Kind.INTERVAL:
        return interval_to_char(expr)
    if isinstance(pattern, Literal):
        format = moment_to_char(value.type.kind, pattern.value if isinstance(pattern.value, str) else "")
        return lambda a, _: format(a)
    return by_distinct(lambda text: moment_to_char(value.type.kind, text), pa.string(), 1)


def _by_unit(function: str) -> Callable[[Call], Kernel]:
    """`function` with its unit from a column: a unit that it does not know fails the row."""

    def build(expr: Call) -> Kernel:
        def of(text: str) -> Kernel:
            try:
                unit = named_unit(function, text, expr.args[1].type)
            except UnsupportedSQL as error:
                raise Unknown(error.reason) from None
            kernel = DATES[function](replace(expr, function=function, args=(Literal(unit, TEXT), expr.args[1])))
            return lambda a: kernel(None, a)

        return by_distinct(of, arrow_type(expr.type), 0)

    return build


FORMATS: dict[str, Callable[[Call], Kernel]] = {
    "to_char": _to_char,
    "to_number": to_number,
    "extract by name": _by_unit("extract"),
    "date_trunc by name": _by_unit("date_trunc"),
}

"""Predicates so simple that Spark may apply them first, where it reads: fewer rows to shuffle, row groups skipped.

The view's own operator still decides. This only drops rows of which it is certain that the operator would: those for
which a leading comparison of a column with a constant, of a type whose order Spark and PostgreSQL share, is not true.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping
from functools import reduce
from operator import and_, eq, ge, gt, le, lt
from typing import Any

from pyspark.sql import functions as F

from halfjoin.planner.fallibility import step_fallible
from halfjoin.planner.linear import Filter, Keep, Linear
from halfjoin.sql.expr import Call, Column, Expr, Literal
from halfjoin.sql.types import INTEGERS, Kind

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_TURNED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ORDERED = (*INTEGERS, Kind.DATE)
_EQUATED = (*_ORDERED, Kind.TEXT, Kind.VARCHAR)  # the order of texts is a matter of collation
_EPOCH = dt.date(1970, 1, 1)
_SAME_DAYS = ((dt.date(1583, 1, 1) - _EPOCH).days, (dt.date(9999, 12, 31) - _EPOCH).days)


def prefilter(operator: Linear, columns: Mapping[str, str]) -> Any:
    """A condition for rows that may pass an operator, as a Spark column; None where nothing can be said.

    `columns`: the names in Spark of the columns that are there when the condition is applied.
    """
    found = [condition for expr in _leading(operator) if (condition := condition_of(expr, columns)) is not None]
    return reduce(and_, found) if found else None


def _leading(operator: Linear) -> Iterator[Expr]:
    """Predicates that every row meets as it came, before any could fail for it and so make it an error."""
    for step in operator.steps:
        if isinstance(step, Filter):
            yield from step.predicates
        if not isinstance(step, Keep) and (not isinstance(step, Filter) or step_fallible(step)):
            return


def condition_of(expr: Expr, columns: Mapping[str, str]) -> Any:
    """A predicate as a Spark column that is true for exactly the same rows; None where there is none so simple."""
    match expr:
        case Call(function=op, args=(Column(name=name, type=kind), Literal() as constant)) if op in _COMPARE:
            pass
        case Call(function=op, args=(Literal() as constant, Column(name=name, type=kind))) if op in _COMPARE:
            op = _TURNED[op]
        case _:
            return None
    allowed = _EQUATED if op == "=" else _ORDERED
    if name not in columns or kind.kind not in allowed or constant.type.kind not in allowed or constant.value is None:
        return None
    if isinstance(constant.value, dt.date):
        return with_date(_COMPARE[op], F.col(columns[name]), (constant.value - _EPOCH).days)
    return _COMPARE[op](F.col(columns[name]), F.lit(constant.value))


def with_date(compare: Callable[[Any, Any], Any], column: Any, days: int) -> Any:
    """A comparison of a date column with a day since 1970.

    As a date of Spark's, by which it skips row groups, only where all the calendars of Java and Python have that day
    and agree about it.
    """
    if _SAME_DAYS[0] <= days <= _SAME_DAYS[1]:
        return compare(column, F.lit(_EPOCH + dt.timedelta(days)))
    return compare(F.unix_date(column), F.lit(days))

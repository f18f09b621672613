"""Predicates so simple that Spark can apply them while it reads: it shuffles fewer rows and skips row groups.

The view's own operator still decides. The prefilter only drops rows that the operator would certainly drop: those for
which a leading comparison of a column with a constant is not true, in a type whose order Spark and PostgreSQL share.
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
from halfjoin.sql.expr import FLIPPED, Call, Column, Expr, Literal
from halfjoin.sql.functions.calendar import Far
from halfjoin.sql.types import INTEGERS, Kind

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}
_ORDERED = (*INTEGERS, Kind.DATE)
_EQUATED = (*_ORDERED, Kind.TEXT, Kind.VARCHAR)  # the order of texts depends on the collation
_EPOCH = dt.date(1970, 1, 1)
_SAME_DAYS = ((dt.date(1583, 1, 1) - _EPOCH).days, (dt.date(9999, 12, 31) - _EPOCH).days)


def prefilter(operator: Linear, columns: Mapping[str, str]) -> Any:
    """A condition that all rows which pass an operator meet, as a Spark column. None if there is no such condition.

    `columns`: for each column its name in Spark where the condition is applied.
    """
    found = [condition for expr in _leading(operator) if (condition := condition_of(expr, columns)) is not None]
    return reduce(and_, found) if found else None


def _leading(operator: Linear) -> Iterator[Expr]:
    """The predicates that see every row unchanged, before a step that could fail and turn a row into an error."""
    for step in operator.steps:
        if isinstance(step, Filter):
            yield from step.predicates
        if not isinstance(step, Keep) and (not isinstance(step, Filter) or step_fallible(step)):
            return


def condition_of(expr: Expr, columns: Mapping[str, str]) -> Any:
    """A predicate as a Spark column that is true for exactly the same rows. None if it is not simple enough."""
    match expr:
        case Call(function=op, args=(Column(name=name, type=kind), Literal() as constant)) if op in _COMPARE:
            pass
        case Call(function=op, args=(Literal() as constant, Column(name=name, type=kind))) if op in _COMPARE:
            op = FLIPPED[op]
        case _:
            return None
    allowed = _EQUATED if op == "=" else _ORDERED
    if name not in columns or kind.kind not in allowed or constant.type.kind not in allowed or constant.value is None:
        return None
    if isinstance(constant.value, dt.date | Far):
        day = constant.value
        return with_date(_COMPARE[op], F.col(columns[name]), day.count if isinstance(day, Far) else (day - _EPOCH).days)
    return _COMPARE[op](F.col(columns[name]), F.lit(constant.value))


def with_date(compare: Callable[[Any, Any], Any], column: Any, days: int) -> Any:
    """A comparison of a date column with a day since 1970.

    It uses Spark's dates, which let Spark skip row groups, only for days that all calendars of Java and Python have
    and agree on.
    """
    if _SAME_DAYS[0] <= days <= _SAME_DAYS[1]:
        return compare(column, F.lit(_EPOCH + dt.timedelta(days)))
    return compare(F.unix_date(column), F.lit(days))

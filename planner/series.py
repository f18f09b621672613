"""How many rows a table function of constants gives, as far as its arguments tell."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal

from halfjoin.planner.linear import Explode
from halfjoin.sql.expr import Expr, Literal
from halfjoin.sql.types import RESULT_ROWS
from halfjoin.sql.unseen import is_unseen

_DAY = 86_400_000_000  # microseconds
_MONTH = 28  # days at least
_MONTHS = 12_000  # of a step: more may lead beyond the last timestamp
_UNKNOWN = 1_000


def about_rows(step: Explode) -> int:
    """A guess at the rows of a function of constants."""
    if step.function == "unnest":
        values = [arg.value for arg in step.args if isinstance(arg, Literal) and not is_unseen(arg.value)]
        return max((len(value) for value in values if isinstance(value, list)), default=_UNKNOWN)
    found = length_of(step.args) if step.function == "generate_series" else None
    return _UNKNOWN if found is None else found


def is_short(args: Sequence[Expr]) -> bool:
    """Whether a series of constants surely has an end, and at most `RESULT_ROWS` rows."""
    found = length_of(args)
    return found is not None and found <= RESULT_ROWS


def length_of(args: Sequence[Expr]) -> int | None:
    """The most rows of a series of these constants; None if they are no constants, or it may fail or have no end."""
    values = [arg.value for arg in args if isinstance(arg, Literal)]
    if len(values) < len(args) or None in values:
        return None
    start, stop, step = (*values, 1)[:3]
    match start, stop, step:
        case (int() | Decimal()), (int() | Decimal()), (int() | Decimal()) if step:
            return _steps(Decimal(stop) - Decimal(start), Decimal(step))
        case dt.datetime(), dt.datetime(), (int() as months, int() as days, int() as micros):
            if not (months or days or micros) or abs(months) > _MONTHS or (months and min(step) < 0 < max(step)):
                return None
            each = (_MONTH * months + days) * _DAY + micros
            return _steps(Decimal((stop - start) // dt.timedelta(microseconds=1)), Decimal(each)) if each else None
    return None


def _steps(distance: Decimal, step: Decimal) -> int:
    return max(0, int(distance // step) + 1)

"""Where a condition cannot be true: what the least and the greatest values of a block of rows say about all of them.

A table that was loaded in the order of a date has blocks of few dates each, so `WHERE d BETWEEN a AND b` concerns few
blocks. A sieve never decides that a row passes. It marks blocks, and whoever reads them tests each row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.scalar.evaluate import compile
from halfjoin.engine.scalar.threshold import EQUAL, HIGHER, LOWER, Threshold, has_threshold, threshold_at, threshold_of
from halfjoin.engine.scalar.values import mask_of
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.codes import distinct as ascending
from halfjoin.engine.updates.updates import Ints, Mask
from halfjoin.sql.expr import FLIPPED, Call, Cast, Column, Expr, Literal
from halfjoin.sql.types import BOOLEAN, INTEGERS, Kind, SqlType

_TEXTS, _PLAIN_MOMENTS = (Kind.TEXT, Kind.VARCHAR), (Kind.DATE, Kind.TIMESTAMP)
_MOST = 64  # constants of an IN that are looked at one by one
_RISING = {  # casts that keep the order of the values; the hour in which clocks go back has none
    Kind.DATE: frozenset((Kind.TIMESTAMP, Kind.TIMESTAMPTZ)),
    Kind.TIMESTAMP: frozenset((Kind.DATE,)),
    Kind.SMALLINT: frozenset((*INTEGERS, Kind.NUMERIC, Kind.DOUBLE)),
    Kind.INTEGER: frozenset((*INTEGERS, Kind.NUMERIC, Kind.DOUBLE)),
    Kind.BIGINT: frozenset((*INTEGERS, Kind.NUMERIC, Kind.DOUBLE)),
}
_LARGEST = frozenset(("millennium", "century", "decade", "year", "epoch"))  # fields that rise with the moment


class Ends(NamedTuple):
    """The least and the greatest value of each block, NULL where all are NULL. NaN is the greatest float."""

    least: pa.Array
    greatest: pa.Array


EndsOf: TypeAlias = Callable[[str], Ends | None]  # of a column; None: they are not known
# Marks the blocks in which a condition may be true for some row. None: it may be in all of them.
Sieve: TypeAlias = Callable[[EndsOf], Mask | None]


def sieve_of(expr: Expr) -> Sieve | None:
    """The sieve of a condition. None: the ends of columns say nothing about it."""
    match expr:
        case Call("and", args):
            some = [one for one in map(sieve_of, args) if one is not None]
            return all_of(some) if some else None
        case Call("or", args):
            every = [one for one in map(sieve_of, args) if one is not None]
            return any_of(every) if len(every) == len(args) else None
        case Call("in", (value, *constants)) if len(constants) <= _MOST:
            return sieve_of(Call("or", tuple(Call("=", (value, one), expr.type) for one in constants), expr.type))
        case Call("like", (Column(name, type), Literal(str(pattern), _))) if type.kind in _TEXTS:
            stops = [place for place in map(pattern.find, "%_\\") if place >= 0]
            return _begins_with(name, pattern[: min(stops, default=len(pattern))])
        case Call("starts_with", (Column(name, type), Literal(str(start), _))) if type.kind in _TEXTS:
            return _begins_with(name, start)
        case Call(function, (left, right)) if function in FLIPPED:
            return _compared(function, left, right)
        case _:
            return None


def all_of(sieves: Sequence[Sieve]) -> Sieve:
    """The sieve of a conjunction."""

    def run(ends_of: EndsOf) -> Mask | None:
        found: Mask | None = None
        for sieve in sieves:
            mask = sieve(ends_of)
            if mask is not None:
                found = mask if found is None else found & mask
        return found

    return run


def any_of(sieves: Sequence[Sieve]) -> Sieve:
    """The sieve of a disjunction of at least one condition."""

    def run(ends_of: EndsOf) -> Mask | None:
        found: Mask | None = None
        for sieve in sieves:
            mask = sieve(ends_of)
            if mask is None:
                return None
            found = mask if found is None else found | mask
        return found

    return run


def among(column: str, keys: pa.Array) -> Sieve:
    """The sieve of `column IN (...)`, with these keys. NULL is no key. Keys are of the column's type; integers may
    differ in width."""
    keys = keys.drop_null()
    if not len(keys):
        return lambda ends_of: None if (ends := ends_of(column)) is None else np.zeros(len(ends.least), np.bool_)
    if is_exact([keys]):
        values = ascending(codes([keys], len(keys)))
        return lambda ends_of: None if (ends := ends_of(column)) is None else _some_between(ends, values)
    if pt.is_floating(keys.type):
        return lambda ends_of: None
    found = pc.min_max(keys)

    def run(ends_of: EndsOf) -> Mask | None:
        ends = ends_of(column)
        if ends is None or ends.least.type != keys.type:
            return None
        return mask_of(pc.less_equal(ends.least, found["max"])) & mask_of(pc.greater_equal(ends.greatest, found["min"]))

    return run


def _some_between(ends: Ends, values: Ints) -> Mask | None:
    """The blocks between whose ends some of the values lie, which ascend."""
    there = ends.least.is_valid()
    least, greatest = (side.filter(there) for side in ends)
    if not is_exact([least]):
        return None
    found = mask_of(there).copy()
    low, high = (codes([side], len(side)) for side in (least, greatest))
    found[found] = values.searchsorted(low) < values.searchsorted(high, "right")
    return found


def rising(expr: Expr) -> Column | None:
    """The column of an expression whose value never falls where that of the column rises: if it fails for no end of a
    block, it fails for no row of it. None: it is another one."""
    match expr:
        case Column():
            return expr
        case Cast(arg, type) if type.kind in _RISING.get(arg.type.kind, ()):
            return rising(arg)
        case Call("date_trunc", (Literal(), arg)) if arg.type.kind is Kind.TIMESTAMP or _is_midnight(arg):
            return rising(arg)
        case Call("extract", (Literal(field, _), arg)) if field in _LARGEST and arg.type.kind in _PLAIN_MOMENTS:
            return rising(arg)
        case _:
            return None


def _is_midnight(expr: Expr) -> bool:
    return isinstance(expr, Cast) and expr.arg.type.kind is Kind.DATE and expr.type.kind is Kind.TIMESTAMPTZ


def ordered(left: Expr, function: str, values: pa.Array, type: SqlType) -> Sieve | None:
    """The sieve of a comparison of a rising expression with at least one of some values. None: there is none."""
    column = rising(left)
    if column is None or not has_threshold(left.type, type):
        return None
    tests = [threshold_at(Column(column.name, left.type), function, values.slice(row, 1), type)
             for row in range(len(values))]  # fmt: skip
    return any_of([_meeting(left, test) for test in tests if test is not None]) if tests and all(tests) else None


def _compared(function: str, left: Expr, right: Expr) -> Sieve | None:
    """The sieve of a comparison of a rising expression with a constant."""
    if isinstance(left, Literal):
        function, left, right = FLIPPED[function], right, left
    column = rising(left)
    if column is None or not isinstance(right, Literal):
        return None
    test = threshold_of(Call(function, (Column(column.name, left.type), right), BOOLEAN))
    return None if test is None else _meeting(left, test)


def _meeting(left: Expr, test: Threshold) -> Sieve:
    """The sieve of a threshold of the values of a rising expression."""
    if isinstance(left, Column):
        return lambda ends_of: None if (ends := ends_of(test.column)) is None else _may_meet(ends, test)
    computed = compile(left)

    def run(ends_of: EndsOf) -> Mask | None:
        ends = ends_of(test.column)
        if ends is None:
            return None
        sides = [computed.evaluate({test.column: side}, len(side)) for side in ends]
        if any(side.failures is not None for side in sides):
            return None
        return _may_meet(Ends(*(side.values for side in sides)), test)

    return run


def _may_meet(ends: Ends, test: Threshold) -> Mask | None:
    """The blocks in which some value may be ordered to a constant as a threshold allows."""
    constant = test.constant[0]
    if ends.least.type != constant.type:
        return None
    there: Mask = mask_of(ends.least.is_valid())
    found = np.zeros(len(there), np.bool_)
    if not constant.is_valid:
        return found
    if test.allowed & LOWER:
        found |= _less(ends.least, constant)
    if test.allowed & HIGHER:
        found |= _less(constant, ends.greatest)
    if test.allowed & EQUAL:
        found |= there & ~_less(constant, ends.least) & ~_less(ends.greatest, constant)
    return found


def _less(one: pa.Array | pa.Scalar, other: pa.Array | pa.Scalar) -> Mask:
    """Where one is less than the other, NaN being the greatest; not where it is NULL."""
    found: Mask = mask_of(pc.less(one, other))
    if pt.is_floating(one.type):
        found = found | (mask_of(pc.is_nan(other)) & mask_of(pc.invert(pc.is_nan(one))))
    return found


def _begins_with(name: str, text: str) -> Sieve | None:
    """The sieve of `name LIKE 'abc%'`: texts are ordered by their bytes."""
    if not text:
        return None
    start = text.encode()
    beyond = pa.scalar(start[:-1] + bytes((start[-1] + 1,)), pa.binary())  # no byte of UTF-8 is 255

    def run(ends_of: EndsOf) -> Mask | None:
        ends = ends_of(name)
        if ends is None:
            return None
        least, greatest = (side.cast(pa.binary()) for side in ends)
        return mask_of(pc.less(least, beyond)) & mask_of(pc.greater_equal(greatest, pa.scalar(start, pa.binary())))

    return run

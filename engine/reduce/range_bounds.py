"""The bounds of RANGE frames with an offset: where the sort key passes the row's own key plus or minus the offset."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from halfjoin.engine.reduce.partitions import Partitions
from halfjoin.engine.reduce.words import words
from halfjoin.engine.scalar import evaluate
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.scalar.values import raw, valid
from halfjoin.engine.updates.intervals import fields
from halfjoin.engine.updates.updates import Ints, Mask, where_true
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.casting import coerce
from halfjoin.sql.functions.resolve import resolve
from halfjoin.sql.types import BIGINT, FLOATS, INTEGERS, TIMESTAMP, Kind, SqlType

_KEY = "key"
_Keys = tuple[Ints, pa.Array]  # the number of the partition of each key, and the key


def range_bound(rows: Partitions, following: bool, offset: Expr, *, is_end: bool) -> Ints:
    """The position where each row's frame starts, or with `is_end` the position after its last row.

    A row whose key is NULL has its peers, the other NULLs, and no other row has them.

    Raises:
        Failed: a key plus or minus the offset is out of range; the mask marks the rows.
    """
    key = rows.order[0]
    column = rows.values(key.expr)
    plus = following != key.descending
    # Of infinity minus infinity PostgreSQL says that it holds all keys, so it is the end of the order.
    target, beyond = _moved(column, key.expr.type, offset, plus, upper=is_end != key.descending)
    null = ~valid(column)
    before = np.concatenate([[0], np.cumsum(~null)])
    known = where_true(~null)
    first = np.append(known, len(rows))[before[rows.first]]  # of the rows of the partition whose key is not NULL
    size = before[rows.end] - before[rows.first]
    passed = np.where(beyond, size if following else 0, 0)
    searched = where_true(~null & ~beyond)
    number = rows.numbers
    passed[searched] = _passed(
        (number[known], column.take(pa.array(known)).cast(target.type)),
        (number[searched], target.take(pa.array(searched))), key.descending, equal=is_end,
    ) - before[rows.first][searched]  # fmt: skip
    return np.where(null, rows.peer_end if is_end else rows.first_peer, first + passed)


def _moved(column: pa.Array, type: SqlType, offset: Expr, plus: bool, *, upper: bool) -> tuple[pa.Array, Mask]:
    """The keys plus or minus the offset, and where the result is beyond all values of the type."""
    nowhere = np.zeros(len(column), np.bool_)
    if type.kind in FLOATS:
        return _moved_floats(column, offset, plus, upper), nowhere
    if type.kind is Kind.TIME:  # months and days do not count, and a day has no end
        micros = fields(evaluate.compile(offset).evaluate({}, 1).values)[2]
        moved = raw(column) + (micros if plus else -micros)
        return pa.array(moved, mask=~valid(column)).view(column.type), nowhere
    own: Expr = Column(_KEY, type)
    own = coerce(own, BIGINT) if type.kind in INTEGERS else coerce(own, TIMESTAMP) if type.kind is Kind.DATE else own
    found = evaluate.compile(resolve("+" if plus else "-", (own, offset))).evaluate({_KEY: column}, len(column))
    if found.failures is not None:
        nowhere[found.failures.rows] = True
        if type.kind not in INTEGERS:
            raise Failed(str(found.failures.messages[0]), nowhere)
    return found.values, nowhere


def _moved_floats(column: pa.Array, offset: Expr, plus: bool, upper: bool) -> pa.Array:
    """NaN stays NaN. Infinity minus infinity is whatever holds all keys that are not NaN."""
    values = raw(column).astype(np.float64)
    span = evaluate.compile(offset).evaluate({}, 1).values[0].as_py()
    with np.errstate(over="ignore", invalid="ignore"):
        moved = values + (span if plus else -span)
    moved = np.where(np.isnan(moved) & ~np.isnan(values), np.inf if upper else -np.inf, moved)
    return pa.array(moved, mask=~valid(column))


def _passed(keys: _Keys, targets: _Keys, descending: bool, *, equal: bool) -> Ints:
    """For each target the number of keys before it, in the order of partitions and then of keys.

    `equal`: keys that equal the target count as well. Keys and targets are sorted together, so there is one sort for
    all rows of all partitions.
    """
    found = words(pa.concat_arrays([keys[1], targets[1]]))
    found = [~word for word in found] if descending else found
    is_target = np.arange(len(found[0])) >= len(keys[0])
    order = np.lexsort([is_target == equal, *found[::-1], np.concatenate([keys[0], targets[0]])])
    passed = np.empty(len(order), np.int64)
    passed[order] = np.cumsum(~is_target[order])
    return passed[len(keys[0]) :]

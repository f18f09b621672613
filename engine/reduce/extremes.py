"""The least and the greatest values of groups, in one pass over whole columns: of rows at one time, of which none goes.

Then no order is needed: a value that is not the least one now never becomes it. So a query or a first fill compares
each value once, and keeps a value for each group of a piece. Where rows go, or values have another order than Arrow's,
the groups' rows are read in order (`ordered`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.reduce.aggregates import each_once
from halfjoin.engine.reduce.at_once import is_one, tells_apart
from halfjoin.engine.reduce.law import Moments
from halfjoin.engine.reduce.least import extremes_by_place
from halfjoin.engine.reduce.lifted import Lifted, add_up, lift_all, sums_of
from halfjoin.engine.reduce.totals import Totals
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.updates.updates import Ints, Updates, concat, constant, indices_of, where_true
from halfjoin.planner.group_functions import Aggregates, Ordered
from halfjoin.sql.expr import Column
from halfjoin.sql.types import FLOATS, INTEGERS, Kind

_EXTREMES = {"min": pc.min, "max": pc.max}
# Values of these types are ordered as Arrow orders them, but for NaN.
_KINDS = frozenset((
    *INTEGERS, *FLOATS, Kind.NUMERIC, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.TEXT, Kind.VARCHAR,
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Extremes:
    """`rows`: the keys and the time of groups, of which some may come several times. `parts`: min and max of columns.
    `values`: for each part the value of each row; NULL if it has none."""

    rows: Updates
    parts: Sequence[Ordered]
    values: Sequence[pa.Array]

    def beside(self, lifted: Lifted, function: Aggregates) -> tuple[Lifted, Extremes]:
        """The entries of sums and these rows, one after the other in both: none of them adds to the other's values."""
        rows, own = concat([lifted.rows, self.rows]), len(self.rows)
        nothing = [Totals.read(part.kind, pa.nulls(own, pa.int64() if part.kind == "count" else pa.binary()))
                   for part in sums_of(function)]  # fmt: skip
        sums = tuple(Totals.concat([lifted.total(number), none]) for number, none in enumerate(nothing))
        values = [pa.concat_arrays([pa.nulls(len(lifted), one.type), one]) for one in self.values]
        return Lifted(rows, sums), replace(self, rows=rows, values=values)

    def each_once(self, lifted: Lifted, function: Aggregates) -> Updates | None:
        """As `engine.reduce.aggregates.each_once`, with the extremes: the entries of sums are of the same groups, in
        the same order."""
        if not self.rows.columns or self.rows.columns != lifted.rows.columns:
            return None
        found = each_once(function, lifted)
        return None if found is None or len(found) < len(lifted) else found.with_columns({
            part.column.name: one.cast(arrow_type(part.column.type))
            for part, one in zip(self.parts, self.values, strict=True)})  # fmt: skip

    def at(self, moments: Moments) -> list[pa.Array]:
        """The value of each part at each moment of the rows."""
        lengths = np.diff(moments.starts, append=len(moments.rows))
        number = np.arange(len(lengths)).repeat(lengths)
        order = indices_of(moments.rows)
        made = [one.take(order) for one in self.values]
        if len(lengths) < len(moments.rows):
            made = _grouped([pa.array(number)], self.parts, made)[1]
        places, after = np.full(len(moments), -1), where_true(~moments.was)[int(moments.begins):]
        places[after] = np.arange(len(after))
        found = pa.array(places, mask=places < 0)
        return [one.take(found).cast(arrow_type(part.column.type)) for part, one in zip(self.parts, made, strict=True)]


def are_extremes(function: Aggregates) -> bool:
    """Whether what does not add up in an aggregate is a least or greatest value, of types that Arrow orders as SQL."""
    return all(one.function in _EXTREMES and one.condition is None and isinstance(one.args[0], Column)
               and one.args[0].type.kind in _KINDS for one in function.ordered)  # fmt: skip


def extremes_of(parts: Sequence[Ordered]) -> list[str]:
    """The columns of parts that are `are_extremes`."""
    return [part.args[0].name for part in parts if isinstance(part.args[0], Column)]


def of_all(part: Ordered, values: pa.Array) -> pa.Array:
    """The least or greatest of some values, or NULL."""
    return _one_zero(pa.repeat(_EXTREMES[part.function](values), 1))


def extremes_and_sums(
    function: Aggregates, keys: Sequence[str], pieces: Iterable[Updates]
) -> tuple[Lifted, Extremes] | None:
    """What the groups of the pieces add to sums, and their extremes. Only one piece is in memory. None: there is no
    piece, or the groups' rows must be read in order.
    """
    rows, found = list[Updates](), list[Sequence[pa.Array]]()

    def noted() -> Iterator[tuple[Updates, Ints]]:
        for piece in pieces:
            groups, values, counts = _of_piece(function.ordered, keys, piece)
            if rows and rows[0].time.item(0) != piece.time.item(0):
                raise _InOrder
            time = constant(piece.time.item(0), len(counts))
            rows.append(Updates(dict(zip(keys, groups, strict=True)), time, constant(1, len(time))))
            found.append(values)
            yield piece, counts

    def counted() -> Iterator[Lifted]:
        for piece, counts in noted():
            if is_one(piece.diff) and piece.diff.item(0) == 1:
                yield Lifted(rows[-1], (Totals.lifted("count", (), counts),))
            else:
                yield from filter(None, [lift_all(function, keys, [piece])])

    if not are_extremes(function):
        return None
    try:
        lifted = lift_all(function, keys, (piece for piece, _ in noted())) if function.sums else add_up(counted())
    except _InOrder:
        return None
    if lifted is None:
        return None
    values = [pa.concat_arrays(each) for each in zip(*found, strict=True)]
    return lifted, Extremes(concat(rows), function.ordered, values)


class _InOrder(Exception):
    """The groups' rows must be read in order."""


def _of_piece(
    parts: Sequence[Ordered], keys: Sequence[str], piece: Updates
) -> tuple[list[pa.Array], list[pa.Array], Ints]:
    """The groups of a piece, as `_grouped`.

    Raises:
        _InOrder: rows go or come at several times, or values have another order than Arrow's.
    """
    by = [piece.columns[name] for name in keys]
    columns = [piece.columns[name] for name in extremes_of(parts)]
    if not is_one(piece.time) or not _only_comes(piece) or any(map(_has_nan, columns)):
        raise _InOrder
    if not all(tells_apart(array.type) for array in by):
        raise _InOrder
    return _grouped(by, parts, columns)


def _grouped(
    keys: Sequence[pa.Array], parts: Sequence[Ordered], columns: Sequence[pa.Array]
) -> tuple[list[pa.Array], list[pa.Array], Ints]:
    """The keys of the groups, for each part its value of every group, and how many rows each group has."""
    if not keys:
        values = [of_all(part, column) for part, column in zip(parts, columns, strict=True)]
        return [], values, np.array([len(columns[0])])
    placed = extremes_by_place(keys, [part.function for part in parts], columns)
    if placed is not None:
        return placed
    by = [f"key {number}" for number in range(len(keys))]
    names = [f"value {number}" for number in range(len(parts))]
    table = pa.table(dict(zip([*by, *names], [*keys, *columns], strict=True)))
    asked = [(name, part.function) for name, part in zip(names, parts, strict=True)]
    found = table.group_by(by, use_threads=False).aggregate([*asked, ([], "count_all")])
    made = {name: pa.concat_arrays(found.column(name).chunks) for name in found.column_names}
    values = [_one_zero(made[f"{name}_{function}"]) for name, function in asked]
    return [made[name] for name in by], values, made["count_all"].to_numpy()


def _one_zero(values: pa.Array) -> pa.Array:
    """-0.0 becomes 0.0, as they are equal."""
    return pc.add(values, pa.scalar(0.0, values.type)) if pt.is_floating(values.type) else values


def _has_nan(values: pa.Array) -> bool:
    return pt.is_floating(values.type) and bool(pc.any(pc.is_nan(values)).as_py())


def _only_comes(piece: Updates) -> bool:
    """Whether every row is there."""
    return bool((piece.diff[0] if piece.diff.strides == (0,) else piece.diff.min()) > 0)

"""Finds the rows of a collection whose keys a query tells: `WHERE k = 5`, `k IN (1, 2)`, or that another collection
has: `k IN (SELECT k FROM small)` (`planner.known`).

The keys are looked up in every run of an arrangement, as a half-join looks up changed rows. Codes are compared, not
keys: the operator of the path tests each row that is found. No row is found twice, since no code is asked for twice.
Where several arrangements find the rows (`j = 1 OR k = 2`), the keys tell which of them a row is taken from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.arrange.index import KeyColumns, count_all
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.part import Part, present
from halfjoin.engine.join.closing import RunsOf
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.scalar.literals import array_of_constants
from halfjoin.engine.updates.codes import codes, distinct
from halfjoin.engine.updates.consolidate import cancel, groups
from halfjoin.engine.updates.consolidate import distinct as distinct_rows
from halfjoin.engine.updates.updates import Ints, Mask, Updates, concat, gathered, indices_of
from halfjoin.planner.known import SCANNED
from halfjoin.planner.liveness import reads
from halfjoin.planner.plan import ArrangementKey, Known, KnownAny, KnownIn, KnownKeys, Version
from halfjoin.sql.expr import Column, Literal, columns_of
from halfjoin.sql.functions import cast
from halfjoin.sql.types import Kind, SqlType

_VALUE = "value"
_ALIKE = (frozenset((Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT)), frozenset((Kind.TEXT, Kind.VARCHAR)))


@dataclass(frozen=True, slots=True)
class KnownRows:
    """A compiled `Known`: the keys as columns, and their distinct codes."""

    arrangement: ArrangementKey
    columns: KeyColumns
    keys: list[pa.Array]
    codes: Ints

    def has(self, rows: Updates) -> Mask:
        """Which rows have one of the keys, not just the code of one."""
        arrays, places = self.columns(rows)
        count = len(self.keys[0])
        whole = [pa.concat_arrays([key, array.cast(key.type)]) for key, array in zip(self.keys, arrays, strict=True)]
        numbers = groups(whole, len(whole[0]))
        found: Mask = np.isin(numbers[count:], numbers[:count])
        if places is None:
            return found
        every = np.zeros(len(rows), np.bool_)
        every[places[found]] = True
        return every

    def __call__(self, lookup: RunsOf, closed: int, upper: int, names: Sequence[str]) -> Iterator[Updates]:
        """The updates with times below `upper` that have one of the keys, with the columns `names`, added up: only the
        contents at `upper - 1` matter, so their times have no meaning. Updates below `closed` may be added up before.
        """
        found = list[Updates]()
        for part in lookup(self.arrangement.collection, Version.AFTER) if len(self.codes) else ():
            for run in part.narrowed(self.arrangement, self.columns, self.keys, names):
                for _, rows, _ in run.find(self.arrangement, self.columns, self.codes, closed):
                    source = run.updates.columns
                    columns = gathered({name: source[name] for name in names}, indices_of(rows))
                    found.append(Updates(columns, run.updates.time[rows], run.diffs(rows, closed)))
        if not found:
            return
        whole = concat(found)
        early = whole.time < upper
        whole = whole if early.all() else whole.filter(early)
        if len(whole):
            yield cancel(whole, by_time=False)


@dataclass(frozen=True, slots=True)
class RowsKnownAny:
    """A compiled `KnownAny`, with one way for each arrangement. A row is taken from the first way whose keys it has.
    What else a way finds, by a code, depends on where the rows lie. `reads`: the columns that the keys read."""

    ways: tuple[KnownRows, ...]
    reads: frozenset[str]

    def __call__(self, lookup: RunsOf, closed: int, upper: int, names: Sequence[str]) -> Iterator[Updates]:
        """As `KnownRows`."""
        wanted = sorted(self.reads.union(names))
        for number, way in enumerate(self.ways):
            for rows in way(lookup, closed, upper, wanted):
                mine = way.has(rows)
                for earlier in self.ways[:number]:
                    mine &= ~earlier.has(rows)
                yield rows.filter(mine).select(names)


@dataclass(frozen=True, slots=True)
class RowsKnownIn:
    """A compiled `KnownIn`. `keys`: computes the keys from the columns `reads` of the collection that has them, which
    are of these `types`, there and here."""

    arrangement: ArrangementKey
    columns: KeyColumns
    source: str
    keys: KeyColumns
    types: Sequence[tuple[SqlType, SqlType]]
    reads: Sequence[str]
    null_safe: bool

    def __call__(self, lookup: RunsOf, closed: int, upper: int, names: Sequence[str]) -> Iterator[Updates]:
        """As `KnownRows`, or all updates, if there are more keys, or rows with them, than was expected, or a NULL that
        finds rows."""
        parts = lookup(self.arrangement.collection, Version.AFTER)
        keys = self._keys(lookup, closed)
        if keys is None:
            return present(parts, closed, names)
        found = distinct(codes(keys, len(keys[0])))
        every = sum(map(len, parts))
        if SCANNED * len(found) > every or SCANNED * self._rows(found, parts, closed) > every:
            return present(parts, closed, names)
        return KnownRows(self.arrangement, self.columns, keys, found)(lookup, closed, upper, names)

    def _rows(self, found: Ints, parts: Sequence[Part], closed: int) -> int:
        """How many rows in memory have these codes."""
        each = [run.entries(self.arrangement, self.columns, closed)
                for part in parts if part.in_memory for run in part.loaded(closed)]  # fmt: skip
        return sum(int(count_all(found, indexes).sum()) for indexes in each)

    def _keys(self, lookup: RunsOf, closed: int) -> list[pa.Array] | None:
        """The keys, as the arrangement has them, without NULLs; None: there is a NULL that finds rows. There may be
        keys of rows that have gone."""
        found = [[pa.nulls(0, arrow_type(there)) for there, _ in self.types]]
        for rows in present(lookup(self.source, Version.AFTER), closed, self.reads):
            arrays, _ = self.keys(rows)
            if self.null_safe and any(array.null_count for array in arrays):
                return None
            found.append([array.take(indices_of(distinct_rows(arrays, len(arrays[0])))) for array in arrays])
        each = [_fitted(pa.concat_arrays(arrays), *types)
                for arrays, types in zip(zip(*found, strict=True), self.types, strict=True)]  # fmt: skip
        there = reduce(pc.and_, (array.is_valid() for array in each))
        return [array.filter(there) for array in each]


FoundByKeys: TypeAlias = KnownRows | RowsKnownAny | RowsKnownIn


def compile_known(known: KnownKeys, registry: Registry) -> FoundByKeys:
    """Make the lookup of known keys executable. A value that the key's type does not have finds nothing."""
    match known:
        case Known():
            return _compiled([known], registry)
        case KnownAny(ways=ways):
            each = dict[ArrangementKey, list[Known]]()
            for way in ways:
                each.setdefault(way.arrangement, []).append(way)
            read = [columns_of(expr) for key in each for expr in key.keys]
            return RowsKnownAny(tuple(_compiled(same, registry) for same in each.values()),
                                frozenset[str]().union(*read))  # fmt: skip
        case KnownIn():
            return _compiled_in(known, registry)


def _compiled(same: Sequence[Known], registry: Registry) -> KnownRows:
    """The lookup of all keys of one arrangement."""
    key = same[0].arrangement
    keys = [pa.concat_arrays(arrays) for arrays in zip(*map(_keys_of, same), strict=True)]
    return KnownRows(key, key_columns(key, registry), keys, distinct(codes(keys, len(keys[0]))))


def _keys_of(known: Known) -> list[pa.Array]:
    """The combinations of the values, as columns."""
    each = [cells_of(values, expr.type) for expr, values in zip(known.arrangement.keys, known.values, strict=True)]
    if len(each) == 1:
        return each
    places = np.array(list(product(*(range(len(one)) for one in each))), np.int64).reshape(-1, len(each))
    return [one.take(pa.array(places[:, number])) for number, one in enumerate(each)]


def _compiled_in(known: KnownIn, registry: Registry) -> RowsKnownIn:
    key, source = known.arrangement, known.source
    read = frozenset[str]().union(*map(columns_of, source.keys),
                                  *map(reads, source.through.steps if source.through is not None else ()))
    return RowsKnownIn(
        key, key_columns(key, registry), source.collection, key_columns(source, registry),
        [(there.type, here.type) for there, here in zip(source.keys, key.keys, strict=True)], sorted(read),
        known.null_safe,
    )  # fmt: skip


def cells_of(values: Sequence[Literal], type: SqlType) -> pa.Array:
    """The values as a column of a key. Those that do not fit its type are left out."""
    cells = list[pa.Array]()
    for own in dict.fromkeys(value.type for value in values):
        column = array_of_constants([value.value for value in values if value.type == own], own)
        cells.append(_fitted(column, own, type).drop_null())
    return pa.concat_arrays(cells or [_fitted(pa.nulls(0, arrow_type(type)), type, type)])


def _fitted(column: pa.Array, own: SqlType, type: SqlType) -> pa.Array:
    """Values as those of a key, NULL where they do not fit its type; all integers are of one type."""
    if own != type and not any(own.kind in kinds and type.kind in kinds for kinds in _ALIKE):
        fitted = cast(Column(_VALUE, own), type, explicit=True)
        column = compile(fitted).evaluate({_VALUE: column}, len(column)).values
    return column.cast(pa.int64()) if type.kind in _ALIKE[0] else column

"""Look keys up in a file: statistics exclude row groups, the key's columns select rows, then the rows are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.arrange.index import Index, KeyColumns, build
from halfjoin.engine.storage.lots import Footers, Lot
from halfjoin.engine.storage.mapped import Mapped
from halfjoin.engine.storage.parquet_reader import Bounds, OpenFile
from halfjoin.engine.updates.codes import codes, distinct, is_exact
from halfjoin.engine.updates.updates import MAXIMUM, Ints, Mask, Updates, constant, gather, indices_of, taken
from halfjoin.planner.plan import ArrangementKey
from halfjoin.sql.expr import Column, columns_of

_SIEVE = 32  # the holes of a sieve are at most this fraction (1/32) of it
_FLAGS = 8  # bytes of flags for each entry
CODE = "__code"  # a column in an arrangement's files: the code of the row's key, which sorts them


class _Sought(NamedTuple):
    """What to look for in a column: the codes of values (sorted), and NULL."""

    values: Ints
    null: bool


@dataclass(frozen=True, slots=True)
class KeySearch:
    """Keys to look for in an arrangement: their codes (sorted, distinct), and what these imply for key columns whose
    values are their codes."""

    key: ArrangementKey
    columns: KeyColumns
    probes: Ints
    sought: Mapping[str, _Sought]
    texts: Mapping[str, tuple[str, str]]  # for key columns of texts: the first and the last text to look for

    def find(
        self, source: OpenFile, schema: Mapping[str, pa.DataType], names: Sequence[str], coded: bool, most: int
    ) -> Iterator[Updates]:
        """These columns of the updates in a file that have one of the keys, or a key with the same code.

        Args:
            source: the file.
            schema: the collection's columns.
            names: the columns to read.
            coded: whether the file has the codes of this key.
            most: about how many rows to search at a time.
        """
        first = {CODE: pa.int64()} if coded else {name: schema[name] for name in key_reads(self.key, schema)}
        rest = {name: schema[name] for name in names if name not in first}
        for part in source.parts(self.possible(source, schema, coded), most):
            read = source.columns(part, first)
            source.decoded += (length := int(source.group_rows[part].sum()))
            rows = _members(codes([read[CODE]], length), self.probes) if coded else self._rows(read, length)
            if not len(rows):
                continue
            # Read only row groups with such rows: keys that are new to a table are in almost none.
            ends = np.cumsum(source.group_rows[part])
            groups, numbers = np.unique(ends.searchsorted(rows, "right"), return_inverse=True)
            sizes = source.group_rows[part[groups]]
            others = source.updates(part[groups], rest)
            found = others.take(rows - (ends[groups] - np.cumsum(sizes))[numbers])
            indices = indices_of(rows)
            mine = {name: gather(column, indices) for name, column in read.items()}
            if not coded:
                found = found.with_columns(mine)
            elif self.key.through is not None:
                found = self._each_once(found, codes([mine[CODE]], len(found)))
            yield found

    def index(self, lot: Lot, schema: Mapping[str, pa.DataType]) -> Index:
        """An index of all rows of a lot by the key."""
        nothing = constant(0, lot.rows)
        read = {name: lot.column(name, schema[name]) for name in key_reads(self.key, schema)}
        arrays, origins = self.columns(Updates(read, nothing, nothing))
        return build(arrays, origins, lot.rows if origins is None else len(origins))

    def rows(self, index: Index) -> Ints:
        """The positions of the rows in a lot that have one of the keys by its index, ascending."""
        found = [rows for _, rows in index.find(self.probes)]
        return np.unique(np.concatenate(found)).astype(np.int64) if found else np.zeros(0, np.int64)

    def find_rows(
        self, source: OpenFile, schema: Mapping[str, pa.DataType], names: Sequence[str], rows: Ints, most: int
    ) -> Iterator[Updates]:
        """As `find`, where the positions of the rows in the file are known."""
        wanted = {name: schema[name] for name in dict.fromkeys([*names, *key_reads(self.key, schema)])}
        ends = np.cumsum(source.group_rows)
        groups, mask = ends.searchsorted(rows, "right"), np.zeros(source.groups, np.bool_)
        mask[groups] = True
        for part in source.parts(mask, most):
            some = slice(*groups.searchsorted((part[0], part[-1] + 1)))
            sizes, numbers = source.group_rows[part], part.searchsorted(groups[some])
            source.decoded += int(sizes.sum())
            shifts = ends[part] - np.cumsum(sizes)
            yield source.updates(part, wanted).take(rows[some] - shifts[numbers])

    def find_mapped(
        self, part: Mapped, names: Sequence[str], coded: bool, most: int, rows: Ints | None = None
    ) -> Iterator[Updates]:
        """The same, in a lot's mapped copy. `most`: about how many rows to give at a time. `rows`: their positions, if
        they are known."""
        updates, rows = part.updates, self._mapped_rows(part, coded) if rows is None else rows
        if len(rows) and not coded:
            names = [*dict.fromkeys([*names, *key_reads(self.key, updates.columns)])]
        for start in range(0, len(rows), most):
            some = rows[start : start + most]
            columns = taken({name: updates.columns[name] for name in names}, some)
            found = Updates(columns, updates.time[some], updates.diff[some])
            if coded and self.key.through is not None:
                found = self._each_once(found, part.ascending[CODE][some])
            yield found

    def _mapped_rows(self, part: Mapped, coded: bool) -> Ints:
        """The positions of rows that have one of the codes, ascending."""
        if coded:
            return _within(*part.spans(CODE, self.probes))
        spans = [part.spans(name, one.values) for name, one in self.sought.items() if name in part.ascending]
        reads = key_reads(self.key, part.updates.columns)
        if not spans:
            return self._rows({name: part.updates.columns[name] for name in reads}, len(part.updates))
        rows = _within(*min(spans, key=lambda span: int((span[1] - span[0]).sum())))
        if len(self.key.keys) == 1 or not len(rows):
            return rows
        arrays, _ = self.columns(part.updates.select(reads).take(rows))
        return rows[_members(codes(arrays, len(rows)), self.probes)]

    def _each_once(self, found: Updates, under: Ints) -> Updates:
        """Keep one copy of each row. A row is stored under each of its codes; the least wanted code counts."""
        arrays, origins = self.columns(found)
        entries = codes(arrays, len(found) if origins is None else len(origins))
        hits = _members(entries, self.probes)
        least = np.full(len(found), MAXIMUM)
        np.minimum.at(least, hits if origins is None else origins[hits], entries[hits])
        return found.filter(least == under)

    def possible(self, source: OpenFile | Footers, schema: Mapping[str, pa.DataType], coded: bool) -> Mask:
        """The row groups of a file, or the files of a run, that may hold one of the keys."""
        groups = np.ones(source.groups, np.bool_)
        if coded:
            groups &= _overlapping(source.bounds(CODE, pa.int64()), _Sought(self.probes, False))
        for name, sought in self.sought.items():
            groups &= _overlapping(source.bounds(name, schema[name]), sought)
        for name, (low, high) in self.texts.items() if not coded else ():
            groups &= source.between(name, low, high)
        return groups

    def _rows(self, read: Mapping[str, pa.Array], length: int) -> Ints:
        """The positions of rows that have one of the codes, ascending."""
        updates, rows = Updates(dict(read), constant(0, length), constant(1, length)), None
        if len(self.key.keys) > 1:
            for name, sought in self.sought.items():  # if one column ascends, few codes remain to compute
                values = codes([read[name]], length)
                if not read[name].null_count and _ascends(values):
                    rows = _members(values, sought.values)
                    updates = updates.take(rows)
                    break
        arrays, origins = self.columns(updates)
        found = _members(codes(arrays, len(updates) if origins is None else len(origins)), self.probes)
        if origins is not None:
            found = distinct(origins[found])
        return found if rows is None else rows[found]


def lookup(key: ArrangementKey, columns: KeyColumns, keys: Sequence[pa.Array]) -> KeySearch:
    """A search for these keys. `columns` computes the arrangement's key columns."""
    sought, texts, probes = {}, {}, distinct(codes(keys, len(keys[0])))
    for expr, array in zip(key.keys, keys, strict=True) if key.through is None else ():
        values = array.drop_null()
        if isinstance(expr, Column) and is_exact([values]):
            alone = len(keys) == 1 and not array.null_count
            found = probes if alone else distinct(codes([values], len(values)))
            sought[expr.name] = _Sought(found, array.null_count > 0)
        elif isinstance(expr, Column) and pa.types.is_string(array.type) and not array.null_count and len(array):
            ends = pc.min_max(array)
            texts[expr.name] = ends["min"].as_py(), ends["max"].as_py()
    return KeySearch(key, columns, probes, sought, texts)


def key_reads(key: ArrangementKey, schema: Mapping[str, pa.DataType]) -> list[str]:
    """The collection's columns from which an arrangement's keys are computed."""
    if key.through is not None:
        return list(schema)
    return sorted({name for expr in key.keys for name in columns_of(expr)})


def _members(entries: Ints, values: Ints) -> Ints:
    """The positions of entries that are among the values (sorted, distinct), ascending."""
    if not len(entries) or not len(values):
        return np.zeros(0, np.int64)
    if not _ascends(entries):
        return _among(entries, values)
    values = values[values.searchsorted(entries[0]) : values.searchsorted(entries[-1], "right")]
    low, high = entries.searchsorted(values), entries.searchsorted(values, "right")
    return _within(low, high)


def _among(entries: Ints, values: Ints) -> Ints:
    """The positions of entries that are among the values (sorted, distinct), in order. A search for each entry would
    wait for memory at each of its steps. So where values are close together, each number from the least to the greatest
    has a flag; elsewhere entries are sieved first: those are left whose last bits are those of a value."""
    span = int(values[-1]) - int(values[0])
    if span < _FLAGS * len(entries):
        flags = np.zeros(span + 2, np.bool_)  # the last one is that of all other numbers
        flags[values - values[0]] = True
        places = np.minimum((entries - values[0]).view(np.uint64), np.uint64(span + 1))  # what is less wraps around
        return np.flatnonzero(flags[places.view(np.int64)])
    bits = np.int64((1 << min(24, (len(values) * _SIEVE).bit_length())) - 1)
    sieve = np.zeros(int(bits) + 1, np.bool_)
    sieve[values & bits] = True
    rows = np.flatnonzero(sieve[entries & bits])
    found = entries[rows]
    hits: Ints = rows[values.take(values.searchsorted(found), mode="clip") == found]
    return hits


def _within(low: Ints, high: Ints) -> Ints:
    """The numbers in `[low, high)`, for one pair after the other."""
    counts = high - low
    if not len(counts):
        return counts
    return np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())


def _ascends(entries: Ints) -> bool:
    return bool((entries[1:] >= entries[:-1]).all())


def _overlapping(bounds: Bounds | None, sought: _Sought) -> Mask | bool:
    """The row groups that may hold one of the values; all if their bounds are unknown."""
    if bounds is None:
        return True
    least, greatest, nulls = bounds
    mask: Mask = np.searchsorted(sought.values, least, "left") < np.searchsorted(sought.values, greatest, "right")
    return mask | nulls if sought.null else mask

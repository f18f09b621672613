"""Divide a run's rows into lots by key: all rows of one key are in one lot, and a lot's keys are close together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.storage.parquet_reader import OpenFile, opened
from halfjoin.engine.storage.stored_run import StoredRun
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes, mix
from halfjoin.engine.updates.updates import Ints, Mask, Updates, concat, empty


@dataclass(frozen=True, slots=True)
class Lot:
    """The rows whose first key column, a code or a text, is in `[low, high)` (None: unbounded); among these the rows
    for which the mixed code of the whole key leaves the remainder `rest` when divided by `of`."""

    key: tuple[str, ...]
    low: Any
    high: Any
    rest: int
    of: int

    def read(self, run: StoredRun, names: Sequence[str]) -> Updates:
        """Read its rows with these columns, which include the key."""
        schema, first = {name: run.schema[name] for name in names}, self.key[0]
        found = [empty(schema)]
        for source in (opened(run.place, file.name) for file in run.files):
            groups = self._groups(source, run.schema[first])
            found += [updates.filter(self._mine(updates)) for updates in source.read(groups, schema, limits.READ_ROWS)]
        return concat(found)

    def _groups(self, source: OpenFile, kind: pa.DataType) -> Mask:
        """The row groups that may have some of its rows."""
        ends, groups = _ends(source, self.key[0], kind), np.ones(source.groups, np.bool_)
        if ends is not None and self.low is not None:
            groups &= ends[1] >= _bound(self.low)
        if ends is not None and self.high is not None:
            groups &= ends[0] < _bound(self.high)
        return groups

    def _mine(self, updates: Updates) -> Mask:
        mine, first = np.ones(len(updates), np.bool_), updates.columns[self.key[0]]
        values = first if pa.types.is_string(first.type) else pa.array(codes([first], len(first)))
        if self.low is not None:
            mine &= pc.greater_equal(values, self.low).to_numpy(zero_copy_only=False)
        if self.high is not None:
            mine &= pc.less(values, self.high).to_numpy(zero_copy_only=False)
        if self.of > 1:
            whole = codes([updates.columns[name] for name in self.key], len(updates))
            mine &= mix(whole.view(np.uint64)) % np.uint64(self.of) == self.rest
        return mine


def lots_of(run: StoredRun, key: tuple[str, ...], most: int) -> Iterator[Lot]:
    """Lots of about `most` rows of a run, as far as statistics tell where the rows are."""
    sources = [opened(run.place, file.name) for file in run.files]
    ends = [_ends(source, key[0], run.schema[key[0]]) for source in sources]
    known = [found for found in ends if found is not None]
    if not known or len(known) < len(sources):
        yield from _by_codes(key, None, None, len(run), most)
        return
    least, greatest = (np.concatenate(sides) for sides in zip(*known, strict=True))
    rows = np.concatenate([source.group_rows for source in sources])
    by_low, by_high = np.argsort(least, kind="stable"), np.argsort(greatest, kind="stable")
    lows, begun, ended = least[by_low], _summed(rows[by_low]), _summed(rows[by_high])
    wanted = np.arange(most, len(run), most)
    starts = np.unique(lows.searchsorted(lows[np.minimum(begun.searchsorted(wanted), len(lows) - 1)]))
    starts = starts[starts > 0]
    cuts = [None, *lows[starts].tolist(), None]
    before = [0, *ended[greatest[by_high].searchsorted(lows[starts])].tolist()]
    for first, last, size in _worthwhile([*begun[starts].tolist(), len(run)], before, most):
        yield from _by_codes(key, cuts[first], cuts[last + 1], size, most)


def _worthwhile(begun: Sequence[int], before: Sequence[int], most: int) -> list[tuple[int, int, int]]:
    """Join neighbouring ranges where that saves reading. A result has its first range, its last, and the rows to read.

    `begun`: the rows of groups that begin below a range's end. `before`: the rows of groups that end below its start.
    Where groups overlap, a range may read far more rows than begin in it. Joined with the next, it reads them once.
    """
    found = [(0, 0, begun[0] - before[0])]
    for number in range(1, len(begun)):
        first, _, size = found[-1]
        both, alone = begun[number] - before[first], begun[number] - before[number]
        if both * _parts(both, most) <= size * _parts(size, most) + alone * _parts(alone, most):
            found[-1] = first, number, both
        else:
            found.append((number, number, alone))
    return found


def _summed(rows: Ints) -> Ints:
    return np.concatenate([[0], np.cumsum(rows)])


def _parts(rows: int, most: int) -> int:
    return rows // (2 * most) + 1


def _by_codes(key: tuple[str, ...], low: Any, high: Any, rows: int, most: int) -> Iterator[Lot]:
    """A range of the first column, divided further by codes if it has many more rows than `most`."""
    of = _parts(rows, most)
    for rest in range(of):
        yield Lot(key, low, high, rest, of)


def _ends(source: OpenFile, name: str, kind: pa.DataType) -> tuple[Any, Any] | None:
    """The least and the greatest value of a column in each row group. None if they have no order or are unknown."""
    if pa.types.is_string(kind):
        return source.texts(name)
    bounds = source.bounds(name, kind)
    return None if bounds is None else bounds[:2]


def _bound(value: Any) -> Any:
    """The value in an array, because numpy cuts trailing NULs off a single text."""
    return np.array([value], object if isinstance(value, str) else np.int64)

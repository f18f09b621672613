"""Present, absent and padded inputs: half-joins that ask whether a key is present, and keys that appear or disappear.

A key is present at a time when the counts of its rows, at that time or before, add up to more than 0. The presence of a
key is a collection: +1 at a time at which the key appears, -1 at a time at which it disappears. It keeps nothing: it is
computed from the arrangement. A lookup of a key gives

    present   its presence
    absent    1 at the least time, minus its presence
    padded    its rows; and the default row as often as "absent" says

Reduce law. Only closed times count: before the batch those below the old `upper`, after it those below the new one.
Updates at open times may still change; they wait in the input, which is stored. A padded lookup finds the row of such
an update, but the update does not change the default row yet. When its time closes, the path of this input removes the
default row.

Three wrong ways, each of which a test runs beside the right one: to count all rows that have arrived; to use "present
after the batch" minus "present before it" as the change, at one time; to look only at the keys of the batch's own rows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.index import Index, KeyColumns
from halfjoin.engine.arrange.part import Part, present
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.half_join import HalfJoinOperator, compile_half_join
from halfjoin.engine.join.within import Within, WithinKnown, compile_within
from halfjoin.engine.kernels import native, summing
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar import Scalar, compile
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.codes import distinct as ascending
from halfjoin.engine.updates.consolidate import distinct, numbered
from halfjoin.engine.updates.updates import (
    MAXIMUM,
    MINIMUM,
    Ints,
    Mask,
    Updates,
    bits,
    constant,
    ends,
    indices_of,
    product,
    where_true,
)
from halfjoin.planner.plan import Appearing, HalfJoin, InputKind
from halfjoin.sql.expr import columns_of

_FEW = 16  # rows; default rows so few are kept
_FEW_ROWS = 4  # of a key; to find them again costs less than to tell keys apart
_MANY = 1 << 10  # keys; fewer are told apart as fast
_SHARE = 0.25  # of the rows that come; each time that fewer come all rows would be grouped anew


@dataclass(frozen=True, slots=True)
class PresenceOperator:
    """A compiled `HalfJoin` of a present, absent or padded input."""

    spec: HalfJoin
    rows: HalfJoinOperator  # the same half-join, as of a plain input
    default: tuple[tuple[str, Scalar], ...]  # the stream's columns, and the default row's values
    within: Within | WithinKnown | None = None

    def __call__(
        self, stream: Updates, runs: Sequence[Part], closed: int, upper: int, begins: int = MINIMUM, share: float = 1.0
    ) -> Iterator[Updates]:
        """The stream's rows with the result of the lookup for each, in parts that fit in memory.

        Presence counts times below `upper`. Times below `closed`, which is at or below `upper`, are added up; the
        stream must have no such times, and none below `begins`. It is a `share` of the rows that are to come here.
        """
        if self.within is not None and len(stream):
            runs = self.within(self.keys(stream)[0], runs, closed, upper, share)
        runs = self.counting(runs, closed)
        if self.spec.kind is InputKind.PADDED and self.rows.probes and not self.rows.candidates:
            positions, time, diff = yield from self._rows_and_presence(stream, runs, closed, upper, begins)
        else:
            if self.spec.kind is InputKind.PADDED:
                yield from self.rows(stream, runs, closed, begins)
            positions, time, diff = self.presence(stream, runs, closed, upper, share=share)
        if self.spec.kind is not InputKind.PRESENT:
            if not len(positions) and len(stream):  # no key is there at any time
                yield stream.with_columns({name: _repeated(scalar, len(stream)) for name, scalar in self.default})
                return
            there = np.zeros(len(stream), np.bool_)  # present before `closed`: no default row to begin with
            if closed > MINIMUM:
                earlier = time < closed
                there[positions[earlier]] = True
                if there.all() and earlier.all():  # no default row comes or goes
                    return
                later = ~earlier
                positions, time, diff = positions[later], time[later], diff[later]
            always = where_true(~there)
            positions = np.concatenate([always, positions])
            time = np.concatenate([np.full(len(always), MINIMUM), time])
            diff = np.concatenate([np.ones(len(always), np.int64), -diff])
        if len(positions):
            found = stream.take(positions)
            added = {name: _repeated(scalar, len(found)) for name, scalar in self.default}
            yield Updates({**found.columns, **added}, np.maximum(found.time, time), product(found.diff, diff))

    def _rows_and_presence(
        self, stream: Updates, runs: Sequence[Part], closed: int, upper: int, begins: int
    ) -> Generator[Updates, None, tuple[Ints, Ints, Ints]]:
        """The stream's rows with their partners. These tell the presence of the rows' keys, which it returns."""
        positions = where_true(self.keys(stream)[1])
        found: list[tuple[Ints, Ints, Ints]] = []
        yield from self.rows(stream.take(positions) if len(positions) < len(stream) else stream, runs, closed,
                             begins, note=found.append)  # fmt: skip
        which, time, diff = _steps(*_counted(found, closed, upper))
        return positions[which], time, diff

    def presence(
        self, stream: Updates, runs: Sequence[Part], closed: int, upper: int, *, unique: bool = False,
        share: float = 0.0,
    ) -> tuple[Ints, Ints, Ints]:  # fmt: skip
        """The presence of the keys of the stream's rows: positions of rows, times, diffs. `unique`: no key comes
        twice. `share`: as for a call."""
        arrays, alive = self.keys(stream)
        positions = where_true(alive)
        keys = arrays if len(positions) == len(stream) else [array.take(indices_of(positions)) for array in arrays]
        once, count = unique or len(positions) < 2, len(positions)
        if share > _SHARE and count >= _MANY and upper <= closed:
            here = self._grouped(keys, runs, closed, upper)
            if here is not None:
                return positions[here], constant(closed - 1, len(here)), constant(1, len(here))
        if once or (count >= _MANY and self._finds_few(runs, closed)):
            found = self._counts(keys, count, runs, closed, upper, MAXIMUM if once else _FEW_ROWS * count)
            if found is not None:
                which, time, diff = _steps(*found)
                return positions[which], time, diff
        numbers, firsts = numbered(keys, count)
        found = self._counts([key.take(indices_of(firsts)) for key in keys], len(firsts), runs, closed, upper)
        assert found is not None  # without a bound
        which, time, diff = _steps(*found)
        counts = np.bincount(which, minlength=len(firsts))
        starts, counts = (counts.cumsum() - counts)[numbers], counts[numbers]
        entries = np.arange(int(counts.sum())) + np.repeat(starts - (counts.cumsum() - counts), counts)
        return positions.repeat(counts), time[entries], diff[entries]

    def _grouped(self, keys: list[pa.Array], parts: Sequence[Part], closed: int, upper: int) -> Ints | None:
        """The positions of the keys that are present, in a query, where no index has the rows: to sort all of them
        costs more than to group them by their keys. None: most rows are in an index, or there is no kernel."""
        key = self.spec.arrangement
        if not keys or not native.on or self.rows.candidates or not all(part.in_memory for part in parts):
            return None
        runs = [run for part in parts for run in part.loaded(closed)]
        if 2 * sum(len(run) for run in runs if run.grouped_for(key)) <= sum(map(len, runs)):
            return None
        pieces = list[tuple[list[pa.Array], list[pa.Array], Ints]]()
        for run in runs:
            rows = run.updates.before(upper)
            arrays, origins = self.rows.columns(rows)
            pieces.append((arrays, [], rows.diff if origins is None else rows.diff[origins]))
        asked = len(keys[0])
        found = summing.grouped([*pieces, (keys, [], constant(0, asked))], [(0, ())], numbered=True)
        if found is None or found.numbers is None or isinstance(found.sums[0], tuple):
            return None
        return where_true((found.sums[0] > 0)[found.numbers[len(found.numbers) - asked :]])

    def _finds_few(self, parts: Sequence[Part], closed: int) -> bool:
        """Whether a key finds so few rows that it may be looked up as often as it comes."""
        key, columns = self.spec.arrangement, self.rows.columns

        def are_few(index: Index) -> bool:
            return len(index) <= (_FEW_ROWS if index.exact else 1) * index.about_distinct()

        if not key.keys or not all(part.in_memory for part in parts):
            return False
        return all(all(map(are_few, run.entries(key, columns, closed)))
                   for part in parts for run in part.loaded(closed))  # fmt: skip

    def keys(self, stream: Updates) -> tuple[list[pa.Array], Mask]:
        """The keys that rows look up, and a mask of the rows whose key may be present.

        A NULL is never present, unless NULL matches NULL. A key whose expression fails is not present either: it is a
        number with more digits than any present key.
        """
        alive: Mask = np.ones(len(stream), np.bool_)
        arrays = []
        for (scalar, _), null_safe in zip(self.rows.probes, self.spec.null_safe, strict=True):
            result = scalar.evaluate(stream.columns, len(stream))
            arrays.append(result.values)
            if result.failures is not None:
                alive[result.failures.rows] = False
            if result.values.null_count and not null_safe:
                alive &= result.values.is_valid().to_numpy(zero_copy_only=False)
        return arrays, alive

    def _counts(
        self, keys: list[pa.Array], count: int, runs: Sequence[Part], closed: int, upper: int, most: int = MAXIMUM
    ) -> tuple[Ints, Ints, Ints] | None:
        """The rows of each of `count` keys at times below `upper`: the key's number, the time, the diff. None: there
        are more than `most`."""
        key, columns = self.spec.arrangement, self.rows.columns
        found: list[tuple[Ints, Ints, Ints]] = []
        if not keys:  # every row has the same key
            pieces = present(runs, closed, ())
            found += [(np.zeros(len(piece), np.int64), piece.time, piece.diff) for piece in pieces]
        else:
            probes, exact = codes(keys, count), is_exact(keys)
            for one in runs:
                for run in one.narrowed(key, columns, keys, ()):
                    for numbers, rows, apart in run.find(key, columns, probes, closed):
                        most -= len(numbers)
                        if most < 0:
                            return None
                        if not (exact and apart):
                            numbers, rows = self.rows.verified(keys, numbers, run, rows)
                        found.append((numbers, run.updates.time[rows], run.diffs(rows, closed)))
        return _counted(found if count else [], closed, upper)

    def counting(self, runs: Sequence[Part], closed: int) -> Sequence[Part]:
        """The rows to look up. Without a key no index leaves out those that do not meet the input's conditions."""
        if self.rows.probes or self.spec.arrangement.through is None:
            return runs
        pieces = ((piece, self.rows.columns(piece)[1]) for piece in present(runs, closed))
        return [Run(piece if origins is None else piece.take(origins)) for piece, origins in pieces]


@dataclass(frozen=True, slots=True)
class AppearingKeys:
    """A compiled `Appearing`: the keys that appear or disappear in an input that is not plain."""

    asked: PresenceOperator
    keys: KeyColumns
    names: tuple[str, ...]  # the stream's columns for the key
    default: tuple[tuple[str, Scalar], ...]
    sign: int

    def __call__(self, closing: Updates, after: Sequence[Part], closed: int, upper: int) -> Updates:
        """The keys that appear or disappear at times in `[closed, upper)`.

        `closing` has the input's updates at these times, whenever they arrived; `after` has all its parts.
        """
        arrays, _ = self.keys(closing)
        count = len(arrays[0]) if arrays else min(1, len(closing))
        if count > 1:
            firsts = distinct(arrays, count)
            arrays, count = [array.take(indices_of(firsts)) for array in arrays], len(firsts)
        columns = dict(zip(self.names, arrays, strict=True))
        stream = Updates(columns, constant(MINIMUM, count), constant(1, count))
        runs = self.asked.counting(after, closed)
        positions, time, diff = self.asked.presence(stream, runs, closed, upper, unique=True)
        new = where_true(time >= closed)
        found = stream.take(positions[new]).columns
        default = {name: _repeated(scalar, len(new)) for name, scalar in self.default}
        return Updates({**found, **default}, time[new], diff[new] * self.sign)


def compile_presence(spec: HalfJoin, registry: Registry) -> PresenceOperator:
    """Make a half-join of a present, absent or padded input executable."""
    default = tuple((name, compile(value)) for (_, name), value in zip(spec.fetch, spec.default, strict=True))
    return PresenceOperator(spec, compile_half_join(spec, registry), default, compile_within(spec, registry))


def compile_appearing(spec: Appearing, kind: InputKind, registry: Registry) -> AppearingKeys:
    """Make the start of a path from an input of this kind executable."""
    asked = compile_presence(spec.half_join, registry)
    names = tuple(name for probe in spec.half_join.probe for name in columns_of(probe))
    default = tuple((name, compile(value)) for name, value in spec.default)
    return AppearingKeys(asked, asked.rows.columns, names, default, 1 if kind is InputKind.PRESENT else -1)


def _repeated(scalar: Scalar, length: int) -> pa.Array:
    """A constant as a column."""
    return _kept(scalar, length) if length <= _FEW else scalar.evaluate({}, length).values


@lru_cache(maxsize=1024)
def _kept(scalar: Scalar, length: int) -> pa.Array:
    return scalar.evaluate({}, length).values


def _counted(found: Sequence[tuple[Ints, Ints, Ints]], closed: int, upper: int) -> tuple[Ints, Ints, Ints]:
    """What was found at times below `upper`; those below `closed` as one time."""
    if not found:
        none = np.zeros(0, np.int64)
        return none, none, none
    which, time, diff = (np.concatenate(column) for column in zip(*found, strict=True))
    if closed > MINIMUM:
        time = np.maximum(time, closed - 1)
    counted = time < upper
    return (which, time, diff) if counted.all() else (which[counted], time[counted], diff[counted])


def _steps(which: Ints, time: Ints, diff: Ints) -> tuple[Ints, Ints, Ints]:
    """Where the running sum of a key turns positive (+1) and where it stops being positive (-1): keys, times, diffs.

    >>> which, time, diff = (np.array(column) for column in ([0, 0, 0, 1], [5, 3, 7, 4], [-2, 1, 2, -1]))
    >>> [column.tolist() for column in _steps(which, time, diff)]
    [[0, 0, 0], [3, 5, 7], [1, -1, 1]]
    """
    if not len(which):
        return which, time, diff
    least, most = ends(time)
    if least == most and not (diff <= 0).any():  # of a query, most often: every key is there
        which = ascending(which)
        return which, constant(least, len(which)), constant(1, len(which))
    order = np.lexsort((time, which))
    which, time, diff = which[order], time[order], diff[order]
    opens = np.ones(len(which), np.bool_)  # the first row of each key
    opens[1:] = which[1:] != which[:-1]
    if (diff > 0).all():  # a key that has come stays
        return which[opens], time[opens], np.ones(np.count_nonzero(opens), np.int64)
    if bits(diff) + len(diff).bit_length() > 62:
        diff = diff.astype(object)  # the sums may not fit an int64
    sums = np.cumsum(diff)
    firsts = where_true(opens)
    sums = sums - np.repeat(sums[firsts] - diff[firsts], np.diff(np.append(firsts, len(which))))
    lasts = where_true(np.append((which[1:] != which[:-1]) | (time[1:] != time[:-1]), True))
    there = (sums[lasts] > 0).astype(np.int64)
    before = np.where(np.append(True, which[lasts][1:] != which[lasts][:-1]), 0, np.append(0, there[:-1]))
    changed = where_true(there != before)
    return which[lasts][changed], time[lasts][changed], (there - before)[changed]

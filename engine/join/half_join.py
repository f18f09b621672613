"""The half-join: changed rows look their partners up in one arrangement.

Delta law. A result tuple is produced once, by the path of the component that arrived last, so the caller decides which
runs are looked up: those before this batch, or those after it. The result's time is the maximum of the components'
times, its diff the product of their diffs. (McSherry's dogsdogsdogs: https://github.com/TimelyDataflow/differential-dataflow.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.netting import together
from halfjoin.engine.arrange.run import KeyColumns, Part, Run, present
from halfjoin.engine.linear.evaluate import evaluate_all
from halfjoin.engine.linear.failures import DROPPED
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar import Scalar, compile, mask_of
from halfjoin.engine.updates.codes import codes, is_exact, same
from halfjoin.engine.updates.updates import MINIMUM, Ints, Mask, Updates, gather, indices_of, product
from halfjoin.planner.linear import Explode
from halfjoin.planner.liveness import reads
from halfjoin.planner.plan import HalfJoin
from halfjoin.sql.expr import Expr, columns_of

_PROBE = "#probe"  # no SQL column has such a name
_PAIRS = 1 << 20  # that are put together at a time
_BYTES = 1 << 28  # of their texts
_FEW = 16  # pairs, whose texts are no matter: they are in memory as it is
_NET_FROM = 256  # partners: to carry fewer on, some of which cancel, costs less than to add them up
_SORT_FROM = 1 << 14  # probes; searching so many sorted keeps to memory that is near
Rows = NDArray[Any]
Fetch = tuple[tuple[str, str], ...]  # columns of the collection, and their names in the stream


class _Pairs(NamedTuple):
    """Positions in the stream, and the rows of a run that they found; unless `certain`, their keys may differ."""

    positions: Ints
    run: Run
    rows: Rows
    certain: bool

    def part(self, start: int, stop: int) -> _Pairs:
        """Some of them."""
        return _Pairs(self.positions[start:stop], self.run, self.rows[start:stop], self.certain)


@dataclass(frozen=True, slots=True)
class HalfJoinOperator:
    """A compiled `HalfJoin`; `columns` gives the key columns of the looked-up rows."""

    spec: HalfJoin
    probes: tuple[tuple[Scalar, Expr], ...]
    columns: KeyColumns
    needed: tuple[str, ...]  # the collection's columns that its key reads
    asked: tuple[tuple[Scalar, Fetch], ...]  # conditions on partners alone, and the columns they read
    wanted: frozenset[str] | None  # of the result's columns; None: all
    candidates: bool  # a row may have several entries, and whether it is a partner is asked later

    def pieces(
        self, stream: Updates, runs: Sequence[Part], closed: int = MINIMUM
    ) -> Iterator[tuple[Updates, Sequence[Part]]]:
        """The stream, and the runs that it meets; where that is a cross product, in parts, each of which it multiplies
        to a bounded number of rows. `closed` as for a call."""
        if self.probes:
            yield stream, runs
            return
        names = [column for column, _ in self.spec.fetch]
        for piece in present(runs, closed, names):
            size = max(1, _PAIRS // len(piece))
            for start in range(0, len(stream), size):
                yield stream.slice(start, min(start + size, len(stream))), [Run(piece)]

    def portions(
        self, stream: Updates, parts: Sequence[Part], most: int
    ) -> Iterator[tuple[Updates, Sequence[Part]]]:
        """The stream in parts that find about `most` rows each, and what they meet, in memory.

        One row of the stream may find more: all that has its key.
        """
        if not self.probes:
            yield from self.pieces(stream, parts)
            return
        keys, stream = evaluate_all(self.probes, stream, DROPPED)
        stream, keys = self._without_nulls(stream, keys)
        if not len(stream):
            return
        names = [column for column, _ in self.spec.fetch]
        near = [part.narrowed(self.spec.arrangement, self.columns, keys, names) for part in parts]
        probes, found = codes(keys, len(stream)), np.zeros(len(stream), np.int64)
        for run in near:
            for index in run.entries(self.spec.arrangement, self.columns):
                found += index.count(probes)
        steps = np.cumsum(found) // most
        ends = [*(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(stream)]
        for start, end in zip([0, *ends], ends, strict=False):
            yield stream.slice(start, end), near

    def __call__(self, stream: Updates, runs: Sequence[Part], closed: int = MINIMUM) -> Iterator[Updates]:
        """The stream's rows with each of their partners in `runs`, in parts that memory holds.

        Partners with times below `closed` are added up, which is right where the stream has no such times.
        """
        if not self.probes:
            yield from self._beside(stream, [], _everything(len(stream), runs), closed)
            return
        keys, stream = evaluate_all(self.probes, stream, DROPPED)
        stream, keys = self._without_nulls(stream, keys)
        probes = codes(keys, len(stream))
        exact = is_exact(keys)
        order = np.argsort(probes) if len(probes) >= _SORT_FROM else None
        if order is not None:
            probes = probes[order]
        found: list[_Pairs] = []
        names = [column for column, _ in self.spec.fetch]
        for part in runs:
            run = part.narrowed(self.spec.arrangement, self.columns, keys, names)
            for index in run.entries(self.spec.arrangement, self.columns, closed):
                positions, rows = index.find(probes)
                if not len(positions):
                    continue
                if order is not None:
                    positions = order[positions]
                certain = exact and index.exact
                if self.candidates:
                    positions, rows = _distinct_pairs(positions, rows, len(run))
                    certain = True
                found.append(_Pairs(positions, run, rows, certain))
        yield from self._beside(stream, keys, found, closed)

    def _beside(
        self, stream: Updates, keys: list[pa.Array], found: Sequence[_Pairs], closed: int
    ) -> Iterator[Updates]:
        """Stream rows beside what they found: all at once, or piece by piece where that is much.

        What would cancel in two pieces is found in the sum of what they make.
        """
        for pairs in [found] if self._are_few(stream, found) else self._pieces(stream, found):
            result = self._gather(stream, keys, pairs, closed)
            if result is not None:
                yield result

    def _are_few(self, stream: Updates, found: Sequence[_Pairs]) -> bool:
        count = sum(len(pairs.rows) for pairs in found)
        if not _FEW < count <= _PAIRS:
            return count <= _FEW
        most = sum(map(_text_bytes, stream.columns.values()))
        most += max((sum(map(_text_bytes, self._read(pairs.run).values())) for pairs in found), default=0)
        return count * most <= _BYTES or sum(int(self._widths(stream, pairs).sum()) for pairs in found) <= _BYTES

    def _pieces(self, stream: Updates, found: Iterable[_Pairs]) -> Iterator[list[_Pairs]]:
        """The pairs in pieces that take about `_BYTES` as rows."""
        for pairs in found:
            for start in range(0, len(pairs.rows), _PAIRS):
                block = pairs.part(start, start + _PAIRS)
                steps = np.cumsum(self._widths(stream, block)) // _BYTES
                ends = [*(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(block.rows)]
                for low, high in zip([0, *ends], ends, strict=False):
                    yield [block.part(low, high)]

    def _widths(self, stream: Updates, pairs: _Pairs) -> Ints:
        """The bytes that the texts of each pair's two rows take."""
        total = np.zeros(len(pairs.rows), np.int64)
        for columns, places in ((stream.columns, pairs.positions), (self._read(pairs.run), pairs.rows)):
            for column in columns.values():
                if _text_bytes(column):
                    total += _lengths_at(column, places)
        return total

    def _read(self, run: Run) -> dict[str, pa.Array]:
        """The columns that are read of partners."""
        names = {*(column for column, _ in self.spec.fetch), *self.needed}
        return {name: column for name, column in run.updates.columns.items() if name in names}

    def _without_nulls(self, stream: Updates, keys: list[pa.Array]) -> tuple[Updates, list[pa.Array]]:
        """Rows with a NULL in a key that NULL does not match have no partner."""
        alive: Mask | None = None
        for key, null_safe in zip(keys, self.spec.null_safe, strict=True):
            if key.null_count and not null_safe:
                valid = key.is_valid().to_numpy(zero_copy_only=False)
                alive = valid if alive is None else alive & valid
        if alive is None:
            return stream, keys
        positions = np.flatnonzero(alive)
        indices = pa.array(positions)
        return stream.take(positions), [key.take(indices) for key in keys]

    def verified(self, keys: list[pa.Array], positions: Ints, run: Run, rows: Rows) -> tuple[Ints, Rows]:
        """Without the pairs whose codes are equal and whose keys are not."""
        candidates = run.updates.select(self.needed).take(rows)
        arrays, origins = self.columns(candidates)
        probe = pa.array(positions)
        equal = np.ones(len(positions), np.bool_)
        if origins is not None:  # some candidate's key expression fails: it is no partner
            equal[:] = False
            equal[origins] = True
            indices = np.zeros(len(positions), np.int64)
            indices[origins] = np.arange(len(origins))
            arrays = [array.take(pa.array(indices)) for array in arrays] if len(origins) else arrays
        if not equal.any():
            return positions[:0], rows[:0]
        for key, array in zip(keys, arrays, strict=True):
            equal &= same(key.take(probe), array)
        return (positions, rows) if equal.all() else (positions[equal], rows[equal])

    def _gather(
        self, stream: Updates, keys: list[pa.Array], pairs: Iterable[_Pairs], closed: int
    ) -> Updates | None:
        """Stream rows beside the rows they found, those that are asked for; None where there are none."""
        found = [part for part in (self._admitted(keys, *part) for part in pairs) if len(part[0])]
        if not found:
            return None
        wanted = self.wanted
        left = stream if wanted is None else stream.select(name for name in stream.columns if name in wanted)
        positions = _joined([positions for positions, _, _ in found])
        sources = [(run.updates.columns, indices_of(rows)) for _, run, rows in found]
        fetched = {}
        for column, name in self.spec.fetch:
            if wanted is None or name in wanted:
                pieces = [gather(source[column], indices) for source, indices in sources]
                fetched[name] = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
        time = _joined([run.updates.time[rows] for _, run, rows in found])
        diff = _joined([run.diffs(rows, closed) for _, run, rows in found])
        partners = Updates(fetched, time, diff)
        if closed > MINIMUM and len(positions) >= _NET_FROM:
            positions, partners = _netted(positions, partners, closed)
            if not len(positions):
                return None
        if len(positions) != len(stream) or (positions != np.arange(len(stream))).any():
            left = left.take(positions)
        columns = {**left.columns, **partners.columns}
        return Updates(columns, np.maximum(left.time, partners.time), product(left.diff, partners.diff))

    def _admitted(
        self, keys: list[pa.Array], positions: Ints, run: Run, rows: Rows, certain: bool
    ) -> tuple[Ints, Run, Rows]:
        """Without the pairs that are none, or whose partner does not meet a condition."""
        if not certain:
            positions, rows = self.verified(keys, positions, run, rows)
        for scalar, fetch in self.asked:
            indices = indices_of(rows)
            columns = {name: gather(run.updates.columns[column], indices) for column, name in fetch}
            mask = mask_of(scalar.evaluate(columns, len(rows)).values)
            if not mask.all():
                positions, rows = positions[mask], rows[mask]
        return positions, run, rows


def compile_half_join(
    spec: HalfJoin, registry: Registry, asked: Iterable[Expr] = (), wanted: frozenset[str] | None = None
) -> HalfJoinOperator:
    """Make a half-join executable.

    `asked`: infallible predicates that read fetched columns only; pairs that do not meet them are left out. `wanted`:
    the columns to make, None for all.
    """
    probes = tuple((compile(expr), expr) for expr in spec.probe)
    steps = () if spec.arrangement.through is None else spec.arrangement.through.steps
    candidates = any(isinstance(step, Explode) for step in steps)
    needed = sorted({name for key in spec.arrangement.keys for name in columns_of(key)}.union(
        *(() if candidates else map(reads, steps))))  # fmt: skip
    conditions = [(compile(expr), tuple(pair for pair in spec.fetch if pair[1] in columns_of(expr))) for expr in asked]
    columns = key_columns(spec.arrangement, registry)
    return HalfJoinOperator(spec, probes, columns, tuple(needed), tuple(conditions), wanted, candidates)


def _netted(positions: Ints, partners: Updates, closed: int) -> tuple[Ints, Updates]:
    """Partners of the rows at these positions, those added up that are equal and closed."""
    pairs = partners.with_columns({_PROBE: pa.array(positions)})
    found = together(pairs, closed)
    if found is None:
        return positions, partners
    rows, diffs = found
    kept = partners.take(rows)
    return positions[rows], Updates(kept.columns, kept.time, diffs)


def _joined(parts: Sequence[Ints]) -> Ints:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _distinct_pairs(positions: Ints, rows: Rows, length: int) -> tuple[Ints, Rows]:
    """Each (probe, row) once: a row may have several entries with one code."""
    pairs = np.unique(positions * np.int64(length) + rows)
    return pairs // length, pairs % length


def _text_bytes(column: pa.Array) -> int:
    """The bytes of values of different lengths; 0 for a column of a fixed width."""
    kind = column.type
    return int(column.nbytes) if pt.is_string(kind) or pt.is_binary(kind) or pt.is_list(kind) else 0


def _lengths_at(column: pa.Array, rows: Rows) -> Ints:
    """The bytes of the values at some positions; of arrays what their elements take on average."""
    offsets = np.frombuffer(column.buffers()[1], np.int32)[column.offset :]
    rows = rows.astype(np.int64)
    lengths: Ints = offsets[rows + 1].astype(np.int64) - offsets[rows]
    if pt.is_list(column.type):
        lengths *= 1 + int(column.values.nbytes) // max(1, len(column.values))
    return lengths


def _everything(length: int, runs: Sequence[Part]) -> list[_Pairs]:
    """A cross product: all pairs."""
    return [
        _Pairs(np.repeat(np.arange(length), len(piece)), Run(piece), np.tile(np.arange(len(piece)), length), True)
        for run in runs
        for piece in run.pieces()
        if len(piece) and length
    ]

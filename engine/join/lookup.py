"""What a half-join looks up: the keys of its stream's rows, how often runs have these, and runs opened for kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange.index import KeyColumns, count_all
from halfjoin.engine.arrange.part import Part, as_runs
from halfjoin.engine.arrange.run import Run, Side
from halfjoin.engine.join.at_once import Fetch
from halfjoin.engine.join.compared import Compared
from halfjoin.engine.join.condition import Condition
from halfjoin.engine.join.pieces import RowNumbers
from halfjoin.engine.kernels import joining, native
from halfjoin.engine.linear.evaluate import evaluate_all
from halfjoin.engine.linear.failures import DROPPED
from halfjoin.engine.scalar import Scalar, mask_of
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes, same
from halfjoin.engine.updates.updates import MINIMUM, Ints, Mask, Updates, where_true
from halfjoin.planner.plan import HalfJoin
from halfjoin.planner.wants import Wants
from halfjoin.sql.expr import Expr
from halfjoin.sql.functions.chance import draws

_PROBE = "#probe"  # no SQL column has such a name
_TESTED, _OFTEN = 1 << 10, 2  # rows of which each is tested, for any stream, and for each row of it
_COUNTED = 1 << 14  # rows; to count the partners of so few costs less than joining them


@dataclass(frozen=True, slots=True)
class Lookup:
    """A compiled `HalfJoin`; `columns` gives the key columns of the looked-up rows."""

    spec: HalfJoin
    probes: tuple[tuple[Scalar, Expr], ...]
    columns: KeyColumns
    needed: tuple[str, ...]  # the collection's columns that its key reads
    asked: tuple[Condition, ...]
    rest: tuple[Condition, ...]  # those of them that no kernel of a half-join decides
    wanted: frozenset[str] | None  # the result's columns to make; None: all
    made: Fetch  # those of them that come from the collection
    plain: tuple[str, ...] | None  # the columns that are the arrangement's keys; None: keys are computed
    candidates: bool  # a row may have several entries; a later step decides whether it is a partner
    wants: Wants  # the partners that matter; others need not have entries
    # For the kernel. Columns of the collection: keys to compare, what conditions compare, what is gathered.
    read: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    constants: list[pa.Array]  # with which conditions compare
    allowed: tuple[int, ...]
    null_safe: int  # a bit for each key in which NULL matches NULL
    direct: tuple[str, ...] | None  # the stream's columns that are the keys; None: keys are computed
    reads: tuple[str, ...]  # the partners' columns that a lookup reads
    opens: int  # runs know by this number what they have opened for such lookups
    adds_up: bool  # whether partners that cancel are added up; if not, the caller does it
    compared: tuple[Compared, ...]  # what all pairs of a cross product must meet; the next steps test it

    def narrowed(self, parts: Sequence[Part], keys: list[pa.Array]) -> Sequence[Part]:
        """The same parts, for a lookup of these keys that is no batch's."""
        return [part.among(self.spec.arrangement, self.columns, keys) for part in parts]

    def keys(self, stream: Updates) -> tuple[list[pa.Array], Updates]:
        """The rows of the stream that may have partners, and the keys that they look up.

        A row whose key fails has no partner, and neither has a row with a NULL in a key where NULL does not match NULL.
        """
        keys, stream = evaluate_all(self.probes, stream, DROPPED)
        alive: Mask | None = None
        for key, null_safe in zip(keys, self.spec.null_safe, strict=True):
            if key.null_count and not null_safe:
                valid = key.is_valid().to_numpy(zero_copy_only=False)
                alive = valid if alive is None else alive & valid
        if alive is None:
            return keys, stream
        positions = where_true(alive)
        indices = pa.array(positions)
        return [key.take(indices) for key in keys], stream.take(positions)

    def counts(self, stream: Updates, runs: Sequence[Part], closed: int = MINIMUM, begins: int = MINIMUM) -> Ints:
        """For each row of the stream, how many entries of the arrangement have the code of its key: at least as many as
        it has partners that matter. 0 where it has none."""
        found = np.zeros(len(stream), np.int64)
        keys, left = self.keys(stream.with_columns({_PROBE: pa.array(np.arange(len(stream)))}))
        found[left.columns[_PROBE].to_numpy()] = self.counts_of(keys, len(left), runs, closed, begins)
        return found

    def counts_of(
        self, keys: list[pa.Array], length: int, runs: Sequence[Part], closed: int = MINIMUM, begins: int = MINIMUM
    ) -> Ints:
        """As `counts`, of `length` rows with these keys."""
        probes, key, counts = codes(keys, length), self.spec.arrangement, np.zeros(length, np.int64)
        for part in runs if length else ():
            for run in part.narrowed(key, self.columns, keys, []):
                counts += count_all(probes, run.entries(key, self.columns, closed, self.wants, begins))
        return counts

    def shares(self, stream: Updates, parts: Sequence[Part], closed: int) -> Iterator[Updates]:
        """The stream of a query in parts that have no more partners than a kernel joins at once; a row may have more.
        """
        runs = as_runs(parts) if native.on and self.direct is not None and 1 < len(stream) <= _COUNTED else None
        if runs is None or self.direct is None or sum(map(len, runs)) <= limits.PIECE_ROWS:
            yield stream
            return
        keys = [stream.columns[name] for name in self.direct]
        ends = self.counts_of(keys, len(stream), self.narrowed(runs, keys), closed).cumsum()
        start, before = 0, 0
        while start < len(stream):
            stop = len(stream)
            if ends.item(-1) - before > limits.PIECE_ROWS:
                stop = max(int(ends.searchsorted(before + limits.MORSEL_ROWS, "right")), start + 1)
            yield stream.slice(start, stop)
            start, before = stop, ends.item(stop - 1)

    def verified(self, keys: list[pa.Array], positions: Ints, run: Run, rows: RowNumbers) -> tuple[Ints, RowNumbers]:
        """The pairs whose keys are equal, not just their codes."""
        candidates = run.updates.select(self.needed).take(rows)
        arrays, origins = self.columns(candidates)
        probe = pa.array(positions)
        equal = np.ones(len(positions), np.bool_)
        if origins is not None:  # the key expression of some candidate fails: that one is not a partner
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

    def tests(self, parts: Sequence[Part], length: int, begins: int) -> bool:
        """Whether conditions that no kernel decides are tested for each row of the runs, before a stream of so many
        rows is joined: a query may find each of them many times. A batch finds few of them."""
        return (self.rest != () and begins == MINIMUM and sum(map(len, parts)) <= max(_TESTED, _OFTEN * length)
                and not any(draws(one.scalar.expr) for one in self.rest))  # fmt: skip

    def opened(
        self, parts: Sequence[Part], closed: int, begins: int, *, tested: bool = False
    ) -> list[Side] | None:
        """Each run, opened for a kernel. `tested`: without rows that do not meet the conditions that it cannot decide.
        None: some are in files, or have a type that it does not know."""
        number, runs = self.opens, cast("Sequence[Run]", parts)
        if tested:
            return self._opened_tested(parts, closed)
        try:  # each batch comes here for each half-join, and has opened most runs before
            known = [run.sides[number] for run in runs]
        except (KeyError, AttributeError):  # a part in files has no sides
            known = None
        if known is None or [one for one in known if one.closed > closed or one.begins > begins]:
            if [part for part in parts if not part.in_memory]:
                return None
            known = []
            for run in runs:
                one = run.sides.get(number)
                if one is None or one.closed > closed or one.begins > begins:
                    one = run.side(self.spec.arrangement, self.columns, self.read, closed, self.wants, begins)
                    if one is None:
                        return None
                    if begins > MINIMUM:  # a batch; a query or a fill looks up once
                        run.sides[number] = one
                known.append(one)
        return known

    def _opened_tested(self, parts: Sequence[Part], closed: int) -> list[Side] | None:
        """As `opened`, of a query."""
        known = list[Side]()
        for run in as_runs(parts) or ():
            wanted = np.ones(len(run), np.bool_)
            for condition in self.rest:
                columns = {name: run.updates.columns[column] for column, name in condition.fetch}
                wanted &= mask_of(condition.scalar.evaluate(columns, len(run)).values)
            one = run.side(self.spec.arrangement, self.columns, self.read, closed, self.wants, MINIMUM, wanted)
            if one is None:
                return None
            known.append(one)
        return known if len(known) == len(parts) else None

    def link(self, opened: list[Side], keys: tuple[int, ...], kept: tuple[int, ...], certain: bool) -> joining.Link:
        """This half-join of some opened runs, as a kernel takes it; `keys`, `kept` and `certain` as there."""
        sides = [side for one in opened for side in one.opened]
        return joining.Link(sides, keys, self.null_safe, certain, kept, self.constants, self.allowed, opened[0].types)

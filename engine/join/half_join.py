"""The half-join: changed rows look their partners up in one arrangement.

Delta law. A result tuple is produced once, by the path of the component that arrived last, so the caller chooses the
runs to look up: those before this batch, or those after it. The result's time is the maximum of the components' times,
its diff the product of their diffs. (McSherry's dogsdogsdogs: https://github.com/TimelyDataflow/differential-dataflow.)

A lookup joins the rows it finds one piece at a time, and the caller takes a piece through the rest of the path before
it asks for the next. So memory holds one piece for each stage, never all the rows that a key finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import cast

import numpy as np

from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join import beside, crossed
from halfjoin.engine.join.at_once import partners_of
from halfjoin.engine.join.beside import Note
from halfjoin.engine.join.compared import Compared
from halfjoin.engine.join.condition import Condition
from halfjoin.engine.join.lookup import Lookup
from halfjoin.engine.join.pieces import Pairs
from halfjoin.engine.kernels import joining, native
from halfjoin.engine.linear.evaluate import evaluate_all
from halfjoin.engine.linear.failures import DROPPED
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.threshold import threshold_of
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes, is_exact
from halfjoin.engine.updates.updates import MINIMUM, Updates
from halfjoin.planner.linear import Explode
from halfjoin.planner.liveness import reads
from halfjoin.planner.plan import ArrangementKey, HalfJoin
from halfjoin.planner.wants import ALL, Wants
from halfjoin.sql.expr import Column, Expr, columns_of
from halfjoin.sql.kept import is_small

_PLACES = tuple(range(1 << 12))  # as many as columns, and more
_SORT_FROM = 1 << 14  # probes; a sorted search of so many stays in nearby memory


@dataclass(frozen=True, slots=True)
class HalfJoinOperator(Lookup):
    """A lookup that joins what it finds."""

    def __call__(
        self, stream: Updates, runs: Sequence[Part], closed: int = MINIMUM, begins: int = MINIMUM,
        note: Note | None = None,
    ) -> Iterator[Updates]:  # fmt: skip
        """The stream's rows with each of their partners in `runs`, one piece at a time.

        A piece has about `limits.PIECE_ROWS` rows and `limits.PIECE_BYTES` bytes of texts. Partners with times below
        `closed` are added up within a piece; the stream must have no such times. Partners in two pieces that cancel
        still cancel when the results are added up. `note` takes the partners of each piece before they are added up;
        positions are among the rows that `keys` gives. The stream has no times below `begins`.
        """
        if not self.probes:
            lonely = crossed.lonely(self, runs) if note is None and begins == MINIMUM else None
            if lonely is not None:
                yield from crossed.with_one(self, stream, lonely, closed)
                return
            for some, pairs in crossed.pairs(self, stream, runs, closed, begins if note is None else MINIMUM):
                yield from beside.joined(self, some, [], [pairs], len(pairs.rows), closed, note)
            return
        if native.on:
            if self.direct is not None and begins == MINIMUM:
                runs = self.narrowed(runs, [stream.columns[name] for name in self.direct])
            made = self._by_kernel(stream, runs, closed, begins, note)
            if made is not None:
                yield from made
                return
        keys, stream = self.keys(stream)
        probes = codes(keys, len(stream))
        exact = is_exact(keys)
        order = np.argsort(probes) if len(probes) >= _SORT_FROM else None
        if order is not None:
            probes = probes[order]
        arrangement, found, count = self.spec.arrangement, list[Pairs](), 0
        names = [column for column, _ in self.spec.fetch]
        for part in runs:
            for number, run in enumerate(part.narrowed(arrangement, self.columns, keys, names)):
                if number and found:  # a part in files gives one memory load at a time
                    yield from beside.joined(self, stream, keys, found, count, closed, note)
                    found, count = [], 0
                for positions, rows, apart in run.find(arrangement, self.columns, probes, closed, self.wants, begins):
                    # If a table function makes the key, later steps decide which rows are partners.
                    certain = self.candidates or (exact and apart)
                    found.append(Pairs(positions if order is None else order[positions], run, rows, certain))
                    count += len(rows)
                    if count >= limits.PIECE_ROWS:
                        yield from beside.joined(self, stream, keys, found, count, closed, note)
                        found, count = [], 0
        if found:
            yield from beside.joined(self, stream, keys, found, count, closed, note)

    def _by_kernel(
        self, stream: Updates, parts: Sequence[Part], closed: int, begins: int, note: Note | None
    ) -> Iterable[Updates] | None:
        """As `__call__`, by one call of a kernel where it can join all rows. None: it cannot find the partners, as they
        are in files, too many, or of a type that it does not know."""
        tested = self.tests(parts, len(stream), begins)
        opened = self.opened(parts, closed, begins, tested=tested)
        if not opened:
            return None if opened is None else ()
        if self.direct is None:
            keys, stream = evaluate_all(self.probes, stream, DROPPED)
        else:
            keys = [stream.columns[name] for name in self.direct]
        columns = stream.columns
        names = [*columns] if self.wanted is None else [name for name in columns if name in self.wanted]
        certain = self.candidates
        if self.plain is None and not certain:  # the runs have no keys to compare
            certain = all(side.exact for side in opened) and is_exact(keys)
        given, count = [*keys, *map(columns.__getitem__, names)], len(keys)
        places = _PLACES[: len(given)]
        link = self.link(opened, places[:count], places[count:], certain)
        made = joining.half_joins(
            given, stream.time, stream.diff, [link], size=0, growth=0, closed=closed if self.adds_up else MINIMUM,
            least=beside.NET_FROM, most=limits.PIECE_ROWS, most_bytes=limits.PIECE_BYTES,
            apart=note is not None or (self.rest != () and not tested),
        )  # fmt: skip
        if made is None:
            return None
        if isinstance(made, joining.Pairs):
            runs = [cast("Run", run) for run, side in zip(parts, opened, strict=True) for _ in side.opened]
            return beside.at_once(self, stream, keys, partners_of(runs, *made), closed, note)
        if not len(made.time):
            return ()
        names += [name for _, name in self.made]
        return (Updates(dict(zip(names, made.columns, strict=True)), made.time, made.diff),)


def compile_half_join(
    spec: HalfJoin, registry: Registry, asked: Iterable[Expr] = (), wanted: frozenset[str] | None = None,
    wants: Wants = ALL, *, adds_up: bool = True, compared: tuple[Compared, ...] = (),
) -> HalfJoinOperator:  # fmt: skip
    """Make a half-join executable.

    `asked`: predicates that cannot fail and read only fetched columns; pairs that do not meet them are left out.
    `wanted`: the columns to make; None: all. `wants`: the partners that the next steps do not drop. `adds_up`: whether
    partners that cancel are added up. `compared`: comparisons among the next steps, of a cross product.
    """
    probes = tuple((compile(expr), expr) for expr in spec.probe)
    steps = () if spec.arrangement.through is None else spec.arrangement.through.steps
    candidates = any(isinstance(step, Explode) for step in steps)
    needed = sorted({name for key in spec.arrangement.keys for name in columns_of(key)}.union(
        *(() if candidates else map(reads, steps))))  # fmt: skip
    conditions = [
        Condition(compile(expr), tuple(pair for pair in spec.fetch if pair[1] in columns_of(expr)), threshold_of(expr))
        for expr in asked
    ]
    columns = key_columns(spec.arrangement, registry)
    made = tuple(pair for pair in spec.fetch if wanted is None or pair[1] in wanted)
    names = [expr.name for expr in spec.arrangement.keys if isinstance(expr, Column)]
    plain = tuple(names) if len(names) == len(spec.arrangement.keys) and spec.arrangement.through is None else None
    rest = tuple(one for one in conditions if one.threshold is None)
    tests = [(one.fetch[0][0], one.threshold) for one in conditions if one.threshold is not None]
    direct = [expr.name for expr in spec.probe if isinstance(expr, Column)]
    read = plain or (), tuple(name for name, _ in tests), tuple(column for column, _ in made)
    return HalfJoinOperator(
        spec, probes, columns, tuple(needed), tuple(conditions), rest, wanted, made, plain, candidates, wants, read,
        [test.constant for _, test in tests], tuple(test.allowed for _, test in tests),
        sum(1 << number for number, null_safe in enumerate(spec.null_safe) if null_safe),
        tuple(direct) if plain is not None and len(direct) == len(spec.probe) else None,
        tuple(sorted({*needed, *(column for column, _ in spec.fetch)})), _opens(spec.arrangement, read, wants), adds_up,
        compared,
    )


def _opens(key: ArrangementKey, read: tuple[tuple[str, ...], ...], wants: Wants) -> int:
    """A number for lookups that read the same columns of an arrangement. They share what a run opens, unless a large
    constant would have to be kept for that."""
    small = all(is_small(condition) for want in wants for condition in want.conditions)
    return _shared(key, read, wants) if small else next(_NUMBERS)


@lru_cache(maxsize=4096)
def _shared(key: ArrangementKey, read: tuple[tuple[str, ...], ...], wants: Wants) -> int:
    return next(_NUMBERS)


_NUMBERS = count()

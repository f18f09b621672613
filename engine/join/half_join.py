"""The half-join: changed rows look their partners up in one arrangement.

Delta law. A result tuple is produced once, by the path of the component that arrived last, so the caller chooses the
runs to look up: those before this batch, or those after it. The result's time is the maximum of the components' times,
its diff the product of their diffs. (McSherry's dogsdogsdogs: https://github.com/TimelyDataflow/differential-dataflow.)

A lookup joins the rows it finds one piece at a time, and the caller takes a piece through the rest of the path before
it asks for the next. So memory holds one piece for each stage, never all the rows that a key finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from halfjoin.engine.arrange.index import KeyColumns, count_all
from halfjoin.engine.arrange.keys import key_columns
from halfjoin.engine.arrange.netting import together
from halfjoin.engine.arrange.part import Part, as_runs, present
from halfjoin.engine.arrange.run import Run, Side
from halfjoin.engine.join.at_once import Fetch, Partners, partners_of
from halfjoin.engine.join.compared import Compared, choices
from halfjoin.engine.join.condition import Condition
from halfjoin.engine.join.pieces import FEW, Pairs, RowNumbers, fit, may_be_long, pieces
from halfjoin.engine.kernels import native
from halfjoin.engine.linear.evaluate import evaluate_all
from halfjoin.engine.linear.failures import DROPPED
from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.scalar import Scalar, compile, mask_of
from halfjoin.engine.scalar.threshold import threshold_of
from halfjoin.engine.updates import limits
from halfjoin.engine.updates.codes import codes, is_exact, same
from halfjoin.engine.updates.updates import (
    MINIMUM,
    Ints,
    Mask,
    Updates,
    constant,
    gather,
    gathered,
    indices_of,
    product,
    repeated,
    where_true,
)
from halfjoin.planner.linear import Explode
from halfjoin.planner.liveness import reads
from halfjoin.planner.plan import ArrangementKey, HalfJoin
from halfjoin.planner.wants import ALL, Wants
from halfjoin.sql.expr import Column, Expr, columns_of
from halfjoin.sql.functions.chance import draws
from halfjoin.sql.kept import is_small

_PROBE = "#probe"  # no SQL column has such a name
NET_FROM = 256  # partners; adding fewer up costs more than carrying on those that cancel
_MANY = 8  # so does adding up where fewer than one partner in so many goes
_SHORT = 1 << 8  # bytes of a text that is repeated for each row of a stream
_PLACES = tuple(range(1 << 12))  # as many as columns, and more
_TESTED, _OFTEN = 1 << 10, 2  # rows of which each is tested, for any stream, and for each row of it
_COUNTED = 1 << 14  # rows; to count the partners of so few costs less than joining them
_SORT_FROM = 1 << 14  # probes; a sorted search of so many stays in nearby memory
Note = Callable[[tuple[Ints, Ints, Ints]], None]  # takes positions in the stream; partners' times and diffs


@dataclass(frozen=True, slots=True)
class HalfJoinOperator:
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
            lonely = self._lonely(runs) if note is None and begins == MINIMUM else None
            if lonely is not None:
                yield from self._with_one(stream, lonely, closed)
                return
            for some, pairs in self._crossed(stream, runs, closed, begins if note is None else MINIMUM):
                yield from self._beside(some, [], [pairs], len(pairs.rows), closed, note)
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
                    yield from self._beside(stream, keys, found, count, closed, note)
                    found, count = [], 0
                for positions, rows, apart in run.find(arrangement, self.columns, probes, closed, self.wants, begins):
                    # If a table function makes the key, later steps decide which rows are partners.
                    certain = self.candidates or (exact and apart)
                    found.append(Pairs(positions if order is None else order[positions], run, rows, certain))
                    count += len(rows)
                    if count >= limits.PIECE_ROWS:
                        yield from self._beside(stream, keys, found, count, closed, note)
                        found, count = [], 0
        if found:
            yield from self._beside(stream, keys, found, count, closed, note)

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
        made = native.half_joins(
            given, stream.time, stream.diff, [link], size=0, growth=0, closed=closed if self.adds_up else MINIMUM,
            least=NET_FROM, most=limits.PIECE_ROWS, most_bytes=limits.PIECE_BYTES,
            apart=note is not None or (self.rest != () and not tested),
        )  # fmt: skip
        if made is None:
            return None
        if isinstance(made, native.Pairs):
            runs = [cast("Run", run) for run, side in zip(parts, opened, strict=True) for _ in side.opened]
            return self._at_once(stream, keys, partners_of(runs, *made), closed, note)
        if not len(made.time):
            return ()
        names += [name for _, name in self.made]
        return (Updates(dict(zip(names, made.columns, strict=True)), made.time, made.diff),)

    def narrowed(self, parts: Sequence[Part], keys: list[pa.Array]) -> Sequence[Part]:
        """The same parts, for a lookup of these keys that is no batch's."""
        return [part.among(self.spec.arrangement, self.columns, keys) for part in parts]

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

    def link(self, opened: list[Side], keys: tuple[int, ...], kept: tuple[int, ...], certain: bool) -> native.Link:
        """This half-join of some opened runs, as a kernel takes it; `keys`, `kept` and `certain` as there."""
        sides = [side for one in opened for side in one.opened]
        return native.Link(sides, keys, self.null_safe, certain, kept, self.constants, self.allowed, opened[0].types)

    def _at_once(
        self, stream: Updates, keys: list[pa.Array], partners: Partners, closed: int, note: Note | None
    ) -> Iterator[Updates]:
        """Stream rows joined with partners that a kernel has found: by kernels, too, if they know all types."""
        count, found = len(partners), list[Pairs]()
        if count > FEW and may_be_long(stream, partners.runs[0], self.reads):
            found = [Pairs(positions, run, rows, True) for positions, run, rows in partners.apart()]
        if not found or fit(stream, found, self.reads):
            result = self._through_kernels(stream, partners, closed, note)
            if result is not None:
                if len(result):
                    yield result
                return
        found = found or [Pairs(positions, run, rows, True) for positions, run, rows in partners.apart()]
        yield from self._beside(stream, keys, found, count, closed, note)

    def _through_kernels(
        self, stream: Updates, partners: Partners, closed: int, note: Note | None
    ) -> Updates | None:
        """As `_gather`; None if a kernel is missing."""
        for condition in self.rest:
            met = condition.met(partners)
            if met is None:
                return None
            partners = met
        if not len(partners):
            return stream.slice(0, 0)
        names = [name for name in stream.columns if self.wanted is None or name in self.wanted]
        positions, fetched, weights = partners.positions, partners.columns(self.made), partners.weights(closed)
        if fetched is None or weights is None:
            return None
        time, diff = weights
        if closed > MINIMUM and len(positions) >= NET_FROM and self._cancels(diff):
            found = Updates(fetched, time, diff)
            positions, found = _netted(positions, found, closed)
            fetched, time, diff = found.columns, found.time, found.diff
        made = native.gather([[stream.columns[name] for name in names]], positions, [len(positions)])
        both = native.products(positions, stream.time, stream.diff, time, diff)
        if made is None or both is None:
            return None
        if note is not None:
            note((partners.positions, *weights))
        return Updates({**dict(zip(names, made, strict=True)), **fetched}, *both)

    def _lonely(self, runs: Sequence[Part]) -> Run | None:
        """The only row that there is to look up, as a run; None if there are more, or it has long values."""
        parts = [part for part in runs if len(part)]
        if len(parts) != 1 or len(parts[0]) != 1:
            return None
        for run in as_runs(parts) or ():
            if not run.hidden and all(_is_short(run.updates.columns[column]) for column in self.reads):
                return run
        return None

    def _with_one(self, stream: Updates, run: Run, closed: int) -> Iterator[Updates]:
        """The stream's rows with the only row of a run, as a scalar subquery's: nothing of the stream is copied."""
        _, _, rows = self._admitted([], np.zeros(1, np.int64), run, np.zeros(1, np.int64), True)
        if not len(rows) or not len(stream):
            return
        wanted = [name for name in stream.columns if self.wanted is None or name in self.wanted]
        columns = {name: stream.columns[name] for name in wanted}
        columns |= {name: repeated(run.updates.columns[column], len(stream)) for column, name in self.made}
        time, diff = run.updates.time.item(0), int(run.diffs(rows, closed)[0])
        yield Updates(columns, np.maximum(stream.time, time),
                      stream.diff if diff == 1 else product(stream.diff, constant(diff, len(stream))))  # fmt: skip

    def _crossed(
        self, stream: Updates, runs: Sequence[Part], closed: int, begins: int
    ) -> Iterator[tuple[Updates, Pairs]]:
        """A cross product in pieces: some rows of the stream, and their pairs with some rows of the runs.

        A batch leaves out pairs that the comparisons drop. A query or a fill looks up once, so it pays to compare all.
        """
        names, chosen = [column for column, _ in self.spec.fetch], None
        if self.compared and begins > MINIMUM:
            chosen = choices(self.compared, stream, runs)
        if chosen is None:
            for updates in present(runs, closed, names):
                yield from _product(stream, updates)
            return
        for some, choose in chosen:
            for updates in present(runs, closed, names, choose):
                yield from _product(some, updates)

    def _beside(
        self, stream: Updates, keys: list[pa.Array], found: list[Pairs], count: int, closed: int, note: Note | None
    ) -> Iterator[Updates]:
        """Stream rows joined with the rows of `count` pairs: at once, or in several pieces if the texts are long."""
        for pairs in [found] if count <= FEW or fit(stream, found, self.reads) else pieces(stream, found, self.reads):
            result = self._gather(stream, keys, pairs, closed, note)
            if result is not None:
                yield result

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

    def _gather(
        self, stream: Updates, keys: list[pa.Array], pairs: Iterable[Pairs], closed: int, note: Note | None
    ) -> Updates | None:
        """Stream rows joined with the partners that pass all conditions; None if there are none."""
        found = [part for part in [self._admitted(keys, *part) for part in pairs] if len(part[0])]
        if not found:
            return None
        if self.wanted is None:
            left = stream
        else:
            left = stream.select([name for name in stream.columns if name in self.wanted])
        if len(found) == 1:
            positions, run, rows = found[0]
            source, indices = run.updates.columns, indices_of(rows)
            fetched = gathered({name: source[column] for column, name in self.made}, indices)
            time, diff = run.updates.time[rows], run.diffs(rows, closed)
        else:
            positions = np.concatenate([positions for positions, _, _ in found])
            sources = [(run.updates.columns, indices_of(rows)) for _, run, rows in found]
            fetched = {name: pa.concat_arrays([gather(source[column], indices) for source, indices in sources])
                       for column, name in self.made}  # fmt: skip
            time = np.concatenate([run.updates.time[rows] for _, run, rows in found])
            diff = np.concatenate([run.diffs(rows, closed) for _, run, rows in found])
        if note is not None:
            note((positions, time, diff))
        partners = Updates(fetched, time, diff)
        if closed > MINIMUM and len(positions) >= NET_FROM and self._cancels(diff):
            positions, partners = _netted(positions, partners, closed)
            if not len(positions):
                return None
        if len(positions) != len(stream) or (positions != np.arange(len(stream))).any():
            left = left.take(positions)
        columns = {**left.columns, **partners.columns}
        return Updates(columns, np.maximum(left.time, partners.time), product(left.diff, partners.diff))

    def _cancels(self, diff: Ints) -> bool:
        """Whether so many partners go that adding up those that cancel costs less than carrying them on."""
        return self.adds_up and int(np.count_nonzero(diff < 0)) * _MANY >= len(diff)

    def _admitted(
        self, keys: list[pa.Array], positions: Ints, run: Run, rows: RowNumbers, certain: bool
    ) -> tuple[Ints, Run, RowNumbers]:
        """The pairs with equal keys whose partner meets every condition."""
        if not certain:
            positions, rows = self.verified(keys, positions, run, rows)
        for condition in self.asked:
            indices = indices_of(rows)
            columns = {name: gather(run.updates.columns[column], indices) for column, name in condition.fetch}
            mask = mask_of(condition.scalar.evaluate(columns, len(rows)).values)
            if not mask.all():
                positions, rows = positions[mask], rows[mask]
        return positions, run, rows


def _is_short(column: pa.Array) -> bool:
    """Whether a value may be repeated for each row of a stream."""
    kind = column.type
    return not (pt.is_nested(kind) or pt.is_interval(kind)) and (
        column.nbytes <= _SHORT or not (pt.is_string(kind) or pt.is_binary(kind)))  # fmt: skip


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


def _product(stream: Updates, updates: Updates) -> Iterator[tuple[Updates, Pairs]]:
    """All pairs of their rows, in pieces."""
    most = limits.PIECE_ROWS
    for low in range(0, len(updates), most):
        run = Run(updates.slice(low, min(low + most, len(updates))))
        rows, step = np.arange(len(run)), max(1, most // len(run))
        for start in range(0, len(stream), step):
            some = stream.slice(start, min(start + step, len(stream)))
            positions = np.arange(len(some)).repeat(len(rows))
            yield some, Pairs(positions, run, np.tile(rows, len(some)), True)


def _opens(key: ArrangementKey, read: tuple[tuple[str, ...], ...], wants: Wants) -> int:
    """A number for lookups that read the same columns of an arrangement. They share what a run opens, unless a large
    constant would have to be kept for that."""
    small = all(is_small(condition) for want in wants for condition in want.conditions)
    return _shared(key, read, wants) if small else next(_NUMBERS)


@lru_cache(maxsize=4096)
def _shared(key: ArrangementKey, read: tuple[tuple[str, ...], ...], wants: Wants) -> int:
    return next(_NUMBERS)


_NUMBERS = count()


def _netted(positions: Ints, partners: Updates, closed: int) -> tuple[Ints, Updates]:
    """Partners of the rows at these positions, with equal closed ones added up."""
    pairs = partners.with_columns({_PROBE: pa.array(positions)})
    found = together(pairs, closed)
    if found is None:
        return positions, partners
    rows, diffs = found
    kept = partners.take(rows)
    return positions[rows], Updates(kept.columns, kept.time, diffs)

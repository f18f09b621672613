"""Reads few rows where a query asks for the first ones of an order: `ORDER BY id DESC LIMIT 20`.

A path that fills reads its input in stretches. Once so many rows are found as are asked for, a row of the next stretch
goes on only if what is known of its place in the order lets it come before the last of them. So few rows are read with
all their columns, and fewer are joined. Where the ends of blocks are known, the best stretches come first, and those
behind the last row that is wanted are not read.

What is known of a row's place are the first keys of the order that are expressions over the input. A row that comes
after the bound by these has at least so many rows before it as are asked for, whatever it is joined with. So no row may
be there less than zero times: it could take one of those away, and the query would be an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from halfjoin.engine.arrange import blocks
from halfjoin.engine.arrange.part import Part, as_runs
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.closing import RunsOf
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.join.path import CompiledPath
from halfjoin.engine.reduce import top
from halfjoin.engine.reduce.groups import Groups
from halfjoin.engine.reduce.words import ordered_words
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.values import mask_of
from halfjoin.engine.updates.intervals import has_intervals
from halfjoin.engine.updates.updates import Ints, Mask, Updates, concat, empty, some_below_zero
from halfjoin.planner.group_functions import Top
from halfjoin.planner.linear import Extend, Filter, Keep, Step
from halfjoin.planner.plan import Version
from halfjoin.sql.expr import Column, Expr, columns_of, rewrite
from halfjoin.sql.functions.chance import draws
from halfjoin.sql.relation import SortKey, TopK

_SHARE = 256  # what is asked for is at most this part (1/256) of the rows; of more, all are read
_PENDING = 256  # rows; of fewer no new bound is made
_LONG = 1 << 18  # rows of a stretch, once there is a bound
_PLAIN = frozenset(kind.id for kind in (pa.string(), pa.binary(), pa.decimal128(1)))


@dataclass(frozen=True, slots=True)
class Key:
    """A key of the order: its column of the output, the type of its values, and its expression over the input."""

    output: str
    type: pa.DataType
    order: SortKey


class ReadAll(Exception):
    """All rows must be read: most are asked for, some are there less than zero times, or values have several types."""


class Firsts:
    """What is known of the first rows of a query while its path reads them."""

    def __init__(self, order: TopK, keys: Sequence[Key], wanted: int) -> None:
        self._keys, self.wanted = keys, wanted
        self._top = Top(order.order, wanted, 0, order.with_ties)
        self._found, self._new = list[Updates](), list[Updates]()
        self._bound: Mapping[str, pa.Array] | None = None

    @property
    def rows(self) -> Sequence[Updates]:
        """All rows among which the first ones are, in parts."""
        return [*self._found, *self._new]

    def take(self, made: Updates) -> None:
        """Take rows of the output."""
        self._new += [made] if len(made) else []
        some = sum(map(len, self._new))
        if some < (_PENDING if self._bound is not None else self.wanted):
            return
        rows = concat(self.rows)
        positions, count = top.evaluate(self._top, Groups(rows.columns, rows.diff, np.array([0, len(rows)])))
        left = rows.take(positions)
        self._found, self._new = [Updates(left.columns, left.time, count)], []
        if int(count.sum()) >= self.wanted:
            self._bound = left.slice(len(left) - 1, len(left)).columns

    def read(self, parts: Sequence[Part], closed: int, names: Sequence[str]) -> Iterator[Updates]:
        """The rows of an input that may be among the first, a stretch at a time.

        Raises:
            ReadAll: it is better to read all of them, or needed.
        """
        runs = as_runs(parts)
        if runs is None or not _are_worth(runs, self.wanted) or is_owed(runs, closed):
            raise ReadAll
        yield from self._read(runs, closed, names)

    def _read(self, runs: Sequence[Run], closed: int, names: Sequence[str]) -> Iterator[Updates]:
        for run, start, stop, least in self._stretches(runs):
            if self._bound is not None and least is not None and not self._may_come(self._keys[0], least):
                continue
            choose = None if self._bound is None else self._choose
            for part in stretch_of(run, start, stop).present(closed, names, choose):
                if len(part):
                    yield part

    def _may_come(self, key: Key, least: pa.Array) -> bool:
        less, same = self._compared(key, least)
        return bool((less | same)[0])

    def _choose(self, run: Run) -> Ints:
        """The rows that may come before the bound, or are at it."""
        rows, found = np.arange(len(run)), list[Ints]()
        for key in self._keys:
            if not len(rows):
                break
            less, same = self._compared(key, values_of(key.order.expr, run.updates, rows))
            found.append(rows[less])
            rows = rows[same]
        return np.sort(np.concatenate([*found, rows]))

    def _compared(self, key: Key, values: pa.Array) -> tuple[Mask, Mask]:
        """Which values come before that of the bound, and which are the same."""
        assert self._bound is not None  # nobody asks before
        bound, order = self._bound[key.output], key.order
        if values.type != key.type:
            raise ReadAll
        if _arrow_orders(values) and bound[0].is_valid:
            less = mask_of((pc.greater if order.descending else pc.less)(values, bound[0]))
            return less, mask_of(pc.equal(values, bound[0]))
        found = ordered_words(pa.concat_arrays([values, bound]), order.descending, order.nulls_first)
        less, same = np.zeros(len(values), np.bool_), np.ones(len(values), np.bool_)
        for word in found:
            less |= same & (word[:-1] < word[-1])
            same &= word[:-1] == word[-1]
        return less, same

    def _stretches(self, runs: Sequence[Run]) -> Iterator[tuple[Run, int, int, pa.Array | None]]:
        """Stretches of the rows, the best first if that is known: then also the value of the first key with which the
        first row of the stretch may come."""
        key = self._keys[0]
        known, others = list[tuple[Run, pa.Array]](), list[Run]()
        for run in runs:
            ends = _ends(run, key)
            known += [] if ends is None else [(run, ends)]
            others += [run] if ends is None else []
        for run in reversed(others):
            edges = [*range(0, len(run), _LONG), len(run)]
            edges = [0, *([blocks.ROWS] if len(run) > blocks.ROWS else []), *edges[1:]]
            if key.order.descending:
                edges = [len(run) - edge for edge in edges]  # what came last is often the greatest
            for start, stop in pairwise(edges):
                yield run, min(start, stop), max(start, stop), None
        if not known:
            return
        every = [(run, start) for run, _ in known for start in range(0, len(run), blocks.ROWS)]
        least = pa.concat_arrays([ends for _, ends in known])
        for place in np.lexsort(ordered_words(least, key.order.descending, key.order.nulls_first)[::-1]).tolist():
            run, start = every[place]
            yield run, start, min(start + blocks.ROWS, len(run)), least.slice(place, 1)


def stretch_of(run: Run, start: int, stop: int) -> Run:
    """A stretch of the rows."""
    return Run(run.updates.slice(start, stop), net=None if run.net is None else run.net.part(start, stop))


def _ends(run: Run, key: Key) -> pa.Array | None:
    """The value of a key with which the first row of each block may come."""
    expr, order = key.order.expr, key.order
    if not isinstance(expr, Column):
        return None
    if order.nulls_first and run.updates.columns[expr.name].null_count:
        return None
    ends = run.ends_of(expr.name)
    if ends is None or ends.least.type != run.updates.columns[expr.name].type:
        return None
    return ends.greatest if order.descending else ends.least


def values_of(expr: Expr, updates: Updates, rows: Ints) -> pa.Array:
    """An expression of some rows."""
    columns = {name: updates.columns[name] for name in columns_of(expr)}
    if len(rows) < len(updates):
        columns = {name: column.take(pa.array(rows)) for name, column in columns.items()}
    return columns[expr.name] if isinstance(expr, Column) else compile(expr).evaluate(columns, len(rows)).values


def _arrow_orders(values: pa.Array) -> bool:
    """Whether Arrow orders values as SQL does."""
    kind = values.type
    plain = pt.is_integer(kind) or pt.is_date(kind) or pt.is_timestamp(kind) or kind.id in _PLAIN
    return plain and not values.null_count


def first_rows(flow: Dataflow, lookup: RunsOf, upper: int, closed: int, order: TopK) -> Updates | None:
    """The rows among which the first ones of an order are, of those that fill a query. None: it is better to read all
    of them, or some may fail."""
    paths = [path for branch in flow.branches for path in branch]
    firsts = None if len(flow.branches) != 1 or any(path.reports for path in paths) else firsts_of(
        flow.branches[0][flow.plan.branches[0].fill], order, flow.schema)  # fmt: skip
    others = {stage.half_join.arrangement.collection for path in paths for stage in path.spec.stages}
    others -= flow.constants.keys()
    if firsts is None or any(is_owed(lookup(name, Version.AFTER), closed) for name in others):
        return None
    try:
        for output, _ in flow.fill(lookup, upper, closed, gathered=True, reader=firsts):
            firsts.take(output.before(upper))
    except ReadAll:
        return None
    return concat(firsts.rows or [empty(flow.schema)])


def firsts_of(path: CompiledPath, order: TopK, schema: Mapping[str, pa.DataType]) -> Firsts | None:
    """How the first rows of a query are found, given the path that fills it; None: its order tells nothing of the rows
    that it reads."""
    keys = [] if order.limit is None else keys_of(path, order, schema)
    return Firsts(order, keys, order.limit + order.offset) if order.limit is not None and keys else None


def keys_of(path: CompiledPath, order: TopK, schema: Mapping[str, pa.DataType]) -> Sequence[Key]:
    """The first keys of an order that are expressions over the input with which a path fills."""
    if order.partition or path.then is not None or path.known is not None:
        return []
    if path.spec.constant or any(stage.otherwise for stage in path.spec.stages):
        return []
    steps = [*path.spec.source.steps, *(step for stage in path.spec.stages for step in stage.then.steps),
             *path.spec.final.steps]  # fmt: skip
    if not all(isinstance(step, Filter | Extend | Keep) for step in steps) or any(map(_draws, steps)):
        return []
    known, keys = _origins(path), list[Key]()
    ties = () if order.with_ties else tuple(map(SortKey, order.columns))
    for number, key in enumerate((*order.order, *ties)):
        expr = _over(key.expr, known)
        if expr is None or not isinstance(key.expr, Column):
            break
        keys.append(Key(key.expr.name, schema[key.expr.name], replace(key, expr=expr)))
        if number >= len(order.order) and has_intervals(keys[-1].type):
            break  # rows that tie come in the order of how equal intervals look, before the next column counts
    return keys


def _are_worth(runs: Sequence[Run], wanted: int) -> bool:
    """Whether few of many rows are asked for, which can be read in any order."""
    rows = sum(map(len, runs))
    return 0 < wanted * _SHARE <= rows and rows >= blocks.FEW


def is_owed(parts: Sequence[Part], closed: int) -> bool:
    """Whether a row is there less than zero times, or may be, since nobody looks into files for it."""
    runs = as_runs(parts)
    if runs is None:
        return True
    some = [run for run in runs if some_below_zero(run.updates.diff)]
    return any(some_below_zero(run.diffs(np.arange(len(run)) if (left := run.left(closed)) is None else left, closed))
               for run in some)  # fmt: skip


def _draws(step: Step) -> bool:
    match step:
        case Filter(exprs):
            return any(map(draws, exprs))
        case Extend(items):
            return any(draws(expr) for _, expr in items)
        case _:
            return False


def _origins(path: CompiledPath) -> Mapping[str, Expr | str]:
    """What the columns at the end of a path are over the collection with which it begins: a column of it, or an
    expression."""
    found = _after({name: column for column, name in path.spec.fetch}, path.spec.source.steps)
    for stage in path.spec.stages:
        others = {name for _, name in stage.half_join.fetch}
        found = _after({name: origin for name, origin in found.items() if name not in others}, stage.then.steps)
    return _after(found, path.spec.final.steps)


def _after(known: Mapping[str, Expr | str], steps: Iterable[Step]) -> Mapping[str, Expr | str]:
    for step in steps:
        match step:
            case Extend(items):
                made = {column.name: _over(expr, known) for column, expr in items}
                rest = {name: origin for name, origin in known.items() if name not in made}
                known = rest | {name: origin for name, origin in made.items() if origin is not None}
            case _:  # what Keep leaves out is not read any more
                pass
    return known


def _over(expr: Expr, known: Mapping[str, Expr | str]) -> Expr | None:
    """An expression over the collection, from one over a stream. None: it needs other columns."""
    if not columns_of(expr) <= known.keys():
        return None

    def change(node: Expr) -> Expr:
        if not isinstance(node, Column):
            return node
        origin = known[node.name]
        return replace(node, name=origin) if isinstance(origin, str) else origin

    return rewrite(expr, change)

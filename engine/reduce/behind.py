"""Reads few rows where a query asks for those behind many others: `ORDER BY id LIMIT 20 OFFSET 1000000`.

The first key of the order tells nearly all of the rows that are skipped, and those behind the last one that is wanted.
So it is read alone, and only rows between are read with all their columns. Where the ends of its blocks are known, the
rows of a block are counted without a look if all of them are skipped, and the blocks behind are not read either.

Rows are counted before the others are made of them, so each must be there once, and nothing may drop it that could
fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from halfjoin.engine.arrange import blocks
from halfjoin.engine.arrange.part import Part, as_runs
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.join.closing import RunsOf
from halfjoin.engine.join.dataflow import Dataflow
from halfjoin.engine.join.tested import Tested
from halfjoin.engine.reduce.firsts import Key, ReadAll, keys_of, stretch_of, values_of
from halfjoin.engine.reduce.words import only_word
from halfjoin.engine.scalar.values import valid
from halfjoin.engine.updates.updates import MAXIMUM, MINIMUM, Ints, Updates, concat, ends, where_true
from halfjoin.planner.linear import Filter
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import TopK

_SHARE = 8  # what is asked for is at most this part (1/8) of the rows; of more, all are read
_GROWN = 16  # the rows that may be wanted are counted anew when they have grown by this part (1/16)


class Stretch(NamedTuple):
    """Rows of a run, and words between which those of the first key are."""

    run: Run
    start: int
    stop: int
    least: int
    greatest: int


class Between(NamedTuple):
    """Rows of a stretch that may be wanted, with the words of their first key."""

    run: Run
    rows: Ints
    words: Ints


class Behind:
    """Reads the rows of a query that follow others. `skipped`: how many of those that OFFSET skips it has left out."""

    def __init__(self, order: TopK, limit: int, key: Key, tested: Tested | None, upper: int) -> None:
        self.skipped = 0
        self._offset, self._limit, self._upper = order.offset, limit, upper
        self._key, self._tested = key, tested

    def read(self, parts: Sequence[Part], closed: int, names: Sequence[str]) -> Iterator[Updates]:
        """The rows of an input that may be wanted.

        Raises:
            ReadAll: it is better to read all of them, or needed.
        """
        runs = as_runs(parts)
        if runs is None:
            raise ReadAll
        rows = sum(map(len, runs))
        if rows < blocks.FEW or not 0 < self._limit * _SHARE <= rows:
            raise ReadAll
        if not all(_are_single(run, closed, self._upper) for run in runs):
            raise ReadAll
        for run, some, _ in self._wanted(self._among(runs, closed)):
            yield from run.present(closed, names, lambda _, some=some: some)  # type: ignore[misc]

    def _among(self, runs: Sequence[Run], closed: int) -> list[Between]:
        """The rows among which the wanted ones are. Others that come before them are counted."""
        stretches = sorted((one for run in runs for one in self._stretches(run)), key=attrgetter("least"))
        found, held, counted = list[Between](), 0, 0
        for each, after in zip(stretches, [*(one.least for one in stretches[1:]), None], strict=True):
            run = stretch_of(each.run, each.start, each.stop)
            if self._tested is None and (after is None or each.greatest < after):
                left = len(run) if run.left(closed) is None else len(run) - run.hidden
                if self.skipped + left + held <= self._offset:  # no row of another stretch comes before all of these
                    self.skipped += left
                    continue
            between = self._between(run, closed)
            found.append(between)
            held += len(between.rows)
            if after is not None and self.skipped + held >= self._offset + self._limit and (
                held - counted >= held // _GROWN):  # fmt: skip
                counted = held
                before = sum(int(np.count_nonzero(one.words < after)) for one in found)
                if self.skipped + before >= self._offset + self._limit:
                    break
        return found

    def _between(self, run: Run, closed: int) -> Between:
        """The rows of a stretch that meet the conditions of the query, with their words."""
        rows = run.left(closed)
        if self._tested is not None:
            chosen = self._tested.choose(run)
            if rows is not None:
                there = np.zeros(len(run), np.bool_)
                there[rows] = True
                chosen = chosen[there[chosen]]
            rows = chosen
        rows = np.arange(len(run)) if rows is None else rows
        return Between(run, rows, self._words(values_of(self._key.order.expr, run.updates, rows)))

    def _wanted(self, among: Sequence[Between]) -> Iterator[Between]:
        """Those that are wanted, and those that tie with the first and the last of them in the first key."""
        words = np.concatenate([one.words for one in among]) if among else np.zeros(0, np.int64)
        place = self._offset - self.skipped
        if place >= len(words):
            self.skipped += len(words)
            return
        last = min(place + self._limit, len(words)) - 1
        partitioned = np.partition(words, [place, last])
        least, most = partitioned[place], partitioned[last]
        self.skipped += int(np.count_nonzero(words < least))
        for run, rows, own in among:
            kept = where_true((least <= own) & (own <= most))
            if len(kept):
                yield Between(run, rows[kept], own[kept])

    def _stretches(self, run: Run) -> Iterator[Stretch]:
        """Blocks of a run if their ends are known; or all of its rows."""
        expr, order = self._key.order.expr, self._key.order
        found = run.ends_of(expr.name) if isinstance(expr, Column) else None
        if found is None or not isinstance(expr, Column):
            yield Stretch(run, 0, len(run), MINIMUM, MAXIMUM)
            return
        sides = (found.greatest, found.least) if order.descending else (found.least, found.greatest)
        first, last = map(self._words, sides)
        if run.updates.columns[expr.name].null_count:  # NULL is no end
            first, last = (np.full(len(first), MINIMUM), last) if order.nulls_first else (
                first, np.full(len(last), MAXIMUM))  # fmt: skip
        for number, (least, greatest) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
            start = number * blocks.ROWS
            yield Stretch(run, start, min(start + blocks.ROWS, len(run)), least, greatest)

    def _words(self, values: pa.Array) -> Ints:
        """Words in whose ascending order the values come. NULL has the one of the values at its end."""
        order, word = self._key.order, only_word(values) if values.type == self._key.type else None
        if word is None:
            raise ReadAll
        word = ~word if order.descending else word
        if values.null_count:
            word = np.where(valid(values), word, MINIMUM if order.nulls_first else MAXIMUM)
        return word


def _are_single(run: Run, closed: int, upper: int) -> bool:
    """Whether each row that is left of a run is there once, at a time below `upper`."""
    updates, net = run.updates, run.net
    if not updates.within(MINIMUM, upper):
        return False
    if net is None or net.closed > closed or (net.there is None and not len(net.rows)):
        return not len(run) or ends(updates.diff) == (1, 1)
    single = net.diffs_of(updates) == 1
    return bool((single if net.there is None else single | ~net.there).all())


def rows_behind(flow: Dataflow, lookup: RunsOf, upper: int, closed: int, order: TopK) -> tuple[Updates, int] | None:
    """The rows among which those are that follow others in an order, of those that fill a query, and how many of those
    others are left out. None: it is better to read all of them, or some may fail."""
    behind = _behind_of(flow, upper, order)
    if behind is None:
        return None
    try:
        found = [output.before(upper)
                 for output, _ in flow.fill(lookup, upper, closed, gathered=True, reader=behind)]  # fmt: skip
    except ReadAll:
        return None
    return concat(found), behind.skipped


def _behind_of(flow: Dataflow, upper: int, order: TopK) -> Behind | None:
    """How the rows behind others are found; None: the query does more than to test rows and compute columns."""
    path = flow.mapping
    if path is None or path.reports or order.limit is None or not order.offset:
        return None
    tested = flow.tested(path)
    left = path if tested is None else tested.path
    steps = (*left.spec.source.steps, *left.spec.final.steps)
    keys = keys_of(path, order, flow.schema)
    if not keys or any(isinstance(step, Filter) for step in steps):
        return None
    return Behind(order, order.limit, keys[0], tested, upper)

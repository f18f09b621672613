"""Cross products whose pairs must meet a comparison: `x > (SELECT avg(x) FROM t)`, `HAVING sum(y) > (SELECT ...)`.

When a threshold moves, its old row goes and the new one comes, and each of them is joined with every row of the other
input. A pair that the comparison drops makes nothing. A partner that meets it with both rows makes nothing, either: the
one result cancels the other. So only partners between the two thresholds matter. To find them, the values that partners
compare are computed once for each run, and a kernel searches them before any row is copied.

The operators after the half-join still test every pair, and report errors. So a partner may be chosen in vain, but must
never be left out if it makes a row, or an error. A partner for which the comparison, or what is computed of it later,
fails is always chosen. A comparison whose other side fails for a row of the stream leaves nothing out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from operator import itemgetter
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Computed, Run
from halfjoin.engine.kernels import native, summing
from halfjoin.engine.scalar import Scalar, compile
from halfjoin.engine.scalar.threshold import Threshold, has_threshold, threshold_at
from halfjoin.engine.updates.updates import Ints, Updates, constant, is_wide, where_true
from halfjoin.planner.fallibility import step_fallible
from halfjoin.planner.linear import Extend, Filter, Keep, Linear, Step
from halfjoin.planner.liveness import makes, reads
from halfjoin.planner.plan import HalfJoin, InputKind, Stage
from halfjoin.sql.expr import FLIPPED, Call, Cast, Column, Expr, columns_of, rewrite
from halfjoin.sql.functions import fallible
from halfjoin.sql.types import INTEGERS, Kind

_MOST = 64  # rows of a stream; each may be a search of all partners
FROM = 256  # pairs; a search of a run costs more than to join fewer
_VALUE, _ROW = "#value", "#row"  # no SQL column has such names
_ORDERS = ("<", "<=", ">", ">=")

Choose = Callable[[Run], Ints]
Following: TypeAlias = Step | HalfJoin  # what follows a half-join


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison of a partner (`theirs`, over the collection's columns) with the stream's row (`mine`).

    `failing`: what later steps compute of a partner that may fail. `kept`: the columns that they read; None: all.
    `whole`: a pair for which the comparison is NULL may be an error.
    """

    theirs: Scalar
    function: str
    mine: Scalar
    failing: tuple[Scalar, ...]
    kept: frozenset[str] | None
    whole: bool

    def values(self, stream: Updates) -> pa.Array | None:
        """What the rows of the stream are compared with; None: all pairs may make something."""
        made = self.mine.evaluate(stream.columns, len(stream))
        return None if made.failures is not None or (self.whole and made.values.null_count) else made.values

    def alike(self, stream: Updates) -> tuple[Ints, int] | None:
        """A number for each row, equal for rows that make equal rows; and how many there are. None: some type has no
        kernel."""
        columns = [column for name, column in stream.columns.items() if self.kept is None or name in self.kept]
        found = summing.groups(columns, stream.time, len(stream))
        return None if found is None else (found[0], len(found[1]))

    def tests(self, values: pa.Array, diffs: list[int]) -> list[Threshold] | None:
        """What a partner meets that may make something with rows of these values and diffs; no tests: nothing does.
        None: it is no comparison with a constant.

        A partner that meets the comparison with one row meets it with those before, if the rows are in order. So what
        it makes with the first n of them, and with no other, counts as often as their diffs add up to.
        """
        rows = pc.array_sort_indices(values).to_pylist()[: len(values) - values.null_count]  # nothing meets NULL
        if self.function in ("<", "<="):
            rows.reverse()
        sums = [*accumulate(diffs[row] for row in rows)]
        counted = [number for number, total in enumerate(sums) if total]
        if not counted:
            return []
        ends = [rows[number] for number in (counted[0], counted[-1] + 1) if number < len(rows)]
        column = Column(_VALUE, self.theirs.expr.type)
        tests = [threshold_at(column, self.function, values.slice(row, 1), self.mine.expr.type) for row in ends]
        found = [test for test in tests if test is not None]
        if len(found) < len(tests):
            return None
        return [found[0], *(test.negated for test in found[1:])]

    def computed(self, run: Run) -> Computed:
        """The values that the run's rows compare. Each batch asks for them, so the run keeps them."""
        key = self.theirs.expr, self.whole, *(scalar.expr for scalar in self.failing)
        found = run.computed.get(key)
        if found is None:
            columns, length = run.updates.columns, len(run)
            results = [scalar.evaluate(columns, length) for scalar in (self.theirs, *self.failing)]
            values = results[0].values
            always = [result.failures.rows for result in results if result.failures is not None]
            if self.whole and values.null_count:
                always.append(where_true(values.is_null().to_numpy(zero_copy_only=False)))
            own = 0 if self.theirs.column is not None else values.nbytes
            found = Computed(values, np.unique(np.concatenate(always)) if always else constant(0, 0), own)
            run.computed[key] = found
        return found


def choices(compared: Sequence[Compared], stream: Updates, runs: Sequence[Part]) -> list[tuple[Updates, Choose]] | None:
    """Some rows of the stream at a time, and which rows of a run may make something with them. None: all may, or a
    search would cost more than it spares.

    Rows at a time make equal rows, where they meet all comparisons: they differ in nothing but what one of them reads.
    """
    if not compared or not native.on or len(stream) > _MOST or is_wide(stream.diff):
        return None
    pairs = len(stream) * sum(map(len, runs))
    if pairs < FROM * len(runs) or not all(part.in_memory for part in runs):  # each search would read files anew
        return None
    usable = [(one, values) for one in compared if (values := one.values(stream)) is not None]
    groups = [(found[1], found[0], one) for one, _ in usable if (found := one.alike(stream)) is not None]
    if not groups:
        return None
    count, numbers, moving = min(groups, key=itemgetter(0))
    if pairs < FROM * count * len(runs):
        return None
    made = list[tuple[Updates, Choose]]()
    for number in range(count):
        rows = (numbers == number).nonzero()[0]
        diffs, places = stream.diff[rows].tolist(), pa.array(rows)
        tested = [(one, one.tests(values.take(places), diffs if one is moving else [1] * len(rows)))
                  for one, values in usable]  # fmt: skip
        made.append((stream.take(rows), partial(_chosen, [(one, tests) for one, tests in tested if tests is not None])))
    return made


def _chosen(tested: Sequence[tuple[Compared, Sequence[Threshold]]], run: Run) -> Ints:
    """The rows of a run that meet all tests, and those that are always chosen."""
    every = Updates({_ROW: pa.array(np.arange(len(run)))}, run.updates.time, run.updates.diff)
    known = [(one.computed(run), tests) for one, tests in tested]
    always = [computed.always for computed, _ in known if len(computed.always)]
    if [1 for _, tests in known if not tests]:
        every = every.slice(0, 0)
    elif known:
        values = {f"{_VALUE}{place}": computed.values for place, (computed, _) in enumerate(known)}
        each = [(name, test) for name, (_, tests) in zip(values, known, strict=True) for test in tests]
        met = every.with_columns(values).meeting(
            [name for name, _ in each], [test.constant for _, test in each], tuple(test.allowed for _, test in each),
            [_ROW])  # fmt: skip
        every = every if met is None else met
    rows: Ints = every.columns[_ROW].to_numpy()
    return np.unique(np.concatenate([rows, *always])) if always else rows


def compared_of(
    half_join: HalfJoin, names: Collection[str], steps: Sequence[Step], later: Sequence[Stage] = (),
    final: Linear | None = None,
) -> tuple[Compared, ...]:  # fmt: skip
    """The comparisons that all pairs of a half-join without a key must meet. `names`: the stream's columns. `steps`:
    those after it. `later`, `final`: the stages and the operator that follow, if these are known. All but the last
    report no errors."""
    if half_join.probe or half_join.kind is not InputKind.PLAIN or half_join.arrangement.through is not None:
        return ()
    bare, found = {name: column for column, name in half_join.fetch}, list[Compared]()
    whole: list[Following] = [*steps]
    for stage in later:
        whole += [stage.half_join, *stage.then.steps]
    silent = len(whole)
    whole += () if final is None else final.steps
    for number, part in enumerate(whole):
        reports = number >= silent
        if isinstance(part, Keep | HalfJoin) or (isinstance(part, Extend) and not reports):
            continue
        if not isinstance(part, Filter):
            break
        for place, predicate in enumerate(part.predicates):
            others = part.predicates[:place] + part.predicates[place + 1 :]
            sides = _sides(predicate, bare.keys(), names)
            if sides is not None:
                rest = [*whole[:number], Filter(others), *whole[number + 1 :]]
                one = _compared(*sides, rest, silent, bare)
                # A pair is an error if one predicate fails and the others are NULL.
                found.append(replace(one, whole=reports and any(map(fallible, others))))
        if reports and any(map(fallible, part.predicates)):  # errors come before the next filter
            break
    return tuple(found)


def _sides(predicate: Expr, own: Collection[str], names: Collection[str]) -> tuple[Expr, str, Expr] | None:
    """The comparison of an expression over a partner with one over the stream's row."""
    if not isinstance(predicate, Call) or predicate.function not in _ORDERS:
        return None
    (theirs, mine), function = predicate.args, predicate.function
    if columns_of(mine) <= {*own}:
        theirs, mine, function = mine, theirs, FLIPPED[function]
    theirs = _bare(theirs)
    for side, columns in ((theirs, own), (mine, names)):
        if not columns_of(side) or not columns_of(side) <= {*columns}:
            return None
    return (theirs, function, mine) if has_threshold(theirs.type, mine.type) else None


def _bare(expr: Expr) -> Expr:
    """Integers instead of the same numbers as numerics: a threshold orders them, too."""
    if not isinstance(expr, Cast) or expr.arg.type.kind not in INTEGERS or expr.type.kind is not Kind.NUMERIC:
        return expr
    return expr if fallible(replace(expr, arg=Column("", expr.arg.type))) else expr.arg


def _compared(
    theirs: Expr, function: str, mine: Expr, rest: Sequence[Following], silent: int, bare: Mapping[str, str]
) -> Compared:
    """`rest`: all that follows, without the comparison. So many of it are `silent`."""

    def named(node: Expr) -> Expr:
        return replace(node, name=bare[node.name]) if isinstance(node, Column) else node

    kept: frozenset[str] | None = None
    for part in reversed(rest):
        if isinstance(part, Keep):
            kept = frozenset(part.columns)
        elif isinstance(part, HalfJoin):
            kept = None if kept is None else kept.union(*map(columns_of, part.probe))
        elif kept is not None:
            kept = kept.difference(makes(part)) | reads(part)
    failing = dict[Expr, None]()
    for expr in (expr for part in rest[silent:] for expr in _failing(part)):
        if expr is None or not columns_of(expr) <= bare.keys():
            kept = None  # an error tells of all columns, so no two rows of the stream are alike
        elif expr != theirs:
            failing[rewrite(expr, named)] = None
    some = () if kept is None else tuple(map(compile, failing))
    return Compared(compile(rewrite(theirs, named)), function, compile(mine), some, kept, whole=False)


def _failing(part: Following) -> Iterator[Expr | None]:
    """What may fail in a step; None: something that is no expression."""
    match part:
        case HalfJoin():
            pass
        case Filter(predicates):
            yield from filter(fallible, predicates)
        case Extend(items):
            yield from (expr for _, expr in items if fallible(expr))
        case _ if step_fallible(part):
            yield None

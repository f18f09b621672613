"""Lowers aggregates, windows and top-k to a reduce: the join below, the function of groups, what stands above it.

The join below computes every key, argument, condition and sort key as a column of its own, so a reduce reads columns
only. What stands above is a projection of the reduce's output: the result of an aggregate that adds up is an ordinary
expression over the kept sums.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from halfjoin.errors import UnsupportedSQL
from halfjoin.planner.plan import Aggregates, Ordered, Running, Sums, Top, Windows
from halfjoin.planner.reach import adds_up, as_aggregate, needs_number, reach_of_all
from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal, columns_of, is_temporal
from halfjoin.sql.functions import render
from halfjoin.sql.functions.aggregates import Decomposed, decompose, decompose_lifted, filtered
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Filter,
    Project,
    Relation,
    Scan,
    SortKey,
    TableFunction,
    TopK,
    Window,
    WindowCall,
    inputs_below,
)
from halfjoin.sql.types import BIGINT, BOOLEAN, DOUBLE, INTEGERS, Kind, SqlType
from halfjoin.sql.user_aggregate import lift_of, result_of

Function: TypeAlias = Aggregates | Windows | Top
Columns: TypeAlias = Sequence[Column]
Positions: TypeAlias = tuple[int, ...]
Args: TypeAlias = tuple[int | Expr, ...]  # the positions of columns; a constant is itself
Wanted = TypeVar("Wanted")
_WORDS = {"count": "count", "bits": "bits"}  # of kinds of sums, for people; the others are sums
_STORED = re.compile(r"[ ,;{}()\n\t=.]")  # a Delta table has no such characters in the names of its columns


@dataclass(frozen=True, slots=True)
class Lowered:
    """A reduce before its input has a name.

    `input`: the relation below it. `keys`: how many of its first columns are keys. `function`, given the input's
    columns, is the function of a group. `above`, given a scan of the output, has the columns of the relation that was
    lowered. `passing`: the function needs only the changes of its input, so the input need not be kept.
    """

    input: Project
    keys: int
    function: Callable[[Columns], Function]
    above: Callable[[Scan], Relation]
    passing: bool


def lowered(relation: Aggregate | Window | TopK) -> Lowered:
    """The reduce of a relation.

    Raises:
        UnsupportedSQL: it reads mz_now() or an interval, which no collection can hold.
    """
    match relation:
        case Aggregate():
            return _aggregate(relation)
        case Window():
            return _window(relation)
        case TopK():
            return _top(relation)


def output_columns(keys: Columns, function: Function, input: Columns) -> tuple[Column, ...]:
    """The columns of a reduce's output."""
    match function:
        case Aggregates(count, sums, ordered):
            return (*keys, count, *(part.column for part in sums), *(part.column for part in ordered))
        case Windows():
            return (*input, *function.results)
        case Top():
            return tuple(input)


@dataclass
class _Items:
    """The columns that the join below computes; equal expressions share one."""

    input: Relation
    items: list[tuple[Column, Expr]] = field(default_factory=list)
    lifts: dict[tuple[str, tuple[Expr, ...]], TableFunction] = field(default_factory=dict)

    def lift(self, call: AggregateCall) -> tuple[Column, ...]:
        """The columns that the lift of a user's aggregate gives for each row. Equal lifts are one."""
        args = filtered(call)
        if any(map(is_temporal, args)):
            raise _temporal(args)
        wanted = call.function, args
        if wanted not in self.lifts:
            alias, nullable = f"=lift{len(self.lifts) + 1}", any(map(_may_be_null, args))  # no user writes this name
            columns = tuple(Column(f"{alias}.{name}", type, nullable) for name, type in call.sums)
            self.lifts[wanted] = TableFunction(self.input, lift_of(call.function), alias, args, columns)
            self.input = self.lifts[wanted]
        return self.lifts[wanted].outputs

    def own(self, word: str, args: Iterable[Expr], others: Iterable[Column] = ()) -> str:
        """A name for a column that the reduce makes: `#max:v`. A reduce below it, whose columns it may show, has other
        names. `others`: the columns that it must differ from."""
        texts = (arg.name if isinstance(arg, Column) else render(arg) for arg in args)
        name = f"{'#' * (1 + _depth(self.input))}{word}:{_STORED.sub('_', '&'.join(texts) or '*')}"
        taken = {column.name for column in others}
        return next(one for one in (name, *(f"{name}#{n}" for n in range(2, len(taken) + 3))) if one not in taken)

    def add(self, expr: Expr) -> int:
        """The position of the column that computes an expression."""
        if is_temporal(expr):
            raise _temporal((expr,))
        if expr.type.kind is Kind.INTERVAL:
            raise UnsupportedSQL(f"{render(expr)} is an interval, which a maintained group cannot hold",
                                 remedy="take its length: extract(epoch from ...)")  # fmt: skip
        for position, (_, known) in enumerate(self.items):
            if known == expr:
                return position
        return self._appended(expr)

    def _appended(self, expr: Expr) -> int:
        column = Column(f"group.{len(self.items)}", expr.type, not isinstance(expr, Column) or expr.nullable)
        self.items.append((column, expr))
        return len(self.items) - 1

    def add_all(self, exprs: Iterable[Expr]) -> Positions:
        """The positions of several expressions' columns."""
        return tuple(map(self.add, exprs))

    def args(self, exprs: Iterable[Expr]) -> Args:
        """Arguments: the positions of their columns, or themselves if they are constant."""
        return tuple(self.add(expr) if columns_of(expr) else expr for expr in exprs)

    def keys(self, exprs: Sequence[Expr]) -> tuple[int, Positions]:
        """How many distinct keys there are, and the position of each expression's column. Called first."""
        positions = self.add_all(exprs)
        return len(self.items), positions

    def project(self) -> Project:
        """The relation below the reduce. It has at least one column, as a collection needs one."""
        if not self.items:
            self._appended(Literal(True, BOOLEAN))
        return Project(self.input, tuple(self.items))


def _temporal(exprs: Sequence[Expr]) -> UnsupportedSQL:
    return UnsupportedSQL(f"{', '.join(map(render, exprs))} reads mz_now() in an aggregate, a window or an order",
                          remedy="compare mz_now() in WHERE")  # fmt: skip


def _depth(relation: Relation) -> int:
    """How many reduces lie on each other in a relation, at most."""
    below = max(map(_depth, inputs_below(relation)), default=0)
    return below + isinstance(relation, (Aggregate, Window, TopK))


@dataclass(frozen=True, slots=True)
class _Order:
    """Sort keys by the positions of their columns."""

    keys: tuple[tuple[int, SortKey], ...]

    @staticmethod
    def of(order: Sequence[SortKey], items: _Items) -> _Order:
        return _Order(tuple((items.add(key.expr), key) for key in order))

    def over(self, columns: Columns) -> tuple[SortKey, ...]:
        return tuple(replace(key, expr=columns[position]) for position, key in self.keys)


def _over(columns: Columns, args: Args) -> tuple[Expr, ...]:
    return tuple(columns[arg] if isinstance(arg, int) else arg for arg in args)


@dataclass
class _Running:
    """The running sums that a window keeps; calls with equal parts share them. `numbered`: the first numbers rows."""

    items: _Items
    numbered: bool
    sums: dict[tuple[str, Positions, bool], SqlType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.numbered:
            self.sums["count", (), False] = BIGINT

    def result(self, call: WindowCall) -> Callable[[Columns], Expr] | None:
        """The call's result over the columns of the sums; None if it is not computed from sums."""
        if call.function == "row_number":
            return lambda kept: kept[0]
        parts = decompose(as_aggregate(call)) if adds_up(call) else None
        if parts is None:
            return None
        places = list[int]()
        for part in parts.parts:
            every = part.kind == "count" and not any(map(_may_be_null, part.args))  # every row counts
            wanted = part.kind, () if every else self.items.add_all(part.args), call.frame.unit != "rows"
            places.append(_place(self.sums, wanted, part.type))
        return lambda kept: parts.result([kept[place] for place in places])

    def over(self, columns: Columns) -> tuple[Running, ...]:
        """The sums over the input's columns."""
        made = list[Running]()
        for (kind, places, peers), type in self.sums.items():
            args = tuple(columns[place] for place in places)
            word = "row_number" if self.numbered and not made else f"running_{_WORDS.get(kind, 'sum')}"
            own = Column(self.items.own(word, args, (one.sums.column for one in made)), type)
            made.append(Running(Sums(own, kind, args), peers))
        return tuple(made)


def _window(relation: Window) -> Lowered:
    items = _Items(relation.input)
    count, _ = items.keys(relation.partition)
    passed = items.add_all(relation.input.columns)
    order, asked = _Order.of(relation.order, items), tuple(call for _, call in relation.calls)
    local = reach_of_all(asked, ordered=bool(relation.order)) is not None
    running = _Running(items, local and any(map(needs_number, asked)))
    sums = [running.result(call) if local else None for call in asked]
    calls = [one for one, sum in zip(relation.calls, sums, strict=True) if sum is None]
    read = [(items.args(call.args), None if call.condition is None else items.add(call.condition))
            for _, call in calls]  # fmt: skip

    def function(columns: Columns) -> Windows:
        kept, made = running.over(columns), list[tuple[Column, WindowCall]]()
        for (args, condition), (shown, call) in zip(read, calls, strict=True):
            bound = replace(call, args=_over(columns, args),
                            condition=None if condition is None else columns[condition])  # fmt: skip
            taken = (*(one.sums.column for one in kept), *(column for column, _ in made))
            made.append((Column(items.own(call.function, bound.args, taken), shown.type), bound))
        return Windows(order.over(columns), tuple(made), kept)

    def above(scan: Scan) -> Relation:
        results = scan.columns[len(items.items):]
        kept, made = results[: len(running.sums)], iter(results[len(running.sums):])
        found = (next(made) if sum is None else sum(kept) for sum in sums)
        shown = (*(scan.columns[position] for position in passed), *found)
        return Project(scan, tuple(zip(relation.columns, shown, strict=True)))

    return Lowered(items.project(), count, function, above, passing=False)


def _top(relation: TopK) -> Lowered:
    items = _Items(relation.input)
    count, _ = items.keys(relation.partition)
    passed = items.add_all(relation.input.columns)
    order = _Order.of(relation.order, items)

    def function(columns: Columns) -> Top:
        return Top(order.over(columns), relation.limit, relation.offset, relation.with_ties)

    def above(scan: Scan) -> Relation:
        shown = (scan.columns[position] for position in passed)
        return Project(scan, tuple(zip(relation.columns, shown, strict=True)))

    return Lowered(items.project(), count, function, above, passing=False)


def _may_be_null(expr: Expr) -> bool:
    return expr.nullable if isinstance(expr, Column) else not isinstance(expr, Literal) or expr.value is None


@dataclass(frozen=True, slots=True)
class _Output:
    """A scan of an aggregate's output, by what its columns keep."""

    alias: str
    keys: Columns
    count: Column
    sums: Columns
    ordered: Columns


Result: TypeAlias = Callable[[_Output], Expr]


@dataclass(frozen=True, slots=True)
class _Made:
    """A user's result of sums. It is a column that a table function adds above the reduce: one row for each row."""

    call: AggregateCall
    number: int
    sums: tuple[Result, ...]

    def column(self, scan: _Output) -> Column:
        """The result's column, above a scan of the output."""
        return Column(f"{scan.alias}#{self.number}.{self.call.function}", self.call.type)

    def over(self, relation: Relation, scan: _Output) -> TableFunction:
        """The rows of a relation, in which the scan is, with the result."""
        args = tuple(sum(scan) for sum in self.sums)
        return TableFunction(relation, result_of(self.call.function), f"{scan.alias}#{self.number}", args,
                             (self.column(scan),))  # fmt: skip


@dataclass
class _Kept:
    """What an aggregate keeps for each group; calls with equal parts share them."""

    items: _Items
    sums: dict[tuple[str, Positions], SqlType] = field(default_factory=dict)
    ordered: dict[tuple[AggregateCall, Args, int | None, _Order], SqlType] = field(default_factory=dict)
    made: list[_Made] = field(default_factory=list)

    def result(self, call: AggregateCall) -> Result:
        """The call's result over the kept columns."""
        if call.sums and not call.distinct:
            sums = tuple(map(self.summed, decompose_lifted(self.items.lift(call))))
            one = _Made(call, len(self.made) + 1, sums)
            self.made.append(one)
            return one.column
        parts = decompose(call)
        if parts is None:
            if call.function == "any_value" and not call.order:
                call = replace(call, function="min")
            if call.function in ("min", "max"):  # a NULL does not count, and no condition need be kept
                call = replace(call, args=filtered(call), condition=None)
            elif call.function in ("percentile_cont", "percentile_disc"):
                several = _each_fraction(call)
                if several is not None:
                    return self._percentiles(call, several)
                call = _bare_percentile(call)
            args = self.items.args(call.args)
            condition = None if call.condition is None else self.items.add(call.condition)
            order = _Order.of(call.order, self.items)
            bare = replace(call, args=(), condition=None, order=())
            number = _place(self.ordered, (bare, args, condition, order), call.type)
            return lambda scan: scan.ordered[number]
        return self.summed(parts)

    def _percentiles(self, call: AggregateCall, calls: Sequence[AggregateCall]) -> Result:
        """An array of percentiles, each of which is kept; NULL of no values."""
        results = [self.result(one) for one in calls]
        counted = AggregateCall("count", (_bare_percentile(call).order[0].expr,), BIGINT)
        count, none = self.result(counted), Literal(None, call.type)

        def array(scan: _Output) -> Expr:
            values = Call("array", tuple(result(scan) for result in results), call.type)
            some = Call(">", (count(scan), Literal(0, BIGINT)), BOOLEAN)
            return Call("case", (some, values, none), call.type)

        return array

    def summed(self, parts: Decomposed) -> Result:
        """The result of what adds up, over the kept columns."""
        places = list[int | None]()
        for part in parts.parts:
            if part.kind == "count" and not any(map(_may_be_null, part.args)):
                places.append(None)  # every row counts
            else:
                places.append(_place(self.sums, (part.kind, self.items.add_all(part.args)), part.type))
        return lambda scan: parts.result([scan.count if place is None else scan.sums[place] for place in places])

    def function(self, columns: Columns) -> Aggregates:
        """The parts over the input's columns."""
        count = Column(self.items.own("count", ()), BIGINT, nullable=False)
        named = [count]

        def column(word: str, args: Iterable[Expr], type: SqlType) -> Column:
            named.append(Column(self.items.own(word, args, named), type))
            return named[-1]

        sums, ordered = list[Sums](), list[Ordered]()
        for (kind, places), type in self.sums.items():
            summed = tuple(columns[position] for position in places)
            sums.append(Sums(column(_WORDS.get(kind, "sum"), summed, type), kind, summed))
        for (call, args, condition, order), type in self.ordered.items():
            given, by = _over(columns, args), order.over(columns)
            own = column(call.function, (*given, *(key.expr for key in by)), type)
            counted = None if condition is None else columns[condition]
            ordered.append(Ordered(own, call.function, given, call.distinct, by, counted))
        return Aggregates(count, tuple(sums), tuple(ordered))

    def output(self, scan: Scan, keys: int) -> _Output:
        """What the columns of a scan of the output keep; `keys`: how many come first."""
        first = keys + 1 + len(self.sums)
        return _Output(scan.alias, scan.columns[:keys], scan.columns[keys], scan.columns[keys + 1 : first],
                       scan.columns[first:])  # fmt: skip


def _each_fraction(call: AggregateCall) -> list[AggregateCall] | None:
    """The calls for each fraction of a constant array; None for a single fraction."""
    fractions, element = call.args[0], call.type.element
    while isinstance(fractions, Cast):
        fractions = fractions.arg
    if call.args[0].type.element is None or not isinstance(fractions, Literal) or not isinstance(fractions.value, list):
        return None
    assert element is not None  # the result is an array, too
    numbers = [None if one is None else float(one) for one in fractions.value]
    return [replace(call, args=(Literal(number, DOUBLE),), type=element) for number in numbers]


def _bare_percentile(call: AggregateCall) -> AggregateCall:
    """The same percentile of a value that is NULL where no row counts, and of an integer itself where it is cast."""
    key = call.order[0]
    value = key.expr
    if call.function == "percentile_cont" and isinstance(value, Cast) and value.arg.type.kind in INTEGERS:
        value = value.arg  # a double is not less if the integer is not
    (value,) = filtered(replace(call, args=(value,)))
    return replace(call, condition=None, order=(replace(key, expr=value),))


def _place(known: dict[Wanted, SqlType], wanted: Wanted, type: SqlType) -> int:
    """The place of a part among those that are wanted so far."""
    known.setdefault(wanted, type)
    return list(known).index(wanted)


def _aggregate(relation: Aggregate) -> Lowered:
    items = _Items(relation.input)
    count, keys = items.keys([expr for _, expr in relation.keys])
    kept = _Kept(items)
    results = [kept.result(call) for _, call in relation.calls]

    def above(scan: Scan) -> Relation:
        output = kept.output(scan, count)
        shown = [output.keys[position] for position in keys]
        made = [result(output) for result in results]
        there: Relation = scan
        if not results and keys:  # of a row with a negative count there is none
            there = Filter(scan, Call(">", (output.count, Literal(0, BIGINT)), BOOLEAN))
        for one in kept.made:
            there = one.over(there, output)
        return Project(there, tuple(zip(relation.columns, (*shown, *made), strict=True)))

    return Lowered(items.project(), count, kept.function, above, passing=not kept.ordered)

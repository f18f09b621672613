"""Lowers aggregates: what is kept for each group, and the results as expressions over it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from halfjoin.planner.group_functions import Aggregates, Ordered, Sums
from halfjoin.planner.reduces.items import (
    WORDS,
    Args,
    Columns,
    Items,
    Lowered,
    Order,
    Positions,
    may_be_null,
    over,
    place,
)
from halfjoin.planner.rules.fit_outputs import stored_type
from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal
from halfjoin.sql.functions import cast
from halfjoin.sql.functions.aggregates import Decomposed, decompose, decompose_lifted, filtered
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Filter,
    Project,
    Relation,
    Scan,
    TableFunction,
)
from halfjoin.sql.types import BIGINT, BOOLEAN, DOUBLE, INTEGERS, SqlType
from halfjoin.sql.user_aggregate import result_of


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
    """What an aggregate keeps for each group; calls with equal parts share them. `keys`: how many keys there are."""

    items: Items
    keys: int
    sums: dict[tuple[str, Positions], SqlType] = field(default_factory=dict)
    ordered: dict[tuple[AggregateCall, Args, int | None, Order], SqlType] = field(default_factory=dict)
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
            if call.function in ("min", "max", "any_value"):  # a NULL does not count, and no condition need be kept
                call = replace(call, args=filtered(call), condition=None)
            elif call.function in ("percentile_cont", "percentile_disc"):
                several = _each_fraction(call)
                if several is not None:
                    return self._percentiles(call, several)
                call = _bare_percentile(call)
            args = self.items.args(call.args)
            condition = None if call.condition is None else self.items.add(call.condition)
            order = Order.of(call.order, self.items)
            kept = stored_type(call.type, call.function)
            bare = replace(call, args=(), condition=None, order=(), type=kept)
            number = place(self.ordered, (bare, args, condition, order), kept)
            return lambda scan: cast(scan.ordered[number], call.type)
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
            if part.kind == "count" and not any(map(may_be_null, part.args)):
                places.append(None)  # every row counts
            else:
                places.append(place(self.sums, (part.kind, self.items.add_all(part.args)), part.type))
        return lambda scan: parts.result([scan.count if place is None else scan.sums[place] for place in places])

    def function(self, columns: Columns) -> Aggregates:
        """The parts over the input's columns."""
        keys = columns[: self.keys]  # columns of the output, too; a collection below may call them as this would
        count = Column(self.items.own("count", (), keys), BIGINT, nullable=False)
        named = [*keys, count]

        def column(word: str, args: Iterable[Expr], type: SqlType) -> Column:
            named.append(Column(self.items.own(word, args, named), type))
            return named[-1]

        sums, ordered = list[Sums](), list[Ordered]()
        for (kind, places), type in self.sums.items():
            summed = tuple(columns[position] for position in places)
            sums.append(Sums(column(WORDS.get(kind, "sum"), summed, type), kind, summed))
        for (call, args, condition, order), type in self.ordered.items():
            given, by = over(columns, args), order.over(columns)
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
    """The calls for each fraction of an array; None for a single fraction."""
    fractions, element = call.args[0], call.type.element
    while isinstance(fractions, Cast):
        fractions = fractions.arg
    given: list[Expr]
    match fractions:
        case Literal(list() as values):
            given = [Literal(None if one is None else float(one), DOUBLE) for one in values]
        case Call("array", args):
            given = [cast(arg, DOUBLE) for arg in args]
        case _:
            return None
    assert element is not None  # the result is an array, too
    return [replace(call, args=(one,), type=element) for one in given]


def _bare_percentile(call: AggregateCall) -> AggregateCall:
    """The same percentile of a value that is NULL where no row counts, and of an integer itself where it is cast."""
    key = call.order[0]
    value = key.expr
    if call.function == "percentile_cont" and isinstance(value, Cast) and value.arg.type.kind in INTEGERS:
        value = value.arg  # a double is not less if the integer is not
    (value,) = filtered(replace(call, args=(value,)))
    return replace(call, condition=None, order=(replace(key, expr=value),))


def aggregate(relation: Aggregate) -> Lowered:
    """The reduce of an aggregate."""
    items = Items(relation.input)
    count, keys = items.keys([expr for _, expr in relation.keys])
    kept = _Kept(items, count)
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

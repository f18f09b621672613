"""Takes an aggregate with DISTINCT or `mode` apart, so that it follows the change.

State law. `sum(DISTINCT x)` is a sum over the values that are present in the group. So two reduces compute it. The
first keeps a count for each group and value. The second takes the values that appear or disappear, and adds them up.
What else adds up in the same GROUP BY is a part of the second one, which takes the rows beside the values:

    count(*), sum(DISTINCT x) by k   over rows of  k, x
    the first reduce                 keeps         k, x, and how many rows have them
    the second one                   takes         k, true, NULL   for each row
                                                   k, NULL, x      for each value that is present
                                     and keeps     the counts and sums of these columns by k

A value is present while the counts of its rows add up to more than 0.

`mode` is the first value in the order of these counts. An order and a sum read different collections, so they are
reduces of their own. A join by the keys, which keeps nothing, puts their results side by side.

Functions of whole groups with DISTINCT, such as `array_agg(DISTINCT x)`, stay as they are. So do aggregates in a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from halfjoin.planner.reduces.items import Items, Positions
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.expr import TRUE, Cast, Column, Expr, Literal, conjunction
from halfjoin.sql.functions import resolve
from halfjoin.sql.functions.aggregates import adds_up, filtered
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    SortKey,
    UnionAll,
)
from halfjoin.sql.types import BIGINT

_ZERO = Literal(0, BIGINT)


@dataclass(frozen=True, slots=True)
class Parted:
    """`rows`: what the first reduces take. `over`: given a scan of these rows, the same relation in parts."""

    rows: Project
    over: Callable[[Scan], Relation]


@dataclass(frozen=True, slots=True)
class _Part:
    """A relation with the keys of the groups, and with the results of some calls under their own names."""

    relation: Relation
    keys: Sequence[Column]


def parted(relation: Aggregate, aliases: Aliases) -> Parted | None:
    """The parts of an aggregate; None if it follows the change as it is, or sees whole groups anyway."""
    distinct = any(call.distinct and adds_up(call) for _, call in relation.calls)
    modes = [(column, call) for column, call in relation.calls if call.function == "mode"]
    if not distinct and not modes:
        return None
    items = Items(relation.input)
    _, keys = items.keys([expr for _, expr in relation.keys])
    parts = _Parts(relation, aliases, keys)
    sums = [(column, _Sum.of(call, items)) for column, call in relation.calls if distinct and adds_up(call)]
    named = {column.name for column, _ in (*sums, *modes)}
    rest = tuple(one for one in relation.calls if one[0].name not in named)
    values = [(column, call, items.add(_value(call).expr)) for column, call in modes]

    def over(scan: Scan) -> Relation:
        made = [parts.summed(scan, sums)] if sums else []
        made += [parts.as_it_is(rest)] if rest else []
        made += [parts.mode(scan, *one) for one in values]
        return parts.together(made)

    return Parted(items.project(), over)


def _value(call: AggregateCall) -> SortKey:
    """The sort key of `mode`. It is NULL in a row that does not count."""
    (key,) = call.order
    (expr,) = filtered(replace(call, args=(key.expr,)))
    return replace(key, expr=expr)


@dataclass(frozen=True, slots=True)
class _Sum:
    """A call that adds up. `args`: over the input's rows; of a DISTINCT call `places`, their columns in the rows that
    the first reduces take."""

    call: AggregateCall
    args: tuple[Expr, ...]
    places: Positions = ()

    @classmethod
    def of(cls, call: AggregateCall, items: Items) -> _Sum:
        """The sum of a call, whose DISTINCT arguments become columns."""
        args = filtered(call) or (TRUE,)  # count(*) counts rows
        return cls(call, args, items.add_all(args) if call.distinct else ())

    def over(self, columns: Sequence[Column]) -> AggregateCall:
        """The call over columns that have its arguments, or NULL in rows that are not its own."""
        args = (column if column.type == arg.type else Cast(column, arg.type)
                for column, arg in zip(columns, self.args, strict=True))  # fmt: skip
        return replace(self.call, args=tuple(args), distinct=False, condition=None)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of an aggregate. `keys`: the columns of its keys in the rows that the first reduces take."""

    aggregate: Aggregate
    aliases: Aliases
    keys: Positions

    def summed(self, scan: Scan, sums: Sequence[tuple[Column, _Sum]]) -> _Part:
        """What adds up, over the rows and over the values that are present."""
        keys = [expr for _, expr in self.aggregate.keys]
        rows = list(dict.fromkeys(arg for _, one in sums if not one.places for arg in one.args))
        lists = list(dict.fromkeys(one.places for _, one in sums if one.places))
        named = [(_word(expr), expr) for expr in (*keys, *rows)]
        named += [(f"distinct_{_word(scan.columns[place])}", scan.columns[place]) for one in lists for place in one]
        columns = self._named("parts", named)
        first, shown = len(keys) + len(rows), dict[Positions, Sequence[Column]]()
        arms = [(self.aggregate.input, dict(zip(columns, [*keys, *rows], strict=False)))] if rows else []
        for places in lists:
            shown[places], first = columns[first : first + len(places)], first + len(places)
            there, by_place = self._values(scan, places)
            mine = (*(by_place[place] for place in self.keys), *(by_place[place] for place in places))
            arms.append((there, dict(zip((*columns[: len(keys)], *shown[places]), mine, strict=True))))
        union = UnionAll(tuple(_arm(*arm, columns) for arm in arms), columns)
        of_rows = dict(zip(rows, columns[len(keys):], strict=False))
        calls = tuple((column, one.over(shown[one.places] if one.places else [of_rows[arg] for arg in one.args]))
                      for column, one in sums)  # fmt: skip
        return self._grouped(union, columns, calls)

    def as_it_is(self, calls: tuple[tuple[Column, AggregateCall], ...]) -> _Part:
        """The other calls over the input."""
        return self._grouped(self.aggregate.input, [expr for _, expr in self.aggregate.keys], calls)

    def mode(self, scan: Scan, column: Column, call: AggregateCall, place: int) -> _Part:
        """The value of the greatest count, and of several the first in the order; NULL if no value is present."""
        key = _value(call)
        count, most, first = self._named("mode", (("count", _ZERO), ("most", _ZERO), ("first", key.expr)))
        counted = (count, AggregateCall("count", (scan.columns[place],), BIGINT))  # 0 of NULL
        values, by_place = self._values(scan, (place,), (counted,))
        value, order = by_place[place], (SortKey(count, descending=True), replace(key, expr=by_place[place]))
        part = self._grouped(values, [by_place[one] for one in self.keys], (
            (first, AggregateCall("any_value", (value,), call.type, order=order)),
            (most, AggregateCall("max", (count,), BIGINT))))  # fmt: skip
        present = resolve("case", (resolve(">", (most, _ZERO)), first))
        items = (*((key, key) for key in part.keys), (column, present))
        return _Part(Project(part.relation, items), part.keys)

    def together(self, parts: Sequence[_Part]) -> Relation:
        """The parts side by side, by the keys."""
        first, *others = parts
        joined: Relation = first.relation
        if others:
            pairs = [pair for one in others for pair in zip(first.keys, one.keys, strict=True)]
            joined = Join(tuple(one.relation for one in parts))
            if pairs:
                joined = Filter(joined, conjunction(tuple(resolve("is not distinct from", pair) for pair in pairs)))
        items = (*((shown, key) for (shown, _), key in zip(self.aggregate.keys, first.keys, strict=True)),
                 *((column, column) for column, _ in self.aggregate.calls))  # fmt: skip
        return Project(joined, items)

    def _values(
        self, scan: Scan, places: Positions, calls: tuple[tuple[Column, AggregateCall], ...] = ()
    ) -> tuple[Aggregate, Mapping[int, Column]]:
        """The groups' values in these columns, and a column for each place."""
        every = tuple(dict.fromkeys((*self.keys, *places)))
        columns = self._named("values", [(_word(scan.columns[place]), scan.columns[place]) for place in every])
        keys = tuple((column, scan.columns[place]) for column, place in zip(columns, every, strict=True))
        return Aggregate(scan, keys, calls), dict(zip(every, columns, strict=True))

    def _grouped(
        self, input: Relation, keys: Sequence[Expr], calls: tuple[tuple[Column, AggregateCall], ...]
    ) -> _Part:
        """The calls over an input, by the keys."""
        own = self._named("group", [(_word(expr), expr) for _, expr in self.aggregate.keys])
        return _Part(Aggregate(input, tuple(zip(own, keys, strict=False)), calls), own)

    def _named(self, relation: str, wanted: Sequence[tuple[str, Expr]]) -> tuple[Column, ...]:
        """A column for each expression, by these names or numbered ones."""
        alias, names = f"={self.aliases.fresh(relation)}", Aliases()  # no user can write this name
        return tuple(Column(f"{alias}.{names.fresh(word)}", expr.type) for word, expr in wanted)


def _word(expr: Expr) -> str:
    """A name for a column that shows an expression, for people."""
    return expr.name.rpartition(".")[2] if isinstance(expr, Column) else "row" if expr == TRUE else "column"


def _arm(relation: Relation, shown: Mapping[Column, Expr], columns: Sequence[Column]) -> Project:
    """The relation as an arm of a union: NULL in the columns that it does not have."""
    return Project(relation, tuple((column, shown.get(column, Literal(None, column.type))) for column in columns))

"""Lowers windows and top-k: a window keeps running sums, from which a projection computes results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from halfjoin.planner.group_functions import Running, Sums, Top, Windows
from halfjoin.planner.reach import adds_up, as_aggregate, needs_number, reach_of_all
from halfjoin.planner.reduces.items import (
    WORDS,
    Columns,
    Items,
    Lowered,
    Order,
    Positions,
    may_be_null,
    over,
    place,
)
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions.aggregates import decompose
from halfjoin.sql.relation import (
    Project,
    Relation,
    Scan,
    TopK,
    Window,
    WindowCall,
)
from halfjoin.sql.types import BIGINT, SqlType


@dataclass
class _Running:
    """The running sums that a window keeps; calls with equal parts share them. `numbered`: the first numbers rows."""

    items: Items
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
            every = part.kind == "count" and not any(map(may_be_null, part.args))  # every row counts
            wanted = part.kind, () if every else self.items.add_all(part.args), call.frame.unit != "rows"
            places.append(place(self.sums, wanted, part.type))
        return lambda kept: parts.result([kept[place] for place in places])

    def over(self, columns: Columns) -> tuple[Running, ...]:
        """The sums over the input's columns."""
        made = list[Running]()
        for (kind, places, peers), type in self.sums.items():
            args = tuple(columns[place] for place in places)
            word = "row_number" if self.numbered and not made else f"running_{WORDS.get(kind, 'sum')}"
            own = Column(self.items.own(word, args, (one.sums.column for one in made)), type)
            made.append(Running(Sums(own, kind, args), peers))
        return tuple(made)


def window(relation: Window) -> Lowered:
    """The reduce of a window."""
    items = Items(relation.input)
    count, _ = items.keys(relation.partition)
    passed = items.add_all(relation.input.columns)
    order, asked = Order.of(relation.order, items), tuple(call for _, call in relation.calls)
    local = reach_of_all(asked, ordered=bool(relation.order)) is not None
    running = _Running(items, local and any(map(needs_number, asked)))
    sums = [running.result(call) if local else None for call in asked]
    calls = [one for one, sum in zip(relation.calls, sums, strict=True) if sum is None]
    read = [(items.args(call.args), None if call.condition is None else items.add(call.condition))
            for _, call in calls]  # fmt: skip

    def function(columns: Columns) -> Windows:
        kept, made = running.over(columns), list[tuple[Column, WindowCall]]()
        for (args, condition), (shown, call) in zip(read, calls, strict=True):
            bound = replace(call, args=over(columns, args),
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


def top(relation: TopK) -> Lowered:
    """The reduce of a top-k."""
    items = Items(relation.input)
    count, _ = items.keys(relation.partition)
    passed = items.add_all(relation.input.columns)
    order = Order.of(relation.order, items)

    def function(columns: Columns) -> Top:
        return Top(order.over(columns), relation.limit, relation.offset, relation.with_ties)

    def above(scan: Scan) -> Relation:
        shown = (scan.columns[position] for position in passed)
        return Project(scan, tuple(zip(relation.columns, shown, strict=True)))

    return Lowered(items.project(), count, function, above, passing=False)

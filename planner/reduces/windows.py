"""Lowers windows and top-k: a window keeps running sums, from which a projection computes results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from halfjoin.planner.group_functions import Running, Sums, Top, Windows
from halfjoin.planner.reach import adds_up, as_aggregate, numbered_over, plain, reach_of_all, sides_of, states_of
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
from halfjoin.planner.rules.fit_outputs import stored_type
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.functions import cast
from halfjoin.sql.functions.aggregates import decompose
from halfjoin.sql.relation import (
    Bound,
    Frame,
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
    """The sums that a window keeps; calls with equal parts share them. Each is known by its kind, its arguments and its
    frame."""

    items: Items
    sums: dict[tuple[str, Positions, Frame], SqlType] = field(default_factory=dict)

    def number(self, frame: Frame) -> int:
        """The place of the number of rows."""
        return place(self.sums, ("count", (), frame), BIGINT)

    def result(self, call: WindowCall) -> Callable[[Columns], Expr] | None:
        """The call's result over the columns of the sums; None if it is not computed from sums."""
        if call.function == "row_number":
            (numbers,) = (frame for frame in [numbered_over(call)] if frame is not None)
            at = self.number(numbers)
            return lambda kept: kept[at]
        parts = decompose(as_aggregate(call)) if adds_up(call) else None
        if parts is None:
            return None
        places = list[int]()
        for part in parts.parts:
            every = part.kind == "count" and not any(map(may_be_null, part.args))  # every row counts
            args = () if every else self.items.add_all(part.args)
            for frame in filter(None, sides_of(call.frame)):  # what it continues from
                place(self.sums, (part.kind, args, frame), part.type)
            places.append(place(self.sums, (part.kind, args, call.frame), part.type))
        return lambda kept: parts.result([kept[place] for place in places])

    def over(self, columns: Columns) -> tuple[Running, ...]:
        """The sums over the input's columns."""
        made = list[Running]()
        for (kind, places, frame), type in self.sums.items():
            args = tuple(columns[place] for place in places)
            own = self.items.own(_word(kind, places, frame), args, (one.sums.column for one in made))
            made.append(Running(Sums(Column(own, type), kind, args), frame))
        return tuple(made)


def _word(kind: str, places: Positions, frame: Frame) -> str:
    """What a column of sums is called."""
    if (kind, places, frame) == ("count", (), Frame("rows")):
        return "row_number"
    to_last = frame.start != Bound("preceding")
    return f"{'remaining' if to_last else 'running'}_{WORDS.get(kind, 'sum')}"


def window(relation: Window) -> Lowered:
    """The reduce of a window."""
    items = Items(relation.input)
    count, _ = items.keys(relation.partition)
    passed = items.add_all(relation.input.columns)
    order = Order.of(relation.order, items)
    ordered, running = bool(relation.order), _Running(items)
    asked = [replace(call, frame=plain(call.frame, ordered=ordered)) for _, call in relation.calls]
    local = reach_of_all(asked, ordered=ordered) is not None
    for frame in map(numbered_over, asked if local else []):
        if frame is not None:
            running.number(frame)
    sums = [running.result(call) if local else None for call in asked]
    calls = [replace(call, type=stored_type(call.type, call.function))
             for call, sum in zip(asked, sums, strict=True) if sum is None]  # fmt: skip
    given = len(calls)
    if local:
        calls += _continued(calls)
    read = [(items.args(call.args), None if call.condition is None else items.add(call.condition))
            for call in calls]  # fmt: skip

    def function(columns: Columns) -> Windows:
        kept, made = running.over(columns), list[tuple[Column, WindowCall]]()
        for (args, condition), call in zip(read, calls, strict=True):
            bound = replace(call, args=over(columns, args),
                            condition=None if condition is None else columns[condition])  # fmt: skip
            taken = (*(one.sums.column for one in kept), *(column for column, _ in made))
            made.append((Column(items.own(call.function, bound.args, taken), call.type), bound))
        return Windows(order.over(columns), tuple(made), kept)

    def above(scan: Scan) -> Relation:
        results = scan.columns[len(items.items):]
        kept, made = results[: len(running.sums)], iter(results[len(running.sums):][:given])
        found = (cast(next(made), call.type) if sum is None else sum(kept)
                 for call, sum in zip(asked, sums, strict=True))  # fmt: skip
        shown = (*(scan.columns[position] for position in passed), *found)
        return Project(scan, tuple(zip(relation.columns, shown, strict=True)))

    return Lowered(items.project(), count, function, above, passing=False)


def _continued(calls: Sequence[WindowCall]) -> list[WindowCall]:
    """The calls that must be kept besides these, as their results continue from results of those."""
    states = (state for call in calls for state in states_of(call) if state is not None)
    return [state for state in dict.fromkeys(states) if state not in calls]


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

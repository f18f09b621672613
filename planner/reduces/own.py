"""Lowers the user's reduces: the function sees columns that the join below computes; its results are kept as they
are."""

from __future__ import annotations

from halfjoin.planner.group_functions import Own
from halfjoin.planner.reduces.items import Columns, Items, Lowered, Order
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import Project, Relation, Scan, UserReduce


def own(relation: UserReduce) -> Lowered:
    """The reduce of a user's reduce."""
    items = Items(relation.input)
    count, keys = items.keys([expr for _, expr in relation.keys])
    taken = items.add_all(expr for _, expr in relation.takes)
    order = Order.of(relation.order, items)

    def function(columns: Columns) -> Own:
        takes = tuple((name, columns[place]) for (name, _), place in zip(relation.takes, taken, strict=True))
        outputs = list[tuple[str, Column]]()
        for name, column in relation.outputs:
            called = items.own(relation.function, (Column(name, column.type),), (one for _, one in outputs))
            outputs.append((name, Column(called, column.type)))
        return Own(relation.function, takes, order.over(columns), tuple(outputs))

    def above(scan: Scan) -> Relation:
        shown = (*(scan.columns[place] for place in keys), *scan.columns[count:])
        return Project(scan, tuple(zip(relation.columns, shown, strict=True)))

    return Lowered(items.project(), count, function, above, passing=False)

"""Queries: aggregates over whole partitions are joined to the rows, as groups are.

`sum(x) OVER (PARTITION BY k)` is the same for all rows of a partition, so nobody needs them in an order. The query adds
up as for `GROUP BY k`, and each row finds its group. A view does not: it keeps the rows of a partition side by side, to
show them anew when one of them changes.

The rows are read twice, so they are those of one table, or of groups, which are made once. A key must tell that none
of them is there less than zero times.
"""

from __future__ import annotations

from dataclasses import replace

from halfjoin.planner.below_groups import Checked
from halfjoin.planner.chance import depends_on_chance
from halfjoin.planner.narrow import narrowed
from halfjoin.sql.bind.reading import expressions
from halfjoin.sql.expr import Column, Expr, columns_of, conjunction, is_temporal
from halfjoin.sql.functions.aggregates import resolve_aggregate
from halfjoin.sql.functions.chance import draws
from halfjoin.sql.functions.resolve import resolve
from halfjoin.sql.relation import (
    Aggregate,
    AggregateCall,
    Filter,
    Frame,
    Join,
    Project,
    Relation,
    Scan,
    Window,
    WindowCall,
    every_part,
    with_inputs,
)
from halfjoin.sql.types import looks_vary

_FUNCTIONS = frozenset(("count", "sum", "avg", "min", "max", "bool_and", "bool_or", "every", "stddev", "stddev_pop",
                        "stddev_samp", "variance", "var_pop", "var_samp"))  # fmt: skip


def with_whole_partitions(relation: Relation, checked: Checked) -> Relation:
    """The same rows, from groups where results are those of whole partitions, without windows that nothing reads."""
    if not any(isinstance(part, Window) for part in every_part(relation)):
        return relation
    return _grouped(narrowed(relation, calls=True), checked)


def _grouped(relation: Relation, checked: Checked) -> Relation:
    if not isinstance(relation, Window):
        return with_inputs(relation, lambda one: _grouped(one, checked))
    windows, base = [relation], relation.input
    while isinstance(base, Window):
        windows, base = [*windows, base], base.input
    made = with_inputs(base, lambda one: _grouped(one, checked))
    if not (_is_read_twice(base) and _is_checked(base, checked)):
        return _over(windows, made)
    names = {column.name for column in base.columns}
    grouped = [(window, calls) for window in windows if (calls := _calls(window, names)) is not None]
    if not grouped:
        return _over(windows, made)
    others = [window for window in windows if all(window is not one for one, _ in grouped)]
    inputs, same = [_over(others, made)], list[Expr]()
    for window, calls in grouped:
        alias = calls[0][0].name.rpartition(".")[0]
        keys = tuple((Column(f"{alias}#of{len(inputs)}.{number}", key.type, _is_nullable(key)), key)
                     for number, key in enumerate(window.partition))  # fmt: skip
        same += [resolve("is not distinct from", (key, column)) for column, key in keys]
        inputs.append(Aggregate(made, keys, calls))
    joined: Relation = Join(tuple(inputs))
    joined = Filter(joined, conjunction(tuple(same))) if same else joined
    return Project(joined, tuple((column, column) for column in relation.columns))


def _is_nullable(key: Expr) -> bool:
    return not isinstance(key, Column) or key.nullable


def _over(windows: list[Window], base: Relation) -> Relation:
    for window in reversed(windows):
        base = replace(window, input=base)
    return base


def _is_read_twice(relation: Relation) -> bool:
    """Whether rows may be read twice, and cost little."""
    match relation:
        case Scan():
            return True
        case Filter(input) | Project(input):
            plain = not any(map(is_temporal, expressions(relation)))
            return plain and _is_read_twice(input) and not depends_on_chance(relation)
        case Aggregate():
            return not depends_on_chance(relation)
        case _:
            return False


def _is_checked(relation: Relation, checked: Checked) -> bool:
    """Whether no row is there less than zero times: a partition is an error then, and a group need not be one."""
    return all(checked(part.collection) for part in every_part(relation) if isinstance(part, Scan))


def _calls(window: Window, names: set[str]) -> tuple[tuple[Column, AggregateCall], ...] | None:
    """The aggregates that give a window's results; None: it has others."""
    if any(looks_vary(key.type) or draws(key) or not columns_of(key) <= names for key in window.partition):
        return None
    calls = [(column, _call(call, ordered=bool(window.order), names=names)) for column, call in window.calls]
    made = tuple((column, call) for column, call in calls if call is not None)
    return made if len(made) == len(calls) else None


def _call(call: WindowCall, *, ordered: bool, names: set[str]) -> AggregateCall | None:
    """The aggregate that gives a result; None: it depends on the frame, or on the order."""
    values = (*call.args, *([] if call.condition is None else [call.condition]))
    if call.function not in _FUNCTIONS or not _is_whole(call.frame, ordered=ordered):
        return None
    if any(looks_vary(value.type) or draws(value) or not columns_of(value) <= names for value in values):
        return None
    made = resolve_aggregate(call.function, call.args, condition=call.condition)
    return made if made.type == call.type and made.args == call.args else None


def _is_whole(frame: Frame, *, ordered: bool) -> bool:
    """Whether a frame has all rows of the partition."""
    if frame.exclude != "no others" or frame.start.kind != "preceding" or frame.start.offset is not None:
        return False
    if frame.end.kind == "following":
        return frame.end.offset is None
    return frame.end.kind == "current row" and frame.unit == "range" and not ordered

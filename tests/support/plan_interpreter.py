"""Run plans and relations row by row over Python integers: their meaning, without an engine.

`evaluate` is the meaning of a bound relation; `Maintained` runs a `ViewPlan`. They share only the scalars.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from halfjoin.planner import linear
from halfjoin.planner.explain.steps import formula_expr
from halfjoin.planner.linear import Atom, Combination, Formula, Linear, Static
from halfjoin.planner.plan import Constant, HalfJoin, Join, Path, Version, ViewPlan
from halfjoin.sql import relation as rel
from halfjoin.sql.expr import Call, Cast, Column, Expr, Literal, Now, columns_of, conjunction
from halfjoin.sql.functions import fallible, render
from tests.support import reduce_interpreter as reduces

Row = dict[str, Any]
Update = tuple[Row, int, int]
NOW = "mz_now()"
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "+": operator.add, "-": operator.sub, "*": operator.mul,
}  # fmt: skip


class Failed(Exception):
    """An expression fails for a row."""


def scalar(expr: Expr, row: Row) -> Any:
    match expr:
        case Column(name=name):
            return row[name]
        case Literal(value=value):
            return value
        case Now():
            return row[NOW]
        case Cast(arg=arg):
            return scalar(arg, row)
        case Call("and" | "or" as name, args):
            return _connective(name == "and", args, row)
        case Call("case", args):
            pairs = zip(args[:-1:2], args[1::2], strict=True)
            return scalar(next((value for condition, value in pairs if scalar(condition, row)), args[-1]), row)
        case Call("value or null" | "value fails" as name, (arg,)):
            try:
                value = scalar(arg, row)
            except Failed:
                return None if name == "value or null" else True
            return value if name == "value or null" else False
        case Call(name, args):
            values = [scalar(arg, row) for arg in args]
            if name in ("is null", "is not null"):
                return (values[0] is None) is (name == "is null")
            if name in ("least", "greatest", "coalesce"):
                given = [value for value in values if value is not None]
                pick = {"least": min, "greatest": max, "coalesce": lambda some: some[0]}[name]
                return pick(given) if given else None
            if name == "is not distinct from":
                return values[0] == values[1]
            if any(value is None for value in values):
                return None
            if name == "not":
                return not values[0]
            if name == "/":
                if values[1] == 0:
                    raise Failed
                return int(values[0] / values[1])
            if name == "%":
                return math.fmod(*values) if isinstance(values[0], float) else int(math.fmod(*values))
            if name == "in":
                return values[0] in values[1:]
            return BINARY[name](*values)


def _connective(is_and: bool, args: tuple[Expr, ...], row: Row) -> Any:
    """AND or OR: an argument that decides does so even if another fails."""
    values, failed = [], False
    for arg in args:
        try:
            values.append(scalar(arg, row))
        except Failed:
            failed = True
    if (not is_and) in values:
        return not is_and
    if failed:
        raise Failed
    return None if None in values else is_and


def rows_of(function: str, args: list[Any]) -> list[tuple[tuple[Any, ...], int]]:
    """A table function's rows and their weights."""
    if None in args:
        return []
    if function == "repeat_row":
        return [((), args[0])] if args[0] else []
    step = args[2] if len(args) > 2 else 1
    if step == 0:
        raise Failed
    return [((value,), 1) for value in range(args[0], args[1] + (1 if step > 0 else -1), step)]


# The meaning of a relation at one time.


def evaluate(relation: rel.Relation, contents: Mapping[str, Counter[tuple[Any, ...]]], now: int) -> Counter[Any]:
    """The relation's rows, as tuples in the order of its columns, with their counts."""
    found: Counter[Any] = Counter()
    for row, count in _rows(relation, contents, now):
        found[tuple(_hashable(row[column.name]) for column in relation.columns)] += count
    return Counter({row: count for row, count in found.items() if count})


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _rows(relation: rel.Relation, contents: Mapping[str, Any], now: int) -> Iterator[tuple[Row, int]]:
    match relation:
        case rel.Scan(collection, _, columns):
            for values, count in contents[collection].items():
                yield {column.name: value for column, value in zip(columns, values, strict=True)} | {NOW: now}, count
        case rel.Values(_, columns, rows):
            for cells in rows:
                yield {c.name: scalar(cell, {}) for c, cell in zip(columns, cells, strict=True)} | {NOW: now}, 1
        case rel.Join(inputs):
            for combination in product(*(list(_rows(item, contents, now)) for item in inputs)):
                merged: Row = {}
                total = 1
                for row, count in combination:
                    merged |= row
                    total *= count
                yield merged, total
        case rel.TableFunction():
            for row, count in _rows(relation.input, contents, now):
                made = rows_of(relation.function, [scalar(arg, row) for arg in relation.args])
                for number, (values, weight) in enumerate(made, 1):
                    own = {c.name: v for c, v in zip(relation.outputs, values, strict=True)}
                    if relation.ordinality:
                        own[relation.ordinality.name] = number
                    yield row | own, count * weight
        case rel.Filter(input, predicate):
            yield from ((row, count) for row, count in _rows(input, contents, now) if _holds_for(predicate, row))
        case rel.Project(input, items):
            for row, count in _rows(input, contents, now):
                yield {column.name: scalar(expr, row) for column, expr in items} | {NOW: now}, count
        case rel.UnionAll(inputs, columns):
            for item in inputs:
                for row, count in _rows(item, contents, now):
                    renamed = {c.name: row[o.name] for c, o in zip(columns, item.columns, strict=True)}
                    yield renamed | {NOW: now}, count
        case rel.Aggregate(input, keys, calls):
            found = _copies(input, contents, now)
            for rows in _partitions(found, [expr for _, expr in keys]) or ([] if keys else [[]]):
                made = {column.name: scalar(expr, rows[0]) for column, expr in keys}
                yield made | {c.name: reduces.aggregate(call, rows, scalar) for c, call in calls} | {NOW: now}, 1
        case rel.Window(input, partition, order, calls):
            names, named = [c.name for c in input.columns], [(c.name, call) for c, call in calls]
            for rows in _partitions(_copies(input, contents, now), partition):
                yield from ((row, 1) for row in reduces.window(named, rows, order, names, scalar))
        case rel.TopK(input, partition, order, limit, offset, with_ties):
            names = [c.name for c in input.columns]
            for rows in _partitions(_copies(input, contents, now), partition):
                yield from ((row, 1) for row in reduces.top(rows, order, names, scalar, limit, offset, with_ties))
        case rel.Outer(left, right):
            yield from _outer(list(_rows(left, contents, now)), list(_rows(right, contents, now)), relation)
        case rel.Semi(input, other, on, anti):
            others = list(_rows(other, contents, now))
            for row, count in _rows(input, contents, now):
                if any(_holds_for(on, row | inner) for inner, _ in others) is not anti:
                    yield row, count


def _copies(relation: rel.Relation, contents: Mapping[str, Any], now: int) -> list[Row]:
    """The rows, as often as they are contained."""
    found: Counter[Any] = Counter()
    names = [column.name for column in relation.columns]
    rows: dict[Any, Row] = {}
    for row, count in _rows(relation, contents, now):
        key = reduces.group_key([row[name] for name in names])
        found[key] += count
        rows.setdefault(key, row)
    assert all(count >= 0 for count in found.values())
    return [dict(rows[key]) for key, count in found.items() for _ in range(count)]


def _partitions(rows: list[Row], keys: Sequence[Expr]) -> list[list[Row]]:
    """The rows by the values of the keys."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(reduces.group_key([scalar(key, row) for key in keys]), []).append(row)
    return list(found.values())


def _outer(left: list[tuple[Row, int]], right: list[tuple[Row, int]], outer: rel.Outer) -> Iterator[tuple[Row, int]]:
    """The pairs, then each side's rows without a partner."""
    partners: set[int] = set()
    for row, count in left:
        found = [place for place, (other, _) in enumerate(right) if _holds_for(outer.on, row | other)]
        partners |= set(found)
        yield from ((row | right[place][0], count * right[place][1]) for place in found)
        if not found:
            yield row | {column.name: None for column in outer.right.columns}, count
    if outer.full:
        for place, (row, count) in enumerate(right):
            if place not in partners:
                yield row | {column.name: None for column in outer.left.columns}, count


def _holds_for(predicate: Expr, row: Row) -> bool:
    """Whether a predicate is true. It fails only if no part decides without failing; a NULL decides an AND."""
    match predicate:
        case Call("and" | "or" as name, args):
            deciding, failed = name == "or", False
            for arg in args:
                try:
                    if _holds_for(arg, row) is deciding:
                        return deciding
                except Failed:
                    failed = True
            if failed:
                raise Failed
            return not deciding
        case _:
            return scalar(predicate, row) is True


# A plan, run as the engine runs it.

Lookup = Callable[[str, Version], list[Update]]


class Maintained:
    """Runs a plan over batches, and collects its output and error updates."""

    def __init__(self, plan: ViewPlan) -> None:
        self.plan = plan
        self.outputs: dict[str, list[Update]] = {join.output: [] for join in plan.joins}
        self.errors: list[tuple[str, int, int]] = []
        self._constants = {
            join.output: {item.name: list(_constant(item)) for item in join.constants} for join in plan.joins
        }

    @property
    def output(self) -> list[tuple[tuple[Any, ...], int, int]]:
        """Of the view."""
        return [(tuple(row.values()), time, diff) for row, time, diff in self.outputs[self.plan.output.output]]

    def change(self, changes: Mapping[str, list[Update]], lookup: Lookup) -> None:
        """A batch: each node once, each path of each changed input."""
        made: dict[str, list[Update]] = {}
        before = {name: list(updates) for name, updates in self.outputs.items()}

        def versions(name: str, version: Version) -> list[Update]:
            if name not in before:
                return lookup(name, version)
            return before[name] + made[name] if version is Version.AFTER else before[name]

        for join in self.plan.joins:
            made[join.output] = []
            for branch in join.branches:
                for path in branch.paths:
                    changed = made.get(path.collection, changes.get(path.collection, []))
                    made[join.output] += self._run(join, path, changed, versions)
            self.outputs[join.output] += made[join.output]

    def fill(self, lookup: Lookup) -> None:
        """The whole history so far: one path, and the failures of the other inputs' own operators."""

        def whole(name: str, _: Version = Version.AFTER) -> list[Update]:
            return self.outputs[name] if name in self.outputs else lookup(name, Version.AFTER)

        for join in self.plan.joins:
            made: list[Update] = []
            for branch in join.branches:
                for position, path in enumerate(branch.paths):
                    history = self._constants[join.output].get(path.collection) or whole(path.collection)
                    if position == branch.fill:
                        made += self._run(join, path, history, whole)
                    else:
                        self._operate(path.source, _fetched(path.fetch, history))
            self.outputs[join.output] = made

    def _run(self, join: Join, path: Path, changed: list[Update], lookup: Lookup) -> list[Update]:
        stream = self._operate(path.source, _fetched(path.fetch, changed))
        constants = self._constants[join.output]
        for stage in path.stages:
            half_join = stage.half_join
            name = half_join.arrangement.collection
            rows = constants[name] if name in constants else lookup(name, half_join.version)
            stream = self._operate(stage.then, _half_join(half_join, stream, rows))
        made = self._operate(path.final, stream)
        names = [column.name for column in join.columns]
        assert all(list(row) == names for row, _, _ in made)
        return made

    def _operate(self, operator: Linear, updates: list[Update]) -> list[Update]:
        errors: list[tuple[str, int, int]] = []
        for step in operator.steps:
            updates = [made for update in updates for made in _step(step, update, errors)]
        if operator.reports:
            self.errors += errors
        return updates


def _fetched(fetch: tuple[tuple[str, str], ...], updates: list[Update]) -> list[Update]:
    return [({name: row[column] for column, name in fetch}, time, diff) for row, time, diff in updates]


def _half_join(half_join: HalfJoin, stream: list[Update], rows: list[Update]) -> list[Update]:
    found = []
    for left, time, diff in stream:
        try:
            probe = [scalar(expr, left) for expr in half_join.probe]
        except Failed:
            continue
        for row, time2, diff2 in rows:
            if any(_matches(half_join, probe, keys) for keys in _keys(half_join, row)):
                merged = left | {name: row[column] for column, name in half_join.fetch}
                found.append((merged, max(time, time2), diff * diff2))
    return found


def _keys(half_join: HalfJoin, row: Row) -> list[list[Any]]:
    """The index entries of a row. None of them if its key fails."""
    updates: list[Update] = [(row, 0, 1)]
    for step in half_join.arrangement.through.steps if half_join.arrangement.through else ():
        updates = [made for update in updates for made in _step(step, update, [])]
    entries = []
    for made, _, _ in updates:
        try:
            entries.append([scalar(expr, made) for expr in half_join.arrangement.keys])
        except Failed:
            continue
    return entries


def _matches(half_join: HalfJoin, probe: list[Any], keys: list[Any]) -> bool:
    pairs = zip(probe, keys, half_join.null_safe, strict=True)
    return all(left == right and (null_safe or left is not None) for left, right, null_safe in pairs)


def _step(step: linear.Step, update: Update, errors: list[tuple[str, int, int]]) -> list[Update]:
    row, time, diff = update
    current: Expr | None = None
    try:
        match step:
            case linear.Filter(predicates):
                if not all(scalar(p, row) is True for p in predicates if not fallible(p)):
                    return []
                risky = tuple(p for p in predicates if fallible(p))
                current = conjunction(risky)
                return [update] if not risky or _connective(True, risky, row) is True else []
            case linear.Extend(items):
                made = {}
                for column, current in items:
                    made[column.name] = scalar(current, row)
                return [({name: value for name, value in row.items() if name not in made} | made, time, diff)]
            case linear.Keep(columns):
                return [({name: row[name] for name in columns}, time, diff)]
            case linear.Explode():
                current = Call(step.function, step.args, step.args[0].type)
                return _exploded(step, update)
            case linear.Temporal(formula):
                return _temporal(formula, update, errors)
    except Failed:
        assert current is not None
        errors.append((_failure(current, row), time, diff))
        return []


def _failure(expr: Expr, row: Row) -> str:
    return f"{render(expr)} for {', '.join(f'{name} = {row[name]}' for name in sorted(columns_of(expr)))}"


def _constant(item: Constant) -> Iterator[Update]:
    names = [column.name for column in item.columns]
    if item.made is None:
        yield from ((dict(zip(names, [scalar(cell, {}) for cell in row], strict=True)), 0, 1) for row in item.rows)
    else:
        yield from ((dict(zip(names, row.values(), strict=True)), time, diff)
                    for row, time, diff in _exploded(item.made, ({}, 0, 1)))  # fmt: skip


def _exploded(step: linear.Explode, update: Update) -> list[Update]:
    row, time, diff = update
    result = []
    for number, (values, weight) in enumerate(rows_of(step.function, [scalar(arg, row) for arg in step.args]), 1):
        own = {c.name: v for c, v in zip(step.outputs, values, strict=True)}
        if step.ordinality:
            own[step.ordinality.name] = number
        result.append((row | own, time, diff * weight))
    return result


def _temporal(formula: Formula, update: Update, errors: list[tuple[str, int, int]]) -> list[Update]:
    row, time, diff = update
    points = sorted({time, *(max(time, point) for bound in _bounds(formula, row) for point in (bound, bound + 1))})
    failure = _failure(formula_expr(formula), row)
    result, was_in, failed = [], 0, 0
    for point in points:
        value = _holds(formula, row, point)
        now_in, fails = int(value is True), int(value is FAILS)
        if now_in != was_in:
            result.append((row, point, diff * (now_in - was_in)))
        if fails != failed:
            errors.append((failure, point, diff * (fails - failed)))
        was_in, failed = now_in, fails
    return result


def _bounds(formula: Formula, row: Row) -> Iterator[int]:
    match formula:
        case Atom(_, bound):
            value = _scalar(bound, row)
            if value is not None and value is not FAILS:
                yield value
        case Combination(_, args):
            for arg in args:
                yield from _bounds(arg, row)


def _holds(formula: Formula, row: Row, now: int) -> Any:
    """True, False, None for unknown, or FAILS."""
    match formula:
        case Static(expr):
            return _scalar(expr, row)
        case Atom(op, bound):
            against = _scalar(bound, row)
            return against if against is None or against is FAILS else bool(BINARY[op](now, against))
        case Combination("not", args):
            inner = _holds(args[0], row, now)
            return inner if inner is None or inner is FAILS else not inner
        case Combination(op, args):
            values = [_holds(arg, row, now) for arg in args]
            deciding = op == "or"
            if deciding in values:
                return deciding
            return FAILS if FAILS in values else None if None in values else not deciding


def _scalar(expr: Expr, row: Row) -> Any:
    try:
        return scalar(expr, row)
    except Failed:
        return FAILS


FAILS = object()

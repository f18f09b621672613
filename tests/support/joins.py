"""Joins put together by hand, of present, absent and padded inputs: their plans, and their meaning by brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import product
from typing import Any

import halfjoin
from halfjoin.catalog.models import ColumnModel, View
from halfjoin.engine.arrange.collection import Collection, User
from halfjoin.engine.batch.enter import share_all
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.definitions import _filled
from halfjoin.planner.block import Block, Input, Match
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.facts import Facts
from halfjoin.planner.paths import branch
from halfjoin.planner.plan import InputKind, Join, ViewPlan
from halfjoin.planner.rules import RULES
from halfjoin.sql.expr import Call, Column, Expr, Literal
from halfjoin.sql.functions import resolve
from halfjoin.sql.types import INTEGER
from tests.support.plan_interpreter import scalar

Row = tuple[Any, ...]
Contents = Mapping[str, Counter[Row]]


def integer(name: str) -> Column:
    return Column(name, INTEGER)


def number(value: int | None) -> Literal:
    return Literal(value, INTEGER)


def call(function: str, *args: Expr) -> Expr:
    return resolve(function, args)


def table(alias: str, *names: str, collection: str = "") -> Input:
    """A plain input; of the alias's collection if none is said."""
    return Input(alias, collection or alias, tuple(integer(f"{alias}.{name}") for name in names))


def join(
    inputs: tuple[Input, ...], predicates: tuple[Expr, ...] = (), outputs: tuple[Expr, ...] | None = None
) -> Block:
    """A block that gives all columns that there are, or these expressions."""
    if outputs is None:
        shown = [item for item in inputs if item.kind in (InputKind.PLAIN, InputKind.PADDED)]
        outputs = tuple(column for item in shown for column in item.columns)
    return Block(inputs, (), predicates, tuple((Column(f"o{i}", one.type), one) for i, one in enumerate(outputs)))


def planned(block: Block, facts: Facts, name: str = "v") -> ViewPlan:
    """Its plan, by all the rules."""
    blocks = (block,)
    for rule in RULES:
        blocks = rule(blocks)
    branches = tuple(branch(one, i, Estimates(facts, {}, name), set()) for i, one in enumerate(blocks))
    return ViewPlan((Join(name, tuple(column for column, _ in block.outputs), branches),))


def create(engine: halfjoin.Engine, block: Block, name: str = "v") -> None:
    """A materialized view of a block."""
    state: State = engine._state
    plan = planned(block, state, name)
    columns = tuple(ColumnModel(name=c.name, type=c.type) for c in plan.columns)
    view = View(name=name, columns=columns, text="", materialized=True, reads=plan.collections)
    state.maintained[name], _ = _filled(state, engine._runners, view, plan, User("new view", name))
    state.catalog.add(view)
    share_all(state, plan, name)


def contents(collection: Collection, time: int) -> Counter[Row]:
    """What the updates at or below a time add up to, counts below zero and all."""
    found: Counter[Row] = Counter()
    for run in collection.runs:
        for piece in run.pieces():
            rows = zip(*(column.to_pylist() for column in piece.columns.values()), strict=True)
            for row, when, diff in zip(rows, piece.time.tolist(), piece.diff.tolist(), strict=True):
                if when <= time:
                    found[row] += diff
    return Counter({row: count for row, count in found.items() if count})


def evaluate(block: Block, tables: Contents) -> Counter[Row]:
    """What a block means over the contents of its tables."""
    found: Counter[Row] = Counter()
    plain = [item for item in block.inputs if item.kind is InputKind.PLAIN]
    for choice in product(*(tables[item.collection].items() for item in plain)):
        row, count = dict[str, Any](), 1
        for item, (values, copies) in zip(plain, choice, strict=True):
            row |= _named(item, values)
            count *= copies
        for whole, copies in _matched(block, [item for item in block.inputs if item not in plain], row, count, tables):
            if all(scalar(predicate, whole) is True for predicate in block.predicates):
                found[tuple(scalar(expr, whole) for _, expr in block.outputs)] += copies
    return Counter({row: count for row, count in found.items() if count})


def _named(item: Input, values: Row) -> dict[str, Any]:
    return {column.name: value for column, value in zip(item.columns, values, strict=True)}


def _matched(block: Block, left: list[Input], row: dict[str, Any], count: int, tables: Contents) -> Any:
    """The row beside what the inputs that are left give, each once what it is looked up by is there."""
    if not left:
        yield row, count
        return
    read = {item.alias: {n for match in item.on for n in _columns(match.probe)} for item in left}
    item = next(one for one in left if read[one.alias] <= row.keys())
    rest = [other for other in left if other is not item]
    hits = [(own, copies) for values, copies in tables[item.collection].items()
            if _counts(item, own := _named(item, values), row)]  # fmt: skip
    there = sum(copies for _, copies in hits) > 0
    if item.kind is InputKind.PADDED:
        default = {name: literal.value for name, literal in item.default_row.items()}
        for own, copies in [*hits, *([] if there else [(default, 1)])]:
            yield from _matched(block, rest, row | own, count * copies, tables)
    elif there is (item.kind is InputKind.PRESENT):
        yield from _matched(block, rest, row, count, tables)


def _counts(item: Input, own: dict[str, Any], row: dict[str, Any]) -> bool:
    def equal(match: Match) -> bool:
        left, right = scalar(match.key, own), scalar(match.probe, row)
        return left == right and (match.null_safe or left is not None)

    return all(map(equal, item.on)) and all(scalar(condition, own) is True for condition in item.conditions)


def _columns(expr: Expr) -> set[str]:
    if isinstance(expr, Column):
        return {expr.name}
    return {name for arg in (expr.args if isinstance(expr, Call) else ()) for name in _columns(arg)}

"""From a bound view to its dataflow: `plan`, and `trace`, which shows what each rule did."""

from __future__ import annotations

from dataclasses import replace

from halfjoin.planner.block import Blocks
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.facts import Facts
from halfjoin.planner.paths import branch
from halfjoin.planner.plan import ArrangementKey, Constant, ViewPlan
from halfjoin.planner.rules import RULES, flatten
from halfjoin.planner.rules.fit_outputs import stored
from halfjoin.planner.warnings import warnings
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import Relation


def plan(relation: Relation, facts: Facts, name: str = "query") -> ViewPlan:
    """The dataflow of a view called `name`; what only a view of that name uses does not count as existing.

    Raises:
        UnsupportedSQL: the view cannot be maintained; the text says why, and what to write instead.
    """
    return trace(relation, facts, name)[1]


def trace(relation: Relation, facts: Facts, name: str = "query") -> tuple[tuple[tuple[str, Blocks], ...], ViewPlan]:
    """The normal form after each rule, by the rule's name, and the plan."""
    blocks = flatten(relation)
    steps = [(flatten.__name__, blocks)]
    for rule in RULES:
        blocks = rule(blocks)
        steps.append((rule.__name__, blocks))
    constants = _constants(blocks)
    estimates = Estimates(facts, {constant.name: len(constant.rows) for constant in constants}, name)
    chosen: set[ArrangementKey] = set()
    branches = tuple(branch(block, number, estimates, chosen) for number, block in enumerate(blocks))
    columns = tuple(replace(column, type=stored(column)) for column in relation.columns)
    made = ViewPlan(columns, branches, constants)
    return tuple(steps), replace(made, warnings=warnings(made, estimates))


def _constants(blocks: Blocks) -> tuple[Constant, ...]:
    """The constant inputs, each once though branches share it."""
    found = {}
    for block in blocks:
        for item in block.inputs:
            if item.rows is not None:
                columns = tuple(Column(item.bare(c.name), c.type, c.nullable) for c in item.columns)
                found[item.collection] = Constant(item.collection, columns, item.rows)
    return tuple(found.values())

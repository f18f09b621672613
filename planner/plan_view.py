"""Makes the plan of a bound view: `plan` returns it, and `trace` also shows what each rule did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain

from halfjoin.planner.block import Blocks
from halfjoin.planner.cost import path_cost, share_of_source
from halfjoin.planner.cut import cut
from halfjoin.planner.estimates import Estimates
from halfjoin.planner.facts import Facts
from halfjoin.planner.failing_rows import branches_of
from halfjoin.planner.filling import filling, join_with_known
from halfjoin.planner.known import Arranged, beginning, found_by_keys
from halfjoin.planner.plan import ArrangementKey, Constant, Join, Node, Reduce, ViewPlan
from halfjoin.planner.rules import normal_form
from halfjoin.planner.rules.find_equalities import dare
from halfjoin.planner.rules.fit_outputs import stored
from halfjoin.planner.warnings import warnings
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import Relation


def plan(relation: Relation, facts: Facts, name: str = "query") -> ViewPlan:
    """The plan of a view called `name`. An arrangement that only a view of that name uses does not count as existing.

    Raises:
        UnsupportedSQL: the view cannot be maintained; the text says why, and what to write instead.
    """
    return trace(relation, facts, name)[1]


def plan_of_query(
    relation: Relation, facts: Facts, name: str, arranged: Arranged, daring: bool = False
) -> ViewPlan:
    """As `plan`, with the paths that a query needs, and the known keys of its inputs (`planner.known`). `daring`: the
    caller has another plan made if this one fails."""
    return trace(relation, facts, name, arranged, daring=daring)[1]


def trace(
    relation: Relation, facts: Facts, name: str = "query", arranged: Arranged | None = None, *, daring: bool = False
) -> tuple[tuple[tuple[str, Blocks], ...], ViewPlan]:
    """The normal form after each rule, by the rule's name, and the plan. For a node the name is `rule of node`.
    `arranged`, `daring`: of a query, see `plan_of_query`."""
    estimates = Estimates(facts, {}, name)
    steps: list[tuple[str, Blocks]] = []
    nodes: list[Node] = []

    def asked(blocks: Blocks) -> Blocks:
        """As a daring query has them."""
        return tuple(map(dare, blocks)) if daring else blocks

    relation, below, dares = cut(relation, facts) if arranged is None else cut(
        relation, facts, partial(found_by_keys, estimates=estimates, arranged=arranged), daring=daring)  # fmt: skip
    for one in below:
        if isinstance(one, Reduce):
            nodes.append(one)
            estimates = estimates.with_node(one.output, estimates.rows(one.input), one.identifying)
            continue
        steps += [(f"{rule} of {one.name}", blocks) for rule, blocks in one.steps]
        node, filled = facts.node(one.name), None if one.loops else arranged
        if not isinstance(node, Join):
            blocks = asked(one.steps[-1][1])
            dares = dares or any(block.dares for block in blocks)
            made = _join(one.name, one.relation, blocks, estimates, filled, nodes)
            node = replace(made, passing=one.passing, loops=one.loops, last=one.last)
        elif filled is not None:
            node = join_with_known(node, [node.output for node in nodes], estimates, filled)
        nodes.append(replace(node, named=one.named))
        estimates = estimates.with_node(one.name, _rows(node, estimates))
    own = normal_form(relation)
    blocks = asked(own[-1][1])
    dares = dares or any(block.dares for block in blocks)
    made = _join(name, relation, blocks, estimates, arranged, nodes)
    estimates = estimates.with_constants(made.constants)
    return (*steps, *own), ViewPlan((*nodes, made), warnings(made, estimates) if arranged is None else (), dares)


def _join(
    name: str, relation: Relation, blocks: Blocks, estimates: Estimates, arranged: Arranged | None,
    below: Sequence[Node],
) -> Join:  # fmt: skip
    """The node whose output is the sum of these blocks. `below`: the nodes before it."""
    constants = _constants(blocks)
    estimates = estimates.with_constants(constants)
    chosen: set[ArrangementKey] = set()
    own = [node.output for node in below]
    branches = [branches_of(block, number, estimates, chosen) if arranged is None else
                (filling(block, number, estimates, chosen, arranged, own),)
                for number, block in enumerate(blocks)]  # fmt: skip
    columns = tuple(replace(column, type=stored(column)) for column in relation.columns)
    return Join(name, columns, tuple(chain.from_iterable(branches)), constants)


def _rows(join: Join, estimates: Estimates) -> float:
    """The estimated rows of a node's output."""
    estimates = estimates.with_constants(join.constants)
    rows = 0.0
    for path in (one.paths[one.fill] for one in join.branches):
        results, found = path_cost(path, estimates).results, beginning(path.collection, path.known, estimates)[0]
        rows += min(estimates.rows(path.collection) * results, found * results / share_of_source(path, estimates))
    return rows


def _constants(blocks: Blocks) -> tuple[Constant, ...]:
    """The constant inputs, each once, even if several branches share it."""
    found = {}
    for block in blocks:
        for item in block.inputs:
            if item.rows is not None:
                columns = tuple(Column(item.bare(c.name), c.type, c.nullable) for c in item.columns)
                found[item.collection] = Constant(item.collection, columns, item.rows, item.made)
    return tuple(found.values())

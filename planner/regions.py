"""A region of a relation: the joins down to its UNION ALLs, what its scans and unions are, and it with nodes in their
place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from halfjoin.planner.block import Blocks
from halfjoin.planner.plan import Reduce
from halfjoin.planner.rules.flatten import MOST_BRANCHES
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import (
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Scan,
    Semi,
    TableFunction,
    UnionAll,
    every_part,
    inputs_below,
    with_inputs,
)

MOST_JOINS = 16  # joins that a join of several unions is distributed into


@dataclass(frozen=True, slots=True)
class CutNode:
    """A join that was cut out: its name, its relation under canonical names, and its blocks after each rule.

    The other fields are those of `planner.plan.Join`.
    """

    name: str
    relation: Relation
    steps: tuple[tuple[str, Blocks], ...]
    passing: bool = False
    loops: tuple[str, ...] = ()
    last: int | None = None
    named: tuple[str, ...] = ()


def swapped(relation: Relation, old: Relation, new: Relation) -> Relation:
    """The relation with another one in the place of a part of it."""
    return new if relation is old else with_inputs(relation, lambda below: swapped(below, old, new))


def collections_read(node: CutNode | Reduce) -> set[str]:
    """The collections that a node reads."""
    return {node.input} if isinstance(node, Reduce) else {scan.collection for scan in scans_in(node.relation)}


def shown_collection(blocks: Blocks) -> tuple[str, tuple[Column, ...]] | None:
    """The collection whose rows the blocks show unchanged, and the columns of it that they show, each once; None if
    they do more than that."""
    if len(blocks) != 1:
        return None
    (block,) = blocks
    more = (*block.functions, *block.predicates, *block.temporal, *block.equalities)
    if len(block.inputs) != 1 or more or block.inputs[0].rows is not None:
        return None
    (item,) = block.inputs
    columns = []
    for _, expr in block.outputs:
        if not isinstance(expr, Column):
            return None
        columns.append(Column(item.bare(expr.name), expr.type, expr.nullable))
    if len({column.name for column in columns}) < len(columns):  # what reads them tells columns apart by name
        return None
    return item.collection, tuple(columns)


def too_many(counts: Sequence[int]) -> bool:
    """Whether the parts of unions multiply to too many joins."""
    several = sum(count > 1 for count in counts) > 1
    return prod(counts) > (MOST_JOINS if several else MOST_BRANCHES)


def scan_of(node: CutNode, whole: Relation, named: Sequence[Column]) -> Relation:
    """A scan of the node collection that replaces a relation, under the names of its columns. Its alias is the alias of
    the columns `named`: the user's name for the relation."""
    alias = named[0].name.partition(".")[0]
    columns = tuple(replace(column, name=f"{alias}.{column.name}") for column in node.relation.columns)
    return Project(Scan(node.name, alias, columns), tuple(zip(whole.columns, columns, strict=True)))


def scans_in(relation: Relation) -> Iterator[Scan]:
    """All scans of a relation, in its loops and unions too."""
    return (one for one in every_part(relation) if isinstance(one, Scan))


def unions_of(relation: Relation) -> Iterator[UnionAll]:
    """The UNION ALLs of a region, not those in their arms."""
    if isinstance(relation, UnionAll):
        yield relation
    else:
        for inner in inputs_below(relation):
            yield from unions_of(inner)


def has_join(relation: Relation) -> bool:
    """Whether the region has a join."""
    if isinstance(relation, (Join, UnionAll)):
        return isinstance(relation, Join)
    return any(map(has_join, inputs_below(relation)))


def rebuilt(relation: Relation, parts: Mapping[int, UnionAll | CutNode]) -> Relation:
    """The region with its parts in the place of its unions, which are named by their `id`."""
    match relation:
        case Project(UnionAll() as union, items):
            part, named = parts[id(union)], [column for column, _ in items if "." in column.name] or union.columns
            return Project(scan_of(part, union, named) if isinstance(part, CutNode) else part, items)
        case UnionAll(columns=columns):
            part = parts[id(relation)]
            return scan_of(part, relation, columns) if isinstance(part, CutNode) else part
        case Join(inputs):
            return Join(tuple(rebuilt(item, parts) for item in inputs))
        case Outer(left):
            return replace(relation, left=rebuilt(left, parts))
        case Filter() | Project() | TableFunction() | Semi():
            return replace(relation, input=rebuilt(relation.input, parts))
        case _:
            return relation

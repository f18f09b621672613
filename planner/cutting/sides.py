"""Cuts the looked-up sides of joins, and the unions that would make too many joins, into nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from halfjoin.planner.cutting.nodes import Nodes
from halfjoin.planner.keeping import cannot_be_kept, may_be_kept
from halfjoin.planner.late_probes import late_probes, with_columns
from halfjoin.planner.regions import CutNode, has_join, rebuilt, scan_of, shown_collection, too_many, unions_of
from halfjoin.planner.rules.fit_outputs import stored
from halfjoin.planner.rules.sides import asked, shown, side_of
from halfjoin.planner.unkeyed import unkeyed
from halfjoin.sql.expr import Column, Expr, replaced
from halfjoin.sql.relation import Fed, Filter, Join, Loop, Outer, Project, Relation, Scan, Semi, UnionAll, Values


class Sides(Nodes):
    """Cuts regions: what lies between a reduce, or the whole, and the reduces below it."""

    def region(self, relation: Relation) -> tuple[Relation, int]:
        """The relation after the cut, and how many joins are left of it. A region ends at the UNION ALLs in it."""
        relation = self.sides(relation)
        unions = list(unions_of(relation))
        parts: dict[int, UnionAll | CutNode] = {}  # what takes the place of each union
        counts: dict[int, int] = {}
        for union in unions:
            arms = [self.region(arm) for arm in union.inputs]
            parts[id(union)] = UnionAll(tuple(arm for arm, _ in arms), union.columns)
            counts[id(union)] = sum(count for _, count in arms)
        here: set[str] = set()  # nodes that this region looks up
        for union in sorted(unions, key=lambda one: counts[id(one)], reverse=True):
            part, many = parts[id(union)], too_many(list(counts.values()))
            if isinstance(part, CutNode) or counts[id(union)] < 2 or not (many or here) or not has_join(relation):
                continue
            if may_be_kept(part):
                node = self._node(part)
                if many or node.name in here:  # looking up a node a second time costs nothing
                    here.add(node.name)
                    self.nodes.setdefault(node.name, node)
                    parts[id(union)], counts[id(union)] = node, 1
        return rebuilt(relation, parts), prod(counts.values())

    def sides(self, relation: Relation) -> Relation:
        """The region with a scan of a node collection for each looked-up side that is more than one collection."""
        match relation:
            case Outer(left, right, on):
                made = replace(relation, left=self.sides(left), right=self.side(right, on))
                left, on = self.matched(made.left, made.right, on)
                return made if left is made.left else _showing(relation, replace(made, left=left, on=on))
            case Semi(input, other, on):
                semi = replace(relation, input=self.sides(input), other=self.side(other))
                input, on = self.matched(semi.input, semi.other, on)
                return semi if input is semi.input else _showing(relation, replace(semi, input=input, on=on))
            case Join(inputs):
                return replace(relation, inputs=tuple(map(self.sides, inputs)))
            case UnionAll() | Scan() | Values() | Fed() | Loop():
                return relation
            case Filter(input, predicate):
                return Filter(self.joined(input, unkeyed(relation)), predicate)
            case _:
                return replace(relation, input=self.sides(relation.input))

    def matched(self, left: Relation, right: Relation, on: Expr) -> tuple[Relation, Expr]:
        """The left side of an outer or semi-join, and its ON: what may fail is a column of a node."""
        probes = late_probes(left, right, on)
        made, columns = with_columns(left, probes, self.aliases.fresh("late"))
        if not probes or (found := replaced(on, columns)) == on or not may_be_kept(made, failing=True):
            return left, on
        return self.kept(self.region(made)[0]), found

    def joined(self, relation: Relation, kept: frozenset[int]) -> Relation:
        """What is below a filter, with some inputs of its join as nodes."""
        match relation:
            case Filter(input, predicate) if kept:
                return Filter(self.joined(input, kept), predicate)
            case Join(inputs) if kept:
                return Join(tuple(
                    self.side(item, always=True) if number in kept else self.sides(item)
                    for number, item in enumerate(inputs)
                ))  # fmt: skip
            case _:
                return self.sides(relation)

    def side(self, relation: Relation, outer: Expr | None = None, *, always: bool = False) -> Relation:
        """A looked-up side as one collection, if need be a node. `outer`: the ON of an outer join, whose default rows
        must be told apart. `always`: as a node unless nothing can keep it."""
        part, _ = self.region(relation)
        side = side_of(part)
        if always and not may_be_kept(part):
            return part
        if side is not None and (outer is None or shown(side, asked(outer, side)) is not None) and not (
            self.found is not None and self.found(side) and may_be_kept(part)
        ):
            return part
        if not may_be_kept(part, failing=True):
            raise cannot_be_kept(part)
        return self.kept(part)

    def kept(self, part: Relation) -> Relation:
        """A node that keeps the rows of a part, in its place."""
        node = self._node(UnionAll((part,), part.columns))
        self.nodes.setdefault(node.name, node)
        return scan_of(node, part, part.columns)

    def _input(
        self, relation: Relation, *, passing: bool, names: Sequence[str] = ()
    ) -> tuple[str, tuple[Column, ...]]:  # fmt: skip
        """The collection that a reduce reads, and its columns for those of the relation: the collection that the
        relation shows unchanged, or the output of a new join. `names`: for the columns of a new join."""
        node = self._node(UnionAll((relation,), relation.columns), passing=passing, names=names)
        shown = shown_collection(node.steps[-1][1])
        if shown is not None:
            return shown
        self.nodes.setdefault(node.name, node)
        return node.name, tuple(replace(c, type=stored(c)) for c in node.relation.columns)


def _showing(relation: Relation, made: Relation) -> Project:
    """The columns of a relation, of one that has more."""
    return Project(made, tuple((column, column) for column in relation.columns))

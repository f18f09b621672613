"""Cuts a relation into nodes: decides which parts of a view become nodes of their own.

An aggregate, a window, a top-k and a user's reduce become a reduce, over a join that computes what the reduce reads. If
it needs only the changes of its input, the join is *passing*: it keeps nothing but the updates that have not closed.

A join is distributed over the UNION ALLs below it, because a sum of joins needs no state. This multiplies: a join of
`k` unions of `n` parts becomes `n ** k` joins. Where several unions multiply to more than `MOST_JOINS`, unions become
nodes, the largest first, until few enough joins are left. The output of a node is kept and looked up, so the view grows
with the sum of its parts, not with their product.

An expression that may fail stays where it is. In a node it would be computed for rows that the join does not show, and
such a row would make the view an error. The cut of a view depends on the relation alone, never on sizes, so a view that
is opened again finds its nodes.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from halfjoin.planner.as_of import with_nearest
from halfjoin.planner.chance import depends_on_chance, drawn_below, is_drawn, reads_nothing
from halfjoin.planner.cutting.groups import Groups
from halfjoin.planner.cutting.loops import Loops
from halfjoin.planner.cutting.nodes import Found
from halfjoin.planner.facts import Facts
from halfjoin.planner.keeping import cannot_be_kept, may_be_kept
from halfjoin.planner.lengths import by_length
from halfjoin.planner.narrow import narrowed
from halfjoin.planner.one_partner import with_one_partner
from halfjoin.planner.outer import simplified
from halfjoin.planner.plan import Reduce
from halfjoin.planner.reduces.lower import lowered
from halfjoin.planner.reduces.parted import parted
from halfjoin.planner.reduces.same_rows import same_rows
from halfjoin.planner.reduces.unique import without_counts
from halfjoin.planner.regions import CutNode, scan_of
from halfjoin.planner.rounds import Rounded
from halfjoin.sql.relation import (
    Aggregate,
    Join,
    Loop,
    Project,
    Reduced,
    Relation,
    Scan,
    UnionAll,
    Values,
    every_part,
    inputs_below,
    with_inputs,
)


def cut(
    relation: Relation, facts: Facts, found: Found | None = None, *, daring: bool = False
) -> tuple[Relation, tuple[CutNode | Reduce, ...], bool]:
    """The relation with scans of node collections in place of the parts cut out; the nodes in order of dependency; and
    whether a node may fail for rows that the relation leaves out, which only a `daring` query may.

    `found`: of a query, whether the keys of a looked-up side find its rows. Such a side is a node, since an index of
    the rows that meet its conditions would be made of all rows. So are the rows with which a loop begins.
    """
    cutter = _Cutter(facts, _repeated(relation), found, daring)
    relation = with_nearest(relation, facts, cutter.aliases, query=found is not None)
    relation = by_length(simplified(with_one_partner(relation, facts)), cutter.aliases)
    relation = narrowed(relation, calls=found is not None)
    if depends_on_chance(relation):
        cutter.shown = relation
    else:
        cutter.same = same_rows(relation)
        if found is not None:
            cutter.coarsen(relation)
            cutter.share(relation)
    whole, _ = cutter.region(cutter.reduced(relation))
    return whole, tuple(cutter.nodes.values()), cutter.dares


def _aliases(relation: Relation) -> list[str]:
    return [part.alias for part in every_part(relation) if isinstance(part, Scan)]


def _repeated(relation: Relation) -> frozenset[str]:
    """The aliases that several scans of a relation have."""
    return frozenset(alias for alias, count in Counter(_aliases(relation)).items() if count > 1)


class _Cutter(Loops, Groups):
    """Cuts whole relations."""

    def reduced(self, relation: Relation) -> Relation:
        """The relation with a scan of its output in place of each reduce and each loop."""
        if isinstance(relation, Rounded):
            return self.rounded(relation)
        if isinstance(relation, Loop):
            return self.looped(relation)
        if self.shown is not None and relation is not self.shown and is_drawn(relation):
            return self.drawn(relation)
        if not isinstance(relation, Reduced):
            return with_inputs(relation, self.reduced)
        if isinstance(relation, Aggregate):
            whole = without_counts(relation, self.facts)
            if isinstance(whole, Project):
                if self.repeated.isdisjoint(_aliases(whole)):  # else one join would have two inputs of one name
                    return self.reduced(whole)
                whole = relation
            relation, parts = whole, parted(whole, self.aliases)
            if parts is not None:
                return self.reduced(parts.over(self.rows(parts.rows)))
        low = lowered(relation)
        return low.above(self.groups_of(relation, low))

    def drawn(self, relation: Relation) -> Relation:
        """As `reduced`, for a part of a query that depends on chance: what it draws is a column of a node."""
        drawn, above = drawn_below(relation, lambda: f"={self.aliases.fresh('drawn')}.value")
        (below,), alone = map(self.reduced, inputs_below(relation)), reads_nothing(relation)
        of = Values(f"={self.aliases.fresh('row')}", (), ((),)) if alone else below
        part, _ = self.region(Project(of, (*((column, column) for column in of.columns), *drawn)))
        if not may_be_kept(part, failing=True):
            raise cannot_be_kept(part)
        node = replace(self._node(UnionAll((part,), part.columns)), name=self._named("drawn", len(self.nodes), {}))
        self.nodes[node.name] = node  # no other has these values
        scan = scan_of(node, part, part.columns)
        above = with_inputs(above, lambda _: Join((below, scan)) if alone else scan)
        return Project(above, tuple((column, column) for column in relation.columns))

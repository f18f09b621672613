"""The nodes that a cut makes: their names, and what is known of their rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from halfjoin.planner.canonical import canonical
from halfjoin.planner.facts import Facts
from halfjoin.planner.fingerprint import fingerprint
from halfjoin.planner.group_functions import Aggregates
from halfjoin.planner.plan import ROUND, Reduce
from halfjoin.planner.reduces.key_first import KeyFirst
from halfjoin.planner.reduces.same_rows import SameRows
from halfjoin.planner.regions import CutNode, scans_in
from halfjoin.planner.rules import normal_form
from halfjoin.planner.rules.sides import Side
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.relation import (
    Aggregate,
    Filter,
    Join,
    Outer,
    Project,
    Relation,
    Scan,
    Semi,
    TopK,
    UnionAll,
    Values,
    Window,
    inputs_below,
)

Found: TypeAlias = Callable[[Side], bool]


@dataclass
class Nodes:
    """The nodes so far, and what decides about others. The names of nodes depend on what they compute alone."""

    facts: Facts
    repeated: frozenset[str]  # aliases of several scans: a domain has those of the rows that it is of
    found: Found | None
    daring: bool
    dares: bool = False
    nodes: dict[str, CutNode | Reduce] = field(default_factory=dict)
    aliases: Aliases = field(default_factory=Aliases)
    loops: dict[str, Sequence[CutNode]] = field(default_factory=dict)
    bindings: dict[str, CutNode] = field(default_factory=dict)  # of all loops; the plan has a reduce for some of them
    asked: CutNode | None = None  # the binding that the next reduce of a loop is
    binding: tuple[str, ...] = ()  # the names of the columns of the binding that is being cut
    shown: Relation | None = None  # of a query that depends on chance: the whole
    same: dict[Relation, SameRows] = field(default_factory=dict)  # by the join over which several aggregates are
    finer: dict[Aggregate, Aggregate] = field(default_factory=dict)  # of a query, by the coarser ones
    firsts: dict[Aggregate, KeyFirst] = field(default_factory=dict)  # of a query, those that several take
    made: dict[Aggregate, Scan] = field(default_factory=dict)  # of those, and of the finest

    def reduced(self, relation: Relation) -> Relation:
        """The relation with a scan of its output in place of each reduce and each loop."""
        raise NotImplementedError

    def _node(self, union: UnionAll, *, passing: bool = False, names: Sequence[str] = ()) -> CutNode:
        relation = canonical(union)
        many = sum(column.name.startswith(ROUND) for column in union.columns)  # a user's column has an alias
        if many:
            own = (replace(c, name=f"{c.name}#2") if c.name.startswith(ROUND) else c for c in relation.columns[:-many])
            relation = replace(relation, columns=(*own, *union.columns[-many:]))
        if names:
            named = (replace(c, name=name) for c, name in zip(relation.columns, names, strict=True))
            relation = replace(relation, columns=tuple(named))
        steps = normal_form(relation)
        incarnations = {scan.collection: self.facts.incarnation(scan.collection) for scan in scans_in(relation)}
        kind = "passing" if passing else "join"
        form = steps[-1][1] or relation.columns  # what has no rows, ever, has its columns
        return CutNode(self._named(kind, form, incarnations), relation, steps, passing)

    def _named(self, kind: str, form: object, incarnations: Mapping[str, str]) -> str:
        """The name of a node."""
        return self.facts.node_name(fingerprint(kind, form, incarnations))

    def _is_checked(self, collection: str) -> bool:
        """Whether no row of a collection has a negative count: of a table with a key, of an aggregate, or of a node
        that makes none from such collections."""
        node = self.nodes.get(collection)
        if isinstance(node, CutNode):
            return not node.loops and self._keeps_counts(node.relation)
        aggregate = isinstance(node, Reduce) and isinstance(node.function, Aggregates)
        return aggregate or bool(self.facts.unique_keys(collection))

    def _keeps_counts(self, relation: Relation) -> bool:
        """Whether no row of a relation has a negative count. `repeat_row` may make them, as other functions do not."""
        match relation:
            case Scan(collection):
                return self._is_checked(collection)
            case Values():
                return True
            case Aggregate():
                return True
            case Filter() | Project() | Join() | UnionAll() | Outer() | Semi() | TopK() | Window():
                return all(map(self._keeps_counts, inputs_below(relation)))
        return False

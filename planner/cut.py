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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from typing import TypeAlias

from halfjoin.planner.as_of import with_nearest
from halfjoin.planner.canonical import canonical
from halfjoin.planner.chance import depends_on_chance, drawn_below, is_drawn, reads_nothing
from halfjoin.planner.facts import Facts
from halfjoin.planner.fingerprint import fingerprint
from halfjoin.planner.firsts import firsts
from halfjoin.planner.group_functions import Aggregates, OfGroups, Top
from halfjoin.planner.keeping import cannot_be_kept, may_be_kept
from halfjoin.planner.late_probes import late_probes, with_columns
from halfjoin.planner.lengths import by_length
from halfjoin.planner.nameless import nameless
from halfjoin.planner.names import meanings
from halfjoin.planner.narrow import narrowed
from halfjoin.planner.one_partner import with_one_partner
from halfjoin.planner.outer import simplified
from halfjoin.planner.plan import ROUND, Reduce, round_names
from halfjoin.planner.predicates import told
from halfjoin.planner.reduces.coarser import added_up, finer_groups, rows_of
from halfjoin.planner.reduces.items import Columns, Lowered
from halfjoin.planner.reduces.key_first import KeyFirst, key_first, shared_first
from halfjoin.planner.reduces.lower import lowered, output_columns
from halfjoin.planner.reduces.parted import parted
from halfjoin.planner.reduces.same_rows import SameRows, over_the_same, same_rows
from halfjoin.planner.reduces.unique import without_counts
from halfjoin.planner.regions import (
    CutNode,
    collections_read,
    has_join,
    rebuilt,
    scan_of,
    scans_in,
    shown_collection,
    swapped,
    too_many,
    unions_of,
)
from halfjoin.planner.rounds import Nested, Rounded, Rounds
from halfjoin.planner.rules import normal_form
from halfjoin.planner.rules.fit_outputs import stored
from halfjoin.planner.rules.sides import Side, asked, shown, side_of
from halfjoin.planner.unkeyed import unkeyed
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.expr import Column, Expr, replaced
from halfjoin.sql.relation import (
    Aggregate,
    Fed,
    Filter,
    Join,
    Loop,
    Once,
    Outer,
    Project,
    Reduced,
    Relation,
    Scan,
    Semi,
    TopK,
    UnionAll,
    Values,
    Window,
    every_part,
    inputs_below,
    parts_inside,
    with_inputs,
)
from halfjoin.sql.types import BIGINT

Found: TypeAlias = Callable[[Side], bool]


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


@dataclass
class _Cutter:
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

    def coarsen(self, relation: Relation) -> None:
        """Find the groups of a query that are made of finer ones. Rows that only the finest of them read are no rows
        that several reduces have in common."""
        for input, parts in over_the_same(relation).items():
            finer = finer_groups(parts) if self._keeps_counts(input) else {}
            self.finer |= finer
            if len(finer) == len(parts) - 1:
                self.same.pop(input, None)

    def share(self, relation: Relation) -> None:
        """Find the groups by keys that several aggregates of a query take."""
        every = (without_counts(part, self.facts) for part in every_part(relation) if isinstance(part, Aggregate))
        self.firsts = shared_first((one for one in every if isinstance(one, Aggregate)), self.facts)

    def groups_of(self, relation: Reduced, low: Lowered) -> Scan:
        """A scan of the output of a relation's reduce."""
        made = self.of_finer(relation, low) or self.by_key(relation, low) if isinstance(relation, Aggregate) else None
        return self.groups(self.read(relation, low.input), low.keys, low.function, passing=low.passing
                           ) if made is None else made  # fmt: skip

    def of_finer(self, relation: Aggregate, low: Lowered) -> Scan | None:
        """As `groups`, of a query's groups that are made of finer ones; None: they are not."""
        finer = None if self.loops else self.finer.get(relation)
        if finer is None:
            return None
        if relation not in self.made:
            own = lowered(finer)
            if finer not in self.made:
                self.made[finer] = self.groups_of(finer, own)
            self.made[relation] = self.summed(rows_of(low, own, self.made[finer]), low)
        return self._again(self.made[relation])

    def by_key(self, relation: Aggregate, low: Lowered) -> Scan | None:
        """As `groups`, of a query whose rows are grouped by a key first; None: they are not."""
        alone = self.found is not None and self.shown is None and not self.loops and relation.input not in self.same
        first = self.firsts.get(relation) or key_first(relation, low, self.facts) if alone else None
        if first is None or (first.dares and not self.daring) or not self._keeps_counts(first.rows.input):
            return None
        self.dares = self.dares or first.dares
        return self.summed(first.second(self.groups(first.rows, first.keys, first.first)), low)

    def summed(self, rows: Project, low: Lowered) -> Scan:
        """As `groups`, of rows that are kept sums."""
        made = self.groups(rows, low.keys, partial(added_up, low))
        keys, (_, *sums) = made.columns[: low.keys], made.columns[low.keys :]
        return replace(made, columns=(*keys, *sums))  # the count is a sum of counts

    def _again(self, scan: Scan) -> Scan:
        """The same groups under a name of their own."""
        alias = f"={self.aliases.fresh('groups')}"
        columns = (replace(c, name=f"{alias}.{c.name.removeprefix(f'{scan.alias}.')}") for c in scan.columns)
        return replace(scan, alias=alias, columns=tuple(columns))

    def groups(
        self, rows: Project, keys: int, function: Callable[[Columns], OfGroups], *, passing: bool = True
    ) -> Scan:  # fmt: skip
        """A scan of the output of a new reduce. `keys`: how many columns of the rows come first, as its keys."""
        below, _ = self.region(self.reduced(rows))
        input, columns = self._input(below, passing=passing)
        by, of = columns[:keys], function(columns)
        made = Reduce("", output_columns(by, of, columns), input, by, of)
        name = self._named("reduce", made, {input: self.facts.incarnation(input)})
        words = meanings(rows, columns, self.binding) if "#" in input else ()
        self.nodes.setdefault(name, replace(made, output=name, checked=self._is_checked(input), words=words))
        alias = f"={self.aliases.fresh('groups')}"  # no user can write this name
        return Scan(name, alias, tuple(replace(c, name=f"{alias}.{c.name}") for c in made.columns))

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

    def read(self, relation: Reduced, rows: Project) -> Project:
        """The rows that a reduce reads: those of the join that it has in common with others, if it has one."""
        same = self.same.get(relation.input) if self.same and isinstance(relation, Aggregate) else None
        found = None if same is None else same.of(self.rows(same.rows, passing=same.passing), rows)
        return rows if found is None else found

    def rows(self, relation: Project, *, passing: bool = True) -> Scan:
        """A scan of the rows of a relation, which only reduces take."""
        below, _ = self.region(self.reduced(relation))
        input, columns = self._input(below, passing=passing)
        alias = f"={self.aliases.fresh('rows')}"
        return Scan(input, alias, tuple(replace(c, name=f"{alias}.{c.name}") for c in columns))

    def rounded(self, relation: Rounded) -> Relation:
        """As `reduced`, for a reduce inside loops."""
        low, binding, self.asked = lowered(relation.relation), self.asked, None
        whole = swapped(low.input, relation.relation.input, relation.input)
        assert isinstance(whole, Project)
        many = len(relation.rounds)
        rounds = tuple(Column(name, BIGINT, nullable=False) for name in round_names(many))
        more = zip(rounds, relation.input.columns[-many:], strict=True)
        below, _ = self.region(self.reduced(Project(whole.input, (*whole.items, *more))))
        names = () if binding is None else tuple(column.name for column in binding.relation.columns)
        input, columns = self._input(below, passing=low.passing, names=names)
        keys, function = columns[: low.keys], low.function(columns[:-many])
        made = Reduce("", (*output_columns(keys, function, columns[:-many]), *rounds), input, keys, function)
        name = self._named("reduce", made, {input: self.facts.incarnation(input)})
        if binding is not None:
            name, made = binding.name, replace(made, last=binding.last, named=binding.named)
        words = meanings(low.input, columns, self.binding) if "#" in input else ()
        self.nodes.setdefault(name, replace(made, output=name, words=words))
        alias = f"={self.aliases.fresh('groups')}"
        scan = Scan(name, alias, tuple(replace(c, name=f"{alias}.{c.name}") for c in made.columns))
        bare = replace(scan, columns=scan.columns[:-many])
        above = swapped(low.above(bare), bare, scan)
        assert isinstance(above, Project)
        return Project(above.input, (*above.items, *zip(relation.rounds, scan.columns[-many:], strict=True)))

    def looped(self, loop: Loop) -> Relation:
        """A scan of a binding's collection, without the loop's own rounds unless the loop shows them."""
        if loop.name not in self.loops:
            self.loops[loop.name] = self._loop(loop, loop.around if isinstance(loop, Nested) else None)
        node = self.loops[loop.name][loop.number]
        alias = self.aliases.fresh(node.name)
        columns = tuple(replace(c, name=f"{alias}.{c.name}") for c in node.relation.columns)
        own = len(loop.bindings[loop.number].relation.columns)
        *shown, last = columns
        if len(loop.columns) == len(columns):  # it shows its rounds
            shown.insert(own, last)
        return Project(Scan(node.name, alias, columns), tuple(zip(loop.columns, shown, strict=True)))

    def _loop(self, loop: Loop, around: Rounds | None) -> Sequence[CutNode]:
        """The nodes of the bindings. What does not read a binding is a node before the loop."""
        parts = [part for binding in loop.bindings for part in parts_inside(binding.relation)]
        scans = {part.collection for part in parts if isinstance(part, Scan)}
        incarnations = {name: self.facts.incarnation(name) for name in scans}
        outer = () if around is None else tuple(around.collections)
        path = () if around is None else around.path
        form = nameless((loop.bindings, loop.limit, loop.strict), (loop.name, *path))
        names = [self._named("loop", (form, outer, number), incarnations) for number in range(len(loop.bindings))]
        if names[0] in self.bindings:  # an equal loop of the view
            return [self.bindings[name] for name in names]
        rounds, known, made = Rounds(loop, names, around), set(self.nodes), list[CutNode]()
        outside = self.binding
        for name, binding in zip(names, loop.bindings, strict=True):
            relation = firsts(narrowed(by_length(simplified(binding.relation), self.aliases)), self.aliases)
            self.binding = binding.names
            relation = relation if self.found is None else self.begun(relation)
            carried = rounds.shown(relation.columns, *rounds.carried(relation))
            before = dict(self.nodes), dict(self.loops), dict(self.bindings)
            whole, _ = self.region(self.reduced(carried))
            union = canonical(UnionAll((whole,), whole.columns))
            bare = (*(f"c{number}" for number in range(1, len(relation.columns) + 1)), *round_names(len(rounds.path)))
            union = replace(union, columns=tuple(replace(c, name=n) for c, n in zip(union.columns, bare, strict=True)))
            one = CutNode(name, union, normal_form(union), last=loop.limit - 1 if loop.strict else None,
                          named=(binding.name, *binding.names))  # fmt: skip
            if self._is_first_row(one, before[0]):
                self.nodes, self.loops, self.bindings = before
                self.asked = one
                self.reduced(carried)
            else:
                self.nodes[name] = one
            self.bindings[name] = one
            made.append(one)
        self.binding = outside
        path, depth = rounds.nodes, len(rounds.path)
        fresh = [name for name in self.nodes if name not in known]
        inside = {name for name in fresh if name in names or self.nodes[name].loops[:depth] == path}
        while more := {name for name in fresh if name not in inside and collections_read(self.nodes[name]) & inside}:
            inside |= more
        for name in fresh:  # in order of their places, after what is before the loop
            if name in inside:
                node = self.nodes.pop(name)
                self.nodes[name] = replace(node, loops=node.loops or path)
        return made

    def begun(self, relation: Relation) -> Relation:
        """Of a query: a binding's relation with a scan of a node for each arm that reads no binding, if its conditions
        tell something of its rows. A loop reads collections whole, and a node finds these rows by keys."""

        def arm(one: Relation) -> Relation:
            if isinstance(one, Once):
                return with_inputs(one, arm)
            alone = not any(isinstance(part, Fed) for part in parts_inside(one))
            tells = any(told(part.predicate) for part in every_part(one) if isinstance(part, Filter))
            return self.side(self.reduced(one), always=True) if alone and tells else self.begun(one)

        return with_inputs(relation, arm if isinstance(relation, UnionAll) else self.begun)

    def _is_first_row(self, binding: CutNode, before: Mapping[str, CutNode | Reduce]) -> bool:
        """Whether a binding is a new reduce that shows columns of a new join as they are. Then the reduce takes its
        place: the rows of both would be the same."""
        shown = shown_collection(binding.steps[-1][1])
        if shown is None:
            return False
        name, columns = shown
        reduce = self.nodes[name] if name not in before and name in self.nodes else None
        return (isinstance(reduce, Reduce) and isinstance(reduce.function, Top) and reduce.input not in before
                and isinstance(self.nodes.get(reduce.input), CutNode) and reduce.input not in self.bindings
                and [column.name for column in columns] == [column.name for column in reduce.columns])  # fmt: skip

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


def _showing(relation: Relation, made: Relation) -> Project:
    """The columns of a relation, of one that has more."""
    return Project(made, tuple((column, column) for column in relation.columns))

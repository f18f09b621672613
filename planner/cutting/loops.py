"""Cuts loops into nodes: one for each binding, and what does not read a binding before them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from halfjoin.planner.canonical import canonical
from halfjoin.planner.cutting.sides import Sides
from halfjoin.planner.firsts import firsts
from halfjoin.planner.group_functions import Top
from halfjoin.planner.lengths import by_length
from halfjoin.planner.nameless import nameless
from halfjoin.planner.names import meanings
from halfjoin.planner.narrow import narrowed
from halfjoin.planner.outer import simplified
from halfjoin.planner.plan import Reduce, round_names
from halfjoin.planner.predicates import told
from halfjoin.planner.reduces.lower import lowered, output_columns
from halfjoin.planner.regions import CutNode, collections_read, shown_collection, swapped
from halfjoin.planner.rounds import Nested, Rounded, Rounds
from halfjoin.planner.rules import normal_form
from halfjoin.sql.expr import Column
from halfjoin.sql.relation import (
    Fed,
    Filter,
    Loop,
    Once,
    Project,
    Relation,
    Scan,
    UnionAll,
    every_part,
    parts_inside,
    with_inputs,
)
from halfjoin.sql.types import BIGINT


class Loops(Sides):
    """Cuts loops, and the reduces inside them."""

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

"""Cuts reduces into nodes: over the rows that they read, or of a query over other groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from halfjoin.planner.cutting.sides import Sides
from halfjoin.planner.group_functions import OfGroups
from halfjoin.planner.names import meanings
from halfjoin.planner.plan import Reduce
from halfjoin.planner.reduces.coarser import added_up, finer_groups, rows_of
from halfjoin.planner.reduces.items import Columns, Lowered
from halfjoin.planner.reduces.key_first import key_first, shared_first
from halfjoin.planner.reduces.lower import lowered, output_columns
from halfjoin.planner.reduces.same_rows import over_the_same
from halfjoin.planner.reduces.unique import without_counts
from halfjoin.sql.relation import Aggregate, Project, Reduced, Relation, Scan, every_part


class Groups(Sides):
    """Cuts reduces. Of a query, groups may be made of other groups."""

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

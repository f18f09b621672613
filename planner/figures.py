"""On what a plan is made: what the planner asks about the collections, noted, so that the same plan can be made again.

A plan is a function of the view's SQL and of the answers to the planner's questions, and of nothing else. The answers
are kept with the view. A warehouse that is opened again, or read beside its writer, so has the plan that runs, without
loading anything, whatever has been loaded, indexed or dropped since.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from halfjoin.catalog.models import Figures
from halfjoin.planner.facts import Facts
from halfjoin.planner.names import arrangement_name
from halfjoin.planner.plan import ArrangementKey, Node

_SOMEBODY = ("=",)  # uses an arrangement; no view has such a name


@dataclass(slots=True)
class _Answers:
    """The answers that no figure changes: they are asked of the collections each time."""

    facts: Facts

    def unique_keys(self, collection: str) -> tuple[tuple[str, ...], ...]:
        """A table's primary key, which stays as long as the table."""
        return self.facts.unique_keys(collection)

    def incarnation(self, collection: str) -> str:
        """What tells a table or view apart from its namesakes."""
        return self.facts.incarnation(collection)

    def node(self, name: str) -> Node | None:
        """A node that is kept already, with its own plan."""
        return self.facts.node(name)

    def node_users(self, name: str) -> tuple[str, ...]:
        """Views that share a node."""
        return self.facts.node_users(name)


@dataclass(slots=True)
class Noted(_Answers):
    """What the planner is told of the collections now, each answer noted; these are `Facts`.

    `last` has the figures of the plan so far, None for a new view. An empty collection tells nothing, so what was last
    known of it stands: a table that is filled and emptied by turns does not change plans by turns.

    An arrangement that nobody but the view itself and views after it use does not count as existing: these users are
    left `aside`. So each view follows the ones before it, as if they were created in this order now; and no two views
    wait for each other's choice.
    """

    last: Figures | None = None
    aside: Collection[str] = ()
    _rows: dict[str, int] = field(default_factory=dict)
    _keys: dict[ArrangementKey, int | None] = field(default_factory=dict)
    _shared: dict[str, None] = field(default_factory=dict)

    def rows(self, collection: str) -> int:
        """Rows there, or those last known where there are none."""
        if collection not in self._rows:
            before = 0 if self.last is None else self.last.rows.get(collection, 0)
            self._rows[collection] = self.facts.rows(collection) or before
        return self._rows[collection]

    def users(self, key: ArrangementKey) -> tuple[str, ...] | None:
        """Who shares an arrangement, but for those left aside; None where nobody else does."""
        found = tuple(user for user in self.facts.users(key) or () if user not in self.aside)
        if found:
            self._shared[arrangement_name(key)] = None
        return found or None

    def distinct(self, key: ArrangementKey) -> int | None:
        """Distinct keys, asked for once, since they may have to be counted; or those last known."""
        if key not in self._keys:
            found = self.facts.distinct(key)
            if found is None and self.last is not None:
                found = self.last.keys.get(arrangement_name(key))
            self._keys[key] = found
        return self._keys[key]

    def figures(self, upper: int) -> Figures:
        """The answers given so far."""
        keys = {arrangement_name(key): count for key, count in self._keys.items()}
        return Figures(upper=upper, rows=self._rows, keys=keys, shared=tuple(self._shared))


@dataclass(slots=True)
class Replayed(_Answers):
    """The answers that a plan was made on, given again; these are `Facts`.

    `figures` is None for a view that an older version of halfjoin made, which kept none: then only what is known
    without loading is told.
    """

    figures: Figures | None

    def rows(self, collection: str) -> int:
        """Rows there then."""
        rows = None if self.figures is None else self.figures.rows.get(collection)
        return self.facts.rows(collection) if rows is None else rows

    def users(self, key: ArrangementKey) -> tuple[str, ...] | None:
        """Somebody, where others used the arrangement then."""
        if self.figures is None:
            return self.facts.users(key)
        return _SOMEBODY if arrangement_name(key) in self.figures.shared else None

    def distinct(self, key: ArrangementKey) -> int | None:
        """Distinct keys then."""
        return None if self.figures is None else self.figures.keys.get(arrangement_name(key))

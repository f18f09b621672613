"""Notes what the planner asks about the collections and what it is told, so that the same plan can be made again.

A plan is a function of the view's SQL and of these answers, and of nothing else. The answers are stored with the view.
So a warehouse that is opened again, or read beside its writer, has the plan that runs. It loads nothing for that, and
it does not matter what has been loaded, indexed or dropped since.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from halfjoin.catalog.models import Figures
from halfjoin.planner.facts import Facts, Kept
from halfjoin.planner.names import arrangement_name
from halfjoin.planner.plan import ArrangementKey, Node

_SOMEBODY = ("=",)  # the user of an arrangement; no view has this name


@dataclass(slots=True)
class _Answers:
    """The answers that do not depend on figures. The collections are asked for them each time."""

    facts: Facts

    def unique_keys(self, collection: str) -> tuple[tuple[str, ...], ...]:
        """The sets of columns that identify a row of a table."""
        return self.facts.unique_keys(collection)

    def values(self, collection: str, column: str) -> int | None:
        """About how many different values a column has."""
        return self.facts.values(collection, column)

    def incarnation(self, collection: str) -> str:
        """A text that tells a table or view apart from others of the same name."""
        return self.facts.incarnation(collection)

    def node_name(self, fingerprint: str) -> str:
        """The name of the node with that fingerprint."""
        return self.facts.node_name(fingerprint)

    def node(self, name: str) -> Node | None:
        """The node of that name if it is kept already, with its own plan."""
        return self.facts.node(name)

    def node_users(self, name: str) -> tuple[str, ...]:
        """Views that share a node."""
        return self.facts.node_users(name)

    def kept(self, name: str) -> Kept | None:
        """What an existing node keeps."""
        return self.facts.kept(name)


@dataclass(slots=True)
class Noted(_Answers):
    """`Facts` that describe the collections as they are now, and note each answer.

    `last`: the figures of the plan so far, None for a new view. An empty collection tells nothing, so its last known
    figure stands. Otherwise a table that is filled and emptied by turns would change plans by turns.

    An arrangement does not count as existing if only the view itself and later views use it. `aside` holds these users.
    So each view is planned after the earlier ones, as if they were created in this order now, and no two views wait for
    each other's choice.
    """

    last: Figures | None = None
    aside: Collection[str] = ()
    _rows: dict[str, int] = field(default_factory=dict)
    _keys: dict[ArrangementKey, int | None] = field(default_factory=dict)
    _shared: dict[str, None] = field(default_factory=dict)

    def rows(self, collection: str) -> int:
        """The number of rows now, or the last known number if there are none."""
        if collection not in self._rows:
            before = 0 if self.last is None else self.last.rows.get(collection, 0)
            self._rows[collection] = self.facts.rows(collection) or before
        return self._rows[collection]

    def users(self, key: ArrangementKey) -> tuple[str, ...] | None:
        """The users of an arrangement except those in `aside`; None if there are no others."""
        found = tuple(user for user in self.facts.users(key) or () if user not in self.aside)
        if found:
            self._shared[arrangement_name(key)] = None
        return found or None

    def distinct(self, key: ArrangementKey) -> int | None:
        """The number of distinct keys, asked for once because it may have to be counted; or the last known one."""
        if key not in self._keys:
            found = self.facts.distinct(key)
            if found is None and self.last is not None:
                found = self.last.keys.get(arrangement_name(key))
            self._keys[key] = found
        return self._keys[key]

    def figures(self, upper: int) -> Figures:
        """All answers so far, as the figures of a plan made at `upper`."""
        keys = {arrangement_name(key): count for key, count in self._keys.items()}
        return Figures(upper=upper, rows=self._rows, keys=keys, shared=tuple(self._shared))


@dataclass(slots=True)
class Replayed(_Answers):
    """`Facts` that repeat the answers that a plan was made on.

    `figures` is None for a view that an older version of halfjoin made, which stored none. Then only what is known
    without loading is told.
    """

    figures: Figures | None

    def rows(self, collection: str) -> int:
        """The number of rows then."""
        rows = None if self.figures is None else self.figures.rows.get(collection)
        return self.facts.rows(collection) if rows is None else rows

    def users(self, key: ArrangementKey) -> tuple[str, ...] | None:
        """A placeholder user if others used the arrangement then, else None."""
        if self.figures is None:
            return self.facts.users(key)
        return _SOMEBODY if arrangement_name(key) in self.figures.shared else None

    def distinct(self, key: ArrangementKey) -> int | None:
        """The number of distinct keys then; None if unknown."""
        return None if self.figures is None else self.figures.keys.get(arrangement_name(key))

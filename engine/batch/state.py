"""The engine's state: the catalog, a collection for each table and materialized view, and the frontier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol, cast
from weakref import WeakSet

import pyarrow as pa

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import Table, View
from halfjoin.engine.arrange.changes import StoredChanges
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.memory import Memory
from halfjoin.engine.arrange.part import Part
from halfjoin.engine.arrange.run import Run
from halfjoin.engine.batch.clock import Clock
from halfjoin.engine.batch.clock import Closing as Closed
from halfjoin.engine.batch.flows import Flow, Inner
from halfjoin.engine.batch.subscription import Subscription
from halfjoin.engine.batch.unreadable import Standing, reason
from halfjoin.engine.batch.wiring import Wiring
from halfjoin.engine.join.closing import Closing, Found
from halfjoin.engine.linear.tables import Registered
from halfjoin.engine.system.counted import Counted
from halfjoin.engine.updates.updates import Updates
from halfjoin.planner.facts import Kept
from halfjoin.planner.plan import ArrangementKey, Node, Version, ViewPlan

# Writes updates of a collection (its kind, its name) to files where they are to be kept.
Spill = Callable[[str, str, Updates, Sequence[str]], Part]

ROW_BYTES = 100  # estimate for a row and its indexes, before they are loaded


@dataclass(slots=True)
class MaintainedView:
    """A node of a plan and its output: a materialized view, or a node collection that views look up.

    `standing`: what its errors say now. `plan`: a view's plan with the nodes below it; None for a node collection.
    `limits`: for each collection that a view reads, the number of rows from which the view is considered for a new plan
    (`planner.drift`). `rounds`: as `planner.facts.Kept`.
    """

    dataflow: Flow | Inner
    contents: Collection
    errors: Collection
    standing: Standing | None = None
    plan: ViewPlan | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    rounds: tuple[int, ...] = ()


class Home(Protocol):
    """The store that opened a state: it has the rows on disk, and remembers the batches."""

    def as_files(self, collection: Collection) -> Sequence[Part] | None:
        """A collection's acknowledged updates; those in files stay there. None: the store cannot give them so."""

    def closed_by(self, time: int) -> Closed | None:
        """Who closed a time; None if that is not remembered."""

    @property
    def spill(self) -> Spill | None:
        """Writes rows to files where they may stay; None: rows stay in memory."""


@dataclass(slots=True)
class State:
    """All that an engine holds. `upper`: every time below it is closed, for all collections. `clock`: None until the
    first batch sets it. `pending`: rows of tables that a transaction has changed before the definition that it makes.
    `outgrown`: the views that are to be planned anew.
    """

    retain: int
    home: Home
    catalog: Catalog = field(default_factory=Catalog)
    tables: Counted[str, Collection] = field(default_factory=Counted)
    maintained: Counted[str, MaintainedView] = field(default_factory=Counted)  # views and nodes, in order of dependency
    functions: dict[str, Registered] = field(default_factory=dict)
    subscriptions: dict[str, WeakSet[Subscription]] = field(default_factory=dict)  # by view
    upper: int = 0
    clock: Clock | None = None
    memory: Memory = field(default_factory=Memory)
    pending: dict[str, Updates] = field(default_factory=dict)
    outgrown: dict[str, None] = field(default_factory=dict, init=False)  # of this state, not of its copies
    _wiring: Wiring | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def spill(self) -> Spill | None:
        """Writes rows to files where they may stay; None: rows stay in memory."""
        return self.home.spill

    @property
    def views(self) -> Mapping[str, MaintainedView]:
        """The materialized views, in order of dependency."""
        return MappingProxyType({name: one for name, one in self.maintained.items() if one.plan is not None})

    def collection(self, name: str) -> Collection:
        """The collection of a table, materialized view or node that is known to exist."""
        return self.tables[name] if name in self.tables else self.maintained[name].contents

    def schema(self, name: str) -> Mapping[str, pa.DataType]:
        """Columns of a table, materialized view or node that is known to exist."""
        return self.collection(name).schema

    def collections(self) -> Sequence[Collection]:
        """Every collection: tables, views, nodes, errors of views and nodes."""
        return self.wiring.collections

    @property
    def wiring(self) -> Wiring:
        """How the collections are connected by the present definitions."""
        known, tables, nodes = self._wiring, self.tables, self.maintained
        if (known is None or known.tables is not tables or known.nodes is not nodes
                or known.changes != tables.changes + nodes.changes):  # each batch asks several times
            known = self._wiring = Wiring(tables, nodes)
        return known

    def retained(self, defined: Table | View) -> int:
        """How long the history of a table or view stays readable, in time units."""
        return self.retain if defined.retain is None else defined.retain

    def keep_promises(self) -> None:
        """Keep tables and views as long as the catalog says, and the errors of each view as long as any view above it
        can be read, since they are errors of that one too.

        Called when views are created or dropped, and when another length of history is asked for. Errors that are
        already forgotten do not come back: a view is readable from where its contents, and the errors of everything it
        reads, begin.
        """
        for name, collection in self.tables.items():
            if (table := self.catalog.tables.get(name)) is not None:  # not a temporary one
                collection.retain = self.retained(table)
        for name, view in self.maintained.items():
            if (defined := self.catalog.views.get(name)) is not None:  # nodes keep no history
                view.contents.retain = self.retained(defined)
            view.errors.retain = view.contents.retain
        for view in reversed(self.maintained.values()):
            for one in self.loop(view.dataflow.plan.loop) if view.dataflow.plan.loop else ():  # each reads all of them
                errors = self.maintained[one].errors
                errors.retain = view.errors.retain = max(errors.retain, view.errors.retain)
            for below in view.dataflow.reads:
                if below in self.maintained:
                    errors = self.maintained[below].errors
                    errors.retain = max(errors.retain, view.errors.retain)

    @property
    def history(self) -> int:
        """The longest history that any collection keeps readable, in time units."""
        return max([self.retain, *(collection.retain for collection in self.collections())])

    def release(self, size: int) -> None:
        """If `size` more bytes do not fit the memory budget: unload the largest collections that are on disk, until
        there is some spare room."""
        if not self.memory.allows(size):
            for collection in sorted(self.collections(), key=_held, reverse=True):
                if self.memory.recommends(size):
                    break
                collection.unload()

    def move_to(self, upper: int, clock: Clock | None) -> None:
        """Close the times below `upper`: only assignments, which can be repeated."""
        self.upper, self.clock = upper, clock

    def tidy(self) -> None:
        """Merge the newest runs of every collection."""
        for collection in self.wiring.collections:
            if collection.held is not collection.settled or collection.loose:  # most are tidy
                collection.tidy(self.upper)

    def narrow(self) -> None:
        """Drop the entries of large indexes that nobody wants since definitions have changed."""
        for collection in self.collections():
            if collection.loose:
                collection.narrow(self.upper)

    def compact(self) -> None:
        """Merge the runs of every collection into one; this removes history below its `since`."""
        for collection in self.collections():
            collection.compact(self.upper)

    def checkpoint(self) -> Callable[[], None]:
        """A step that restores the present definitions, for a definition that fails half way."""
        catalog, tables, views = self.catalog.copy(), Counted(self.tables), Counted(self.maintained)
        subscriptions = dict(self.subscriptions)
        shared = {id(one): one.shared() for one in self.collections() if one.arrangements}  # most have none

        def restore() -> None:
            self.catalog, self.tables, self.maintained, self.subscriptions = catalog, tables, views, subscriptions
            for collection in self.collections():
                collection.rearrange(shared.get(id(collection), {}))
                collection.forget()
            self.keep_promises()

        return restore

    def pend(self, rows: Mapping[str, Updates]) -> None:
        """Hold rows that a transaction has changed, for the definition that it makes next."""
        self.pending = dict(rows)

    def before_and_after(self, staged: Mapping[str, Part], upper: int | None = None) -> Versions:
        """What half-joins look up during a batch. The batch closes times below `upper` (None: no times)."""
        return Versions(self, staged, self.upper if upper is None else upper)

    def closing(self, upper: int) -> set[str]:
        """The collections in which a view asks whether keys are present, and of which updates close."""
        return {name for name in self.wiring.asked if self.collection(name).closes(self.upper, upper)}

    def in_memory(self, changed: Iterable[str]) -> bool:
        """Whether changed tables, and all that the views over them look up, are in memory or likely to fit there."""
        found = [self.collection(name) for name in {*changed, *self._read(changed)}]
        cold = sum(len(collection) for collection in found if collection.cold is not None)
        in_files = [one for one in found if one.in_files and not one.left]
        return not in_files and self.memory.allows(cold * ROW_BYTES)

    def stored(self, changed: Iterable[str]) -> int:
        """Rows that must stay on disk of all collections that are read by the views over changed collections."""
        read = [one for one in map(self.collection, self._read(changed)) if not one.left]
        return sum(len(part) for collection in read for part in collection.held if not part.in_memory)

    def above(self, changed: Iterable[str]) -> list[str]:
        """The views and nodes over changed collections (`Wiring.above`)."""
        return self.wiring.above(changed)

    def loop(self, name: str) -> dict[str, Inner]:
        """The nodes of a loop, in order of their places."""
        nodes = {one: node.dataflow for one, node in self.maintained.items() if node.dataflow.loop == name}
        return cast("dict[str, Inner]", nodes)

    def _read(self, changed: Iterable[str]) -> set[str]:
        """The collections that the views over changed collections read."""
        return {one for name in self.above(changed) for one in self.maintained[name].dataflow.plan.collections}

    # The planner's questions (`planner.facts.Facts`).

    def rows(self, collection: str) -> int:
        """The number of updates held."""
        return len(self.collection(collection)) if self.has(collection) else 0

    def unique_keys(self, collection: str) -> tuple[tuple[str, ...], ...]:
        """The sets of columns that identify a row of a table."""
        return self.catalog.identifying(collection)

    def users(self, key: ArrangementKey) -> tuple[str, ...] | None:
        """Who shares an arrangement; None if it does not exist."""
        found = self.collection(key.collection).arrangements.get(key) if self.has(key.collection) else None
        return None if found is None else tuple(map(str, found.users))

    def arranged(self, collection: str) -> tuple[ArrangementKey, ...]:
        """The arrangements of a collection that have all rows."""
        if not self.has(collection):
            return ()
        found = self.collection(collection)
        return tuple(key for key in found.arrangements if not found.lacks(key))

    def distinct(self, key: ArrangementKey) -> int | None:
        """About how many distinct keys an arrangement has, from the largest run's index; None if there is no index."""
        runs = self.collection(key.collection).in_memory if self.has(key.collection) else ()
        index = max(runs, key=len).indexes.get(key) if runs else None
        return None if index is None or index.partial is not None else index.about_distinct()

    def values(self, collection: str, column: str) -> int | None:
        """About how many values a column has, from a sample of the largest run; None if no rows are in memory."""
        runs = self.collection(collection).in_memory if self.has(collection) else ()
        run = max(runs, key=len, default=None)
        return run.values(column) if run is not None and len(run) else None

    def incarnation(self, collection: str) -> str:
        """The id of a table or view; a node is identified by its name."""
        return self.catalog.incarnation(collection)

    def node_name(self, fingerprint: str) -> str:
        """The name of the node with that fingerprint."""
        return self.catalog.nodes.get(fingerprint, fingerprint)

    def node(self, name: str) -> Node | None:
        """The node of that name, if its output is kept already."""
        found = self.maintained.get(name)
        return None if found is None else found.dataflow.plan

    def node_users(self, name: str) -> tuple[str, ...]:
        """The views that share a node."""
        return tuple(
            view for view, found in self.views.items()
            if found.plan is not None and any(node.output == name for node in found.plan.below)
        )  # fmt: skip

    def kept(self, name: str) -> Kept | None:
        """What a node keeps."""
        found = self.maintained.get(name)
        return None if found is None else Kept(len(found.contents), _held(found.contents), found.rounds)

    def has(self, name: str) -> bool:
        """Whether a table, materialized view or node has that name."""
        return name in self.tables or name in self.maintained


def _held(collection: Collection) -> int:
    return sum(part.row_bytes + part.index_bytes for part in collection.held)


@dataclass(slots=True)
class Versions:
    """A collection's runs before a batch, and after it with the batch's staged run.

    `passed`: what closes of the nodes whose output passes on to reduces; equal updates of it may be apart.
    """

    state: State
    staged: Mapping[str, Part]
    upper: int  # times below it are closed after the batch
    passed: dict[str, Updates | StoredChanges] = field(default_factory=dict)
    found: dict[str, Sequence[Part]] = field(default_factory=dict)  # results of `as_files`, the same for a whole batch
    looked_up: Found = field(default_factory=Found)
    _closing: Closing | None = field(default=None, init=False, repr=False)

    @property
    def closing(self) -> Closing:
        """What the batch closes. The batch cannot tell times below the old `upper` apart."""
        if self._closing is None:
            upper = self.state.upper
            self._closing = Closing(upper, upper, self.upper, self.updates, self.failing, self.looked_up, upper,
                                    self.at_hand)  # fmt: skip
        return self._closing

    def at_hand(self, name: str) -> bool:
        """Whether a collection's runs are there without opening or loading anything. Rows of a plan are."""
        if not self.state.has(name):
            return True
        collection = self.state.collection(name)
        return collection.cold is None and not collection.in_files

    def updates(self, name: str) -> Updates:
        """A collection's updates that the batch closes, those of the staged run included."""
        found = self.passed.get(name)
        if found is None:
            return self.state.collection(name).closing(self.state.upper, self.upper, self.staged.get(name))
        return found.updates() if isinstance(found, StoredChanges) else found

    def since(self, name: str) -> int:
        """The least time at which a collection can be read."""
        return self.state.collection(name).since

    def closing_in_files(self, name: str) -> StoredChanges:
        """As `updates`; those of a run that a job has left in files stay there."""
        collection, staged, found = self.state.collection(name), self.staged.get(name), self.passed.get(name)
        if isinstance(found, StoredChanges):
            return found
        if found is None and staged is not None and not staged.in_memory:
            return collection.closing_in_files(self.state.upper, self.upper, staged)
        run = Run(self.updates(name))
        return StoredChanges(collection.schema, (run,), self.state.upper, self.upper, consolidated=found is None)

    def failing(self, name: str) -> bool:
        """Whether a view or node has errors of its own at the last time that was closed before the batch."""
        errors = self.state.maintained[name].errors
        return len(errors) > 0 and reason(errors.up_to(self.state.upper - 1)) is not None

    def __call__(self, name: str, version: Version) -> Sequence[Part]:
        """The runs to look up."""
        collection = self.state.collection(name)
        if collection.in_files and not collection.left:  # a job left rows there, and now they are looked up one by one
            collection.bring_in(self.state.memory, self.state.upper)
        if collection.cold is None and not collection.left:
            return self._with_staged(name, version, collection.held)
        changed = sum(map(len, self.staged.values()))
        parts = collection.looked_up(changed) if changed else collection.runs  # a first fill needs all rows
        return self._with_staged(name, version, parts)

    def as_files(self, name: str, version: Version) -> Sequence[Part]:
        """The same parts without loading anything: those in files stay there."""
        if name not in self.found:
            collection = self.state.collection(name)
            kept = self.state.home.as_files(collection)
            self.found[name] = collection.runs if kept is None else kept
        return self._with_staged(name, version, self.found[name])

    def _with_staged(self, name: str, version: Version, parts: Sequence[Part]) -> Sequence[Part]:
        run = self.staged.get(name) if version is Version.AFTER else None
        return parts if run is None else (*parts, run)

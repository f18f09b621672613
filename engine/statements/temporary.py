"""TEMPORARY tables, views and sequences: what a session has for itself, in memory, until it ends.

They are in the schema pg_temp, which is first in the session's search path. A statement sees a state that has them
beside the rest; the engine's own state, its journal and its batches never do. Their rows have no history: a query reads
them as they are now, whatever its time. They follow no batch, so what reads them is computed when it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import ColumnModel, Index, Sequence, Table, View
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.arrange.run import make_run
from halfjoin.engine.batch.readable import closed
from halfjoin.engine.batch.stage import runs_of
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.rows import submitted
from halfjoin.engine.statements.dropping import drop
from halfjoin.engine.statements.forking import forked
from halfjoin.engine.statements.tables import with_likes
from halfjoin.engine.system.counted import Counted
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.tables import names_of
from halfjoin.sql.definitions import (
    AlterRetention,
    AlterTable,
    CreateIndex,
    CreateSink,
    CreateTable,
    CreateView,
    Drop,
    Rename,
)
from halfjoin.sql.named import AlterSequence, Comment, CreateSequence
from halfjoin.sql.parse.temporary import not_materialized
from halfjoin.sql.statements import Statement
from halfjoin.sql.system import TEMPORARY, is_temporary

Definition: TypeAlias = CreateTable | CreateView | CreateIndex | CreateSink
Meaning: TypeAlias = Mapping[str, tuple[str, tuple[ColumnModel, ...]]]  # by name: the id and the columns
_CLOSED = 1  # temporary rows have the time 0, so that they are there at every time that can be read


class _Sequences(dict[str, Sequence]):
    """Lasting and temporary sequences. setval reaches the one it names, since no transaction takes numbers back."""

    def __init__(self, lasting: dict[str, Sequence], temporary: dict[str, Sequence]) -> None:
        super().__init__(lasting | temporary)
        self._own = lasting, temporary

    def __setitem__(self, name: str, one: Sequence) -> None:
        super().__setitem__(name, one)
        self._own[is_temporary(name)][name] = one


@dataclass(frozen=True, slots=True)
class Temporary:
    """The temporary things of a session. A statement makes new ones, so that a transaction can go back."""

    tables: Mapping[str, Table] = field(default_factory=dict)
    views: Mapping[str, View] = field(default_factory=dict)
    indexes: Mapping[str, Index] = field(default_factory=dict)
    sequences: dict[str, Sequence] = field(default_factory=dict)
    comments: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, Collection] = field(default_factory=dict)
    meant: Mapping[str, Meaning] = field(default_factory=dict)  # what each view reads, as it was when it was made

    def __bool__(self) -> bool:
        return bool(self.tables or self.views or self.sequences)

    def over(self, state: State) -> State:
        """The state with the temporary things beside the rest. If no time is closed yet, as if time 0 were closed."""
        return self._over(closed(state), max(state.upper, _CLOSED)) if self else state

    def found(self, state: State, name: str) -> tuple[State, str]:
        """Where the table or view of a name is: what is temporary comes first."""
        if not self or not isinstance(name, str):
            return state, name
        own = name if is_temporary(name) else f"{TEMPORARY}.{name}"
        return (self.over(state), own) if own in self.tables or own in self.views else (state, name)

    def _over(self, state: State, upper: int) -> State:
        catalog = state.catalog.asked_by(state.catalog.asker)
        catalog.schemas = (*catalog.schemas, TEMPORARY)
        catalog.tables = {**catalog.tables, **self.tables}
        catalog.views = {**catalog.views, **self.views}
        catalog.indexes = {**catalog.indexes, **self.indexes}
        catalog.sequences = _Sequences(catalog.sequences, self.sequences)
        catalog.comments = {**catalog.comments, **self.comments}
        catalog.stale = frozenset(name for name, meant in self.meant.items() if not _still(meant, state.catalog))
        return replace(state, catalog=catalog, upper=upper, tables=Counted({**state.tables, **self.rows}))

    def defined(self, state: State, change: Callable[[State], None]) -> Temporary:
        """The temporary things after a definition.

        Raises:
            HalfjoinError: it cannot be made.
        """
        after = forked(self._over(closed(state), _CLOSED))
        change(after)
        made = _of(after.catalog, after.tables)
        made = replace(made, meant={name: self.meant[name] if self.views.get(name) == view else _meaning(view, state)
                                    for name, view in made.views.items()})  # fmt: skip
        for table in made.tables.values():
            if outside := [key.table for key in table.foreign_keys if not is_temporary(key.table)]:
                raise UnsupportedSQL("constraints on temporary tables may reference only temporary tables",
                                     remedy=f"leave out the reference to {outside[0]}", code="42P16")  # fmt: skip
        return made

    def changed(self, state: State, changes: Mapping[str, Updates]) -> Temporary:
        """The temporary things with these changes of their rows.

        Raises:
            InvalidRow: a table refuses them. StorageError: there is not enough memory.
        """
        there = self._over(closed(state), _CLOSED)
        net = {name: consolidate(Updates(one.columns, constant(0, len(one)), one.diff), by_time=False)
               for name, one in changes.items()}  # fmt: skip
        rows = {name: submitted(self.tables[name], one.table(changes=True).drop_columns(["__time"]))
                for name, one in net.items()}  # fmt: skip
        runs_of(there, rows, _CLOSED, _CLOSED + 1)
        after = dict(self.rows)
        for name, one in net.items():
            if len(one):
                held = self.rows[name]
                run = make_run(Updates(one.columns, constant(0, len(one)), one.diff), _CLOSED)
                after[name] = replace(held, held=(*held.held, run), arrangements=held.shared())
                after[name].tidy(_CLOSED)
        if state.memory.limit is not None:
            state.memory.check(sum(part.row_bytes + part.index_bytes for one in after.values() for part in one.held))
        return replace(self, rows=after)

    def ended(self, state: State) -> Temporary:
        """The temporary things after a transaction, with what ON COMMIT does."""
        gone = tuple(name for name, table in self.tables.items() if table.ended == "drop")
        empty = {name: replace(self.rows[name], held=(), arrangements=self.rows[name].shared())
                 for name, table in self.tables.items() if table.ended == "delete"}  # fmt: skip
        if not gone and not empty:
            return self
        after = replace(self, rows={**self.rows, **empty})
        return after.without(state, gone) if gone else after

    def made_again(self, before: State, after: State) -> Temporary:
        """The same after COMMIT has made the definitions of the transaction again: what they make has other ids now."""
        right = [name for name, meant in self.meant.items() if _still(meant, before.catalog)]
        return replace(self, meant={**self.meant, **{name: _meaning(self.views[name], after) for name in right}})

    def without(self, state: State, names: Iterable[str]) -> Temporary:
        """The temporary things without these tables, and without what reads them."""
        return self.defined(state, lambda state: drop(state, Drop("table", tuple(names), cascade=True)))


def _lasting(catalog: Catalog) -> dict[str, Table | View]:
    return {**catalog.tables, **catalog.views}


def _meaning(view: View, state: State) -> Meaning:
    """What a view reads that lasts."""
    known = _lasting(state.catalog)
    return {name: (known[name].id, known[name].columns) for name in view.reads if name in known}


def _still(meant: Meaning, catalog: Catalog) -> bool:
    """Whether names mean the same tables and views, with the same columns; more of them may have come."""
    known = _lasting(catalog)
    return all(name in known and known[name].id == id and known[name].columns[: len(columns)] == columns
               for name, (id, columns) in meant.items())  # fmt: skip


def _of(catalog: Catalog, rows: Mapping[str, Collection]) -> Temporary:
    """What is temporary in a catalog."""
    tables = {name: one for name, one in catalog.tables.items() if is_temporary(name)}
    return Temporary(
        tables,
        {name: one for name, one in catalog.views.items() if is_temporary(name)},
        {name: one for name, one in catalog.indexes.items() if is_temporary(one.collection)},
        {name: one for name, one in catalog.sequences.items() if is_temporary(name)},
        {name: text for name, text in catalog.comments.items() if is_temporary(name.partition(" ")[2])},
        {name: rows[name] for name in tables},
    )  # fmt: skip


def settled(statement: Definition, catalog: Catalog, sql: str) -> Definition:
    """A definition as it is meant beside temporary things: a view over them is temporary, and so is an index.

    Raises:
        UnsupportedSQL: what would last reads what does not.
    """
    match statement:
        case CreateView(name, query, materialized=materialized):
            if is_temporary(name) or any(map(is_temporary, names_of(query, catalog, sql))):
                if materialized:
                    raise not_materialized()
                return replace(statement, name=_inside(name))
        case CreateIndex(str() as name, collection) if is_temporary(collection):
            return replace(statement, name=_inside(name))
        case CreateSink(_, collection) if is_temporary(collection):
            raise UnsupportedSQL("a sink of a temporary table is not supported", remedy="create the table without TEMP")
        case CreateTable(name) if not is_temporary(name):
            if any(is_temporary(one.table) for one in statement.constraints):
                raise UnsupportedSQL("constraints on permanent tables may reference only permanent tables",
                                     remedy="create the other table without TEMP", code="42P16")  # fmt: skip
            return with_likes(statement, catalog)
    return statement


def _inside(name: str) -> str:
    return name if is_temporary(name) else f"{TEMPORARY}.{name.rpartition('.')[2]}"


def defines(statement: Statement, temporary: Temporary) -> bool:
    """Whether a definition is one of temporary things.

    Raises:
        UnsupportedSQL: it drops both temporary and lasting ones.
    """
    match statement:
        case CreateIndex(_, name):
            return is_temporary(name)
        case CreateTable(name) | CreateView(name) | AlterTable(name) | CreateSequence(name) | AlterSequence(name):
            return is_temporary(name)
        case Rename(_, name):
            return is_temporary(name)
        case AlterRetention(name):
            if is_temporary(name):
                raise UnsupportedSQL("a temporary table has no history", remedy="leave out RETAIN HISTORY")
            return False
        case Comment(_, name):
            return is_temporary(name)
        case Drop(_, names):
            unique = {one.name for table in temporary.tables.values() for one in table.unique}
            found = [is_temporary(name) or name in unique for name in names]
            if any(found) and not all(found):
                raise UnsupportedSQL("one DROP of temporary and other things is not supported",
                                     remedy="write two DROPs")
            return bool(found) and found[0]
    return False

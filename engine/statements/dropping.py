"""DROP of anything, with what reads it (CASCADE) or only if nothing does (RESTRICT). What CASCADE drops is told."""

from __future__ import annotations

from collections.abc import Callable, Collection

from halfjoin.catalog.catalog import Catalog, Item, beside, kind_of
from halfjoin.catalog.models import Index, Sink, Source, Table, View
from halfjoin.engine.arrange.collection import User
from halfjoin.engine.batch.state import State
from halfjoin.engine.statements.altering import alter_table, told_key
from halfjoin.engine.statements.definitions import drop_view
from halfjoin.engine.statements.reshaping import put
from halfjoin.engine.statements.tables import check_schema
from halfjoin.errors import Conflict, UnknownName
from halfjoin.sql.bind.tables import types_of
from halfjoin.sql.definitions import AlterAction, AlterTable, Drop
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.types import SqlType, innermost, parts_of


def drop(state: State, statement: Drop, gone: list[str] | None = None) -> None:
    """Carry out DROP: all of its names, or none. What CASCADE drops beside them is added to `gone`, in PostgreSQL's
    words.

    Raises:
        UnknownName: nothing has a name.
        Conflict: something that stays reads what goes; without CASCADE. Or a name stands for a relation of another
            kind.
    """
    gone = [] if gone is None else gone
    names = tuple(dict.fromkeys(statement.names))
    if (kind := statement.kind) in _OTHERS:
        for name in names:
            _OTHERS[kind](state, name, statement, gone)
        return
    catalog = state.catalog
    if kind == "index":
        names = tuple(catalog.index_named(name) for name in names if not _drop_unique(state, name))
    for name in names:
        if kind not in ("sink", "source"):
            catalog.check_relation(kind, name)
        if not statement.if_exists and not catalog.has(kind, name):
            check_schema(name, catalog)
    found = [catalog.find(kind, name) for name in names if not statement.if_exists or catalog.has(kind, name)]
    _drop_items(state, found, gone, cascade=statement.cascade)


def _drop_unique(state: State, name: str) -> bool:
    """Drop the index of CREATE UNIQUE INDEX of that name. Returns whether there is one."""
    for table in list(state.catalog.tables.values()):
        own = next((one for one in table.keys if beside(table.name, one) == name), None)
        if own is None:
            continue
        if any(one.index and one.name == own for one in table.unique):
            alter_table(state, AlterTable(table.name, (AlterAction("drop constraint", own),)))
            return True
        raise Conflict(f"cannot drop index {name} because constraint {name} on table {table.name} requires it",
                       remedy=f"ALTER TABLE {table.name} DROP CONSTRAINT {own}", name=name, holder=table.name,
                       code="2BP01")  # fmt: skip
    return False


def _drop_items(state: State, found: Collection[Item], gone: list[str], *, cascade: bool) -> None:
    """Drop tables, views, indexes, sinks and sources. `gone`: what goes besides them is added."""
    catalog = state.catalog
    going = {one.name for one in found if isinstance(one, Table | View)}
    items = list(found)
    if cascade:
        readers = [view for view in catalog.views.values() if view.name not in going and _reads(view, going)]
        sinks = [sink for sink in catalog.sinks.values() if sink.collection in going and sink not in items]
        fed = [one for one in catalog.sources.values() if going.intersection(one.feeds) and one not in items]
        items += [*readers, *sinks, *fed]
        gone += [*map(told, readers), *map(told, sinks), *map(told, fed)]
        for table in list(catalog.tables.values()):
            if table.name not in going and any(key.table in going for key in table.foreign_keys):
                kept = tuple(key for key in table.foreign_keys if key.table not in going)
                gone += [told_key(table, key) for key in table.foreign_keys if key not in kept]
                put(state, table, table.model_copy(update={"foreign_keys": kept}), None)
    else:
        for one in items:
            catalog.check_unread(one, going)
    order = list(catalog.views)
    views = sorted((one for one in items if isinstance(one, View)), key=lambda view: order.index(view.name))
    for one in items:
        if isinstance(one, Sink | Source):
            catalog.remove(one)
    for index in items:
        if isinstance(index, Index) and index.name in catalog.indexes:
            catalog.remove(index)
            state.collection(index.collection).release(User("index", index.name))
    for view in reversed(views):
        drop_view(state, view)
    for table in [one for one in items if isinstance(one, Table)]:
        catalog.remove(table)
        del state.tables[table.name]


def told(item: Item) -> str:
    """The kind and the name."""
    return f"{kind_of(item)} {item.name}"


def _reads(view: View, going: set[str]) -> bool:
    """Whether a view reads what goes; then it goes, too. Views are asked in order of creation."""
    if not going.intersection(view.reads):
        return False
    going.add(view.name)
    return True


def users_of_type(catalog: Catalog, name: str) -> tuple[list[tuple[Table, str]], list[View], list[str]]:
    """What has a type: columns of tables, views that name it, and domains over it."""
    def has(type: SqlType) -> bool:
        return type.named == name or any(map(has, parts_of(type)))

    columns = [(table, column.name) for table in catalog.tables.values() for column in table.columns
               if has(column.type) or (column.domain is not None and column.domain.name == name)]  # fmt: skip
    views = [view for view in catalog.views.values() if name in types_of(parse_query(view.text))]
    domains = [one.name for one in catalog.domains.values() if one.name != name and (one.base == name or has(one.type))]
    return columns, views, domains


def composites_of(catalog: Catalog, name: str) -> list[str]:
    """The row types that have a field of a type."""
    return [one.named for one in catalog.enums.values()
            if any(name in (type.named, innermost(type).named) for _, type in one.fields)]  # fmt: skip


def _drop_type(state: State, name: str, statement: Drop, gone: list[str]) -> None:
    """DROP TYPE or DOMAIN. With CASCADE, the columns that have it go, too."""
    catalog = state.catalog
    known = {**catalog.enums, **catalog.domains} if statement.kind == "type" else catalog.domains
    if name not in known:
        if name in catalog.enums:
            catalog.check_kind(name, ["type"])
        if statement.if_exists:
            return
        raise UnknownName(statement.kind, name, known)
    columns, views, domains = users_of_type(catalog, name)
    types = composites_of(catalog, name)
    if not statement.cascade and (columns or views or domains or types):
        holders = [*(f"{table.name}.{column}" for table, column in columns), *(view.name for view in views), *domains,
                   *types]  # fmt: skip
        raise _held(f"{statement.kind} {name}", holders)
    gone += map(told, views)
    _drop_items(state, views, gone, cascade=True)
    for other in (*domains, *types):
        if other in {**catalog.enums, **catalog.domains}:
            gone.append(f"type {other}")
            _drop_type(state, other, Drop("type", (other,), cascade=True), gone)
    for table, column in columns:
        if column in {one.name for one in catalog.tables[table.name].columns}:
            gone.append(f"column {column} of table {table.name}")
            alter_table(state, AlterTable(table.name, (AlterAction("drop column", column, cascade=True),)), gone)
    catalog.enums.pop(name, None)
    catalog.domains.pop(name, None)
    for kind in ("type", "domain"):
        catalog.comments.pop(f"{kind} {name}", None)


def _drop_sequence(state: State, name: str, statement: Drop, gone: list[str]) -> None:
    catalog = state.catalog
    catalog.check_relation("sequence", name)
    if name not in catalog.sequences:
        if statement.if_exists:
            return
        raise UnknownName("sequence", name, catalog.sequences, code="42P01")
    holders = [f"{table.name}.{column.name}" for table in catalog.tables.values() for column in table.columns
               if column.sequence == name or f"nextval('{name}'" in (column.default or "")]  # fmt: skip
    if holders:
        raise _held(f"sequence {name}", holders)
    del catalog.sequences[name]
    catalog.comments.pop(f"sequence {name}", None)


def _drop_schema(state: State, name: str, statement: Drop, gone: list[str]) -> None:
    """DROP SCHEMA. With CASCADE, all that is in it goes, with what reads that."""
    catalog = state.catalog
    if name not in catalog.schemas:
        if statement.if_exists:
            return
        raise UnknownName("schema", name, catalog.schemas, code="3F000")
    def inside(names: Collection[str]) -> list[str]:
        return [one for one in names if one.startswith(f"{name}.")]

    items: list[Item] = [catalog.tables[one] for one in inside(catalog.tables)]
    items += [catalog.views[one] for one in inside(catalog.views)]
    items += [catalog.sinks[one] for one in inside(catalog.sinks)]
    items += [catalog.sources[one] for one in inside(catalog.sources)]
    items += [catalog.indexes[one] for one in inside(catalog.indexes)]
    types, sequences = inside([*catalog.enums, *catalog.domains]), inside(catalog.sequences)
    if not statement.cascade and (items or types or sequences):
        raise _held(f"schema {name}", [*(one.name for one in items), *types, *sequences])
    gone += [told(one) for one in items if not isinstance(one, Index)]
    _drop_items(state, items, gone, cascade=True)
    for kind, names in (("type", types), ("sequence", inside(catalog.sequences))):
        for one in names:
            if f"{kind} {one}" not in gone:
                gone.append(f"{kind} {one}")
                _OTHERS[kind](state, one, Drop(kind, (one,), if_exists=True, cascade=True), gone)
    catalog.schemas = tuple(one for one in catalog.schemas if one != name)
    catalog.comments.pop(f"schema {name}", None)


def _held(what: str, holders: Collection[str]) -> Conflict:
    return Conflict(f"cannot drop {what} because {', '.join(holders)} depends on it",
                    remedy="drop that first, or write CASCADE", name=what, holder=", ".join(holders), code="2BP01")


_OTHERS: dict[str, Callable[[State, str, Drop, list[str]], None]] = {
    "type": _drop_type, "domain": _drop_type, "sequence": _drop_sequence, "schema": _drop_schema,
}  # fmt: skip

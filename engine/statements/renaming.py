"""RENAME of tables, views and columns. What names them follows: views, indexes, foreign keys, CHECK and GENERATED."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from halfjoin.catalog.catalog import Catalog, beside, kind_of
from halfjoin.catalog.models import Index, Sequence, Table, View
from halfjoin.engine.arrange.collection import User
from halfjoin.engine.batch.enter import enter_index
from halfjoin.engine.batch.state import MaintainedView, State
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.creating import identifier, qualified
from halfjoin.engine.statements.definitions import create_view, drop_view
from halfjoin.engine.statements.following import follow
from halfjoin.engine.statements.framing import Change, text_over
from halfjoin.engine.statements.reshaping import put
from halfjoin.engine.statements.tables import check_schema
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.sql.bind.bind import bind_scalar
from halfjoin.sql.definitions import CreateView, Rename
from halfjoin.sql.functions import render
from halfjoin.sql.parse.locate import PUBLIC, in_schema
from halfjoin.sql.parse.parse import parse_index, parse_query
from halfjoin.sql.parse.renaming import names_in, renamed, renamed_in, without_names


def rename(state: State, runners: Runners, statement: Rename) -> None:
    """Carry out RENAME TO of a table, view, index or sequence. ALTER TABLE renames all of them.

    Raises:
        UnknownName: nothing has the name. Conflict: it is of another kind, a sink reads it, or the new name is taken.
    """
    catalog, to = state.catalog, statement.to
    if statement.kind in ("table", "sequence") and (sequence := catalog.sequences.get(statement.name)) is not None:
        if statement.moves and sequence.owner:
            raise UnsupportedSQL("cannot move an owned sequence into another schema: "
                                 f"{sequence.owner} owns {sequence.name}",
                                 remedy=f"ALTER TABLE {sequence.owner} SET SCHEMA takes it along", code="0A000")
        if not statement.moves or to != sequence.name:
            check_schema(to, catalog)
            _rename_sequence(catalog, sequence, to)
        return
    if statement.kind == "sequence":
        if not statement.if_exists:
            raise UnknownName("sequence", statement.name, catalog.sequences, code="42P01")
        return
    found = _named_as(catalog, statement)
    if found is None:
        return
    if statement.column and isinstance(found, View):
        _rename_view_column(state, runners, found, statement)
        return
    if statement.moves and to == found.name:
        return
    if to in catalog.names() or to in catalog.indexes:
        raise Conflict(f"{to} exists already", remedy="choose another name", name=to, code="42P07")
    if isinstance(found, Index):
        _rename_index(state, found, to)
        return
    refuse_sinks(catalog, found.name)
    check_schema(to, catalog)
    change = Change(found.name, to, {column.name: column.name for column in found.columns})
    if isinstance(found, View):
        _rename_view(state, runners, found, change)
        return
    _rename_indexes(state, found, change)
    put(state, found, _named(found, change), lambda rows: rows, change)
    for sequence in [one for one in catalog.sequences.values() if one.owner == found.name]:
        catalog.sequences[sequence.name] = sequence.model_copy(update={"owner": to})
        if statement.moves:
            _move_with_table(catalog, catalog.sequences[sequence.name], to)
    for name, source in catalog.sources.items():
        into = tuple(to if one == found.name else one for one in source.into)
        errors = to if source.errors == found.name else source.errors
        catalog.sources[name] = source.model_copy(update={"into": into, "errors": errors})
    for name, table in catalog.tables.items():
        theirs = tuple(one.model_copy(update={"table": to}) if one.table == found.name else one
                       for one in table.foreign_keys)  # fmt: skip
        catalog.tables[name] = table.model_copy(update={"foreign_keys": theirs})


def _rename_view(state: State, runners: Runners, found: View, change: Change) -> None:
    """Make a view anew under another name, and maybe with other names of columns, and let what reads it follow."""
    catalog, to = state.catalog, change.now
    _rename_indexes(state, found, change)
    before = catalog.copy()
    base, text = found.base, found.text
    if not all(name == now for name, now in change.columns.items()):
        names = ", ".join(identifier(now or name) for name, now in change.columns.items())
        base = f"SELECT * FROM (\n{base or text}\n) AS view ({names})"
        text = text_over(base, found.frames)
    create_view(state, runners, CreateView(to, parse_query(text), text, (), found.materialized, found.retain), text)
    for index in catalog.indexes.values():
        if index.collection == to:
            enter_index(state, index)
    kept = {"base": base, "frames": found.frames, "comment": found.comment, "first_id": found.first_id or found.id}
    catalog.views[to] = catalog.views[to].model_copy(update=kept)
    _in_its_place(state, found.name, to)
    drop_view(state, found)
    follow(state, before, change)


def _rename_view_column(state: State, runners: Runners, found: View, statement: Rename) -> None:
    """RENAME COLUMN of a view: it is made anew under a name that no text can have, and gets its own name back."""
    catalog, names = state.catalog, [column.name for column in found.columns]
    if statement.column not in names:
        raise UnknownName(f"column of {found.name}", statement.column, names, code="42703")
    if statement.to in names:
        raise Conflict(f"column {statement.to} of {found.name} already exists", name=statement.to, code="42701")
    if statement.to.lower() in ("__time", "__diff"):
        raise UnsupportedSQL(f"{statement.to} is the name of an update's own column", remedy="choose another name")
    refuse_sinks(catalog, found.name)
    aside = f"{found.name} {uuid.uuid4().hex}"
    new = {name: statement.to if name == statement.column else name for name in names}
    _rename_view(state, runners, found, Change(found.name, aside, new))
    back = Change(aside, found.name, {name: name for name in new.values()})
    _rename_view(state, runners, catalog.views[aside], back)


def _named_as(catalog: Catalog, statement: Rename) -> Table | View | Index | None:
    """What is to be renamed; None if it need not exist, and does not.

    Raises:
        UnknownName: nothing has the name. Conflict: what has it is of another kind.
    """
    name, kind = statement.name, statement.kind
    there: Table | View | Index | None = catalog.tables.get(name) or catalog.views.get(name)
    index = catalog.index_named(name)
    if there is None or (kind == "index" and index in catalog.indexes):
        there = catalog.indexes.get(index)
    if there is None:
        if statement.if_exists:
            return None
        raise UnknownName(kind, name, catalog.indexes if kind == "index" else catalog.names(), code="42P01")
    if kind not in ("table", kind_of(there)):
        raise Conflict(f"{name} is not {'an' if kind == 'index' else 'a'} {kind}", name=name, code="42809",
                       remedy=f"write ALTER {kind_of(there).upper()} {name}")  # fmt: skip
    return there


def _rename_sequence(catalog: Catalog, sequence: Sequence, to: str) -> None:
    """Give a sequence another name, which the columns that it numbers follow."""
    if to in catalog.names() or to in catalog.indexes or to in catalog.sequences:
        raise Conflict(f"{to} exists already", remedy="choose another name", name=to, code="42P07")
    if _named_in_default(catalog, sequence) or f"sequence {sequence.name}" in catalog.comments:
        raise UnsupportedSQL(f"the sequence {sequence.name} cannot be renamed: a DEFAULT or a comment names it",
                             remedy="DROP DEFAULT, or COMMENT ... IS NULL, and write it anew afterwards")  # fmt: skip
    del catalog.sequences[sequence.name]
    catalog.sequences[to] = sequence.model_copy(update={"name": to})
    for table in list(catalog.tables.values()):
        columns = tuple(one.model_copy(update={"sequence": to}) if one.sequence == sequence.name else one
                        for one in table.columns)  # fmt: skip
        catalog.tables[table.name] = table.model_copy(update={"columns": columns})


def _move_with_table(catalog: Catalog, sequence: Sequence, table: str) -> None:
    """Move a sequence into the schema of the table that owns it. One that the text of a DEFAULT names stays."""
    to = in_schema(sequence.name, table.rpartition(".")[0] or PUBLIC)
    if not _named_in_default(catalog, sequence):
        comment = catalog.comments.pop(f"sequence {sequence.name}", "")
        _rename_sequence(catalog, sequence, to)
        catalog.comments |= {f"sequence {to}": comment} if comment else {}


def _named_in_default(catalog: Catalog, sequence: Sequence) -> bool:
    return any(sequence.name.rpartition(".")[2] in (column.default or "")
               for table in catalog.tables.values() for column in table.columns)  # fmt: skip


def _rename_index(state: State, index: Index, to: str) -> None:
    """Give an index another name. Its arrangement belongs to the name, so it is built again."""
    catalog = state.catalog
    to = beside(index.collection, to)
    text = f"CREATE INDEX {identifier(to.rpartition('.')[2])} ON {without_names(index.text)[0]}"
    state.collection(index.collection).release(User("index", index.name))
    made = index.model_copy(update={"name": to, "text": text})
    catalog.indexes = {one.name: one for one in (made if one is index else one for one in catalog.indexes.values())}
    enter_index(state, made)


def _in_its_place(state: State, name: str, to: str) -> None:
    """Move a new view, and the nodes below it, before the views that read the old one."""
    views = state.catalog.views
    names = [one for old in views if old != to for one in ((to, old) if old == name else (old,))]
    state.catalog.views = {one: views[one] for one in names}
    new = state.maintained.get(to)
    if new is None or new.plan is None:
        return
    order: dict[str, MaintainedView] = {}
    for old, one in state.maintained.items():
        if old == name:
            order |= {node.output: state.maintained[node.output] for node in new.plan.below if node.output not in order}
            order[to] = new
        order.setdefault(old, one)
    state.maintained.clear()
    state.maintained.update(order)


def rename_column(state: State, table: Table, name: str, to: str) -> None:
    """Carry out RENAME COLUMN.

    Raises:
        UnknownName: the table has no such column. Conflict: the new name is taken, or a sink reads the table.
    """
    names = [column.name for column in table.columns]
    if name not in names:
        raise UnknownName(f"column of {table.name}", name, names)
    refuse_sinks(state.catalog, table.name)
    if to in names:
        raise Conflict(f"column {to} of {table.name} already exists", name=to, code="42701")
    if to.lower() in ("__time", "__diff"):
        raise UnsupportedSQL(f"{to} is the name of an update's own column", remedy="choose another name")
    change = Change(table.name, table.name, {one: to if one == name else one for one in names})
    _rename_indexes(state, table, change)
    for other in list(state.catalog.tables.values()):  # they refer to it
        keys = tuple(one.model_copy(update={"references": _new(change, one.references)})
                     if one.table == table.name else one for one in other.foreign_keys)  # fmt: skip
        state.catalog.tables[other.name] = other.model_copy(update={"foreign_keys": keys})
    table = state.catalog.tables[table.name]
    pairs = [(one, to if one == name else one) for one in names]
    put(state, table, _named(table, change), lambda rows: rows.renamed(pairs), change)
    for sequence in [one for one in state.catalog.sequences.values() if (one.owner, one.column) == (table.name, name)]:
        state.catalog.sequences[sequence.name] = sequence.model_copy(update={"column": to})


def _named(table: Table, change: Change) -> Table:
    """The table under its new names."""
    names, tables = _texts(change)

    def text(old: str | None) -> str | None:
        return None if old is None else renamed(old, names, tables)

    columns = tuple(one.model_copy(update={"name": change.columns[one.name], "generated": text(one.generated)})
                    for one in table.columns)  # fmt: skip
    keys = tuple(one.model_copy(update={
        "columns": _new(change, one.columns), "table": change.now if one.table == table.name else one.table,
    }) for one in table.foreign_keys)  # fmt: skip
    return table.model_copy(update={
        "name": change.now, "columns": columns, "primary_key": _new(change, table.primary_key), "foreign_keys": keys,
        "unique": tuple(one.model_copy(update={"columns": _new(change, one.columns)}) for one in table.unique),
        "checks": tuple(one.model_copy(update={"text": text(one.text)}) for one in table.checks),
        "key_name": table.key_name or (f"{table.name}_pkey" if table.primary_key else ""),
    })  # fmt: skip


def _new(change: Change, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(change.columns[name] or name for name in names)


def _texts(change: Change) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The new names of columns and of the table as SQL text."""
    columns = {name: identifier(now) for name, now in change.columns.items() if now not in (None, name)}
    tables = {change.name.rpartition(".")[2]: identifier(change.now.rpartition(".")[2])}
    return columns, {} if change.name == change.now else tables


def _rename_indexes(state: State, item: Table | View, change: Change) -> None:
    """Give the indexes on a table or view the new names."""
    catalog, (names, tables) = state.catalog, _texts(change)
    columns = [column.column for column in item.columns]
    new = [replace(column, name=change.columns[column.name] or column.name) for column in columns]
    for index in [one for one in catalog.indexes.values() if one.collection == item.name]:
        text = renamed_in(index.text, parse_index(index.text).keys, names, tables)
        if tables:
            own, rest = identifier(index.name.rpartition(".")[2]), without_names(text)[1]
            text = f"CREATE INDEX {own} ON {qualified(change.now)} {rest}"
        keys = [bind_scalar(node, new, catalog, text, change.now) for node in parse_index(text).keys]
        name = beside(change.now, index.name) if index.name == beside(item.name, index.name) else index.name
        if name != index.name and name in catalog.indexes:
            raise Conflict(f"{name} exists already", remedy="rename one of them", name=name, code="42P07")
        catalog.indexes = {name if one == index.name else one: kept for one, kept in catalog.indexes.items()}
        catalog.indexes[name] = index.model_copy(update={
            "name": name, "collection": change.now, "keys": tuple(map(render, keys)), "text": text})  # fmt: skip


def columns_of_index(index: Index) -> set[str]:
    """The columns that an index names."""
    return names_in(parse_index(index.text).keys)


def refuse_sinks(catalog: Catalog, name: str) -> None:
    """Refuse to change the columns or the name of what a sink writes: its Delta table has them.

    Raises:
        Conflict: there is a sink.
    """
    sinks = [sink.name for sink in catalog.sinks.values() if sink.collection == name]
    if sinks:
        raise Conflict(f"{name} is read by sink {', '.join(sinks)}, whose Delta table has these names",
                       remedy="drop the sink, and create it again afterwards", name=name, holder=", ".join(sinks),
                       code="2BP01")  # fmt: skip


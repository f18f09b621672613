"""ALTER TABLE, and RENAME of tables and views.

A change of a table's columns makes a new collection of the table's rows, with all their times, in the place of the old
one: in the same entry of the journal as the definition. Views go on as they are; what would change one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import ColumnModel, ForeignKey, Table, View
from halfjoin.engine.arrange.collection import Collection
from halfjoin.engine.batch.enter import enter_table
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.foreign_keys import Tables
from halfjoin.engine.intake.foreign_keys import check as check_foreign_keys
from halfjoin.engine.intake.generated import check as check_row_by_row
from halfjoin.engine.intake.generated import values, with_generated
from halfjoin.engine.intake.primary_key import key_of, known
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.spark.runners import Runners
from halfjoin.engine.statements.definitions import create_view, drop_view
from halfjoin.engine.statements.tables import check_columns, constraint_names, refer, with_constraint
from halfjoin.engine.storage.filling import take_in
from halfjoin.engine.updates.consolidate import consolidate
from halfjoin.engine.updates.updates import Updates, concat, empty
from halfjoin.errors import Conflict, InvalidRow, UnknownName, UnsupportedSQL
from halfjoin.planner.drift import same_work
from halfjoin.planner.figures import Replayed
from halfjoin.planner.plan_view import plan
from halfjoin.sql import functions
from halfjoin.sql.bind.bind import bind
from halfjoin.sql.bind.constraints import bind_default, names_read
from halfjoin.sql.expr import Literal
from halfjoin.sql.functions.fallible import cast_fallible
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.statements import AlterAction, AlterTable, Constraint, CreateView, Rename
from halfjoin.sql.types import INTEGERS, STRINGS, Kind, SqlType

Rows = Callable[[Updates], Updates]


def alter_table(state: State, statement: AlterTable) -> None:
    """Carry out ALTER TABLE: all of its actions or none.

    Raises:
        UnknownName, UnsupportedSQL, Conflict: an action is not possible.
        InvalidRow: a row of the table breaks a new constraint.
    """
    if statement.if_exists and statement.name not in state.catalog.tables:
        return
    for action in statement.actions:
        table = state.catalog.table(statement.name)
        made, rows = _changed(state, table, action)
        if made is not table:
            _put(state, table, made, rows)
            if action.kind in ("add constraint", "set not null", "add column"):
                _check_rows(state, made)


def rename(state: State, runners: Runners, statement: Rename) -> None:
    """Carry out RENAME TO of a table or view. Foreign keys follow.

    Raises:
        UnknownName: nothing has the name. Conflict: a view, an index or a sink reads it, or the new name is taken.
    """
    catalog = state.catalog
    if statement.if_exists and statement.name not in catalog.names():
        return
    kind = statement.kind if statement.name not in catalog.views else _kind(catalog.views[statement.name])
    found = catalog.find(kind if statement.kind != "materialized view" else statement.kind, statement.name)
    _refuse_readers(catalog, statement.name)
    if statement.to in catalog.names():
        raise Conflict(f"{statement.to} exists already", remedy="choose another name", name=statement.to, code="42P07")
    if isinstance(found, View):
        view = CreateView(statement.to, parse_query(found.text), found.text, (), found.materialized, found.retain)
        create_view(state, runners, view, found.text)
        drop_view(state, found)
        return
    assert isinstance(found, Table)
    keys = tuple(one.model_copy(update={"table": statement.to}) if one.table == found.name else one
                 for one in found.foreign_keys)  # fmt: skip
    named = found.key_name or (f"{found.name}_pkey" if found.primary_key else "")
    _put(state, found, found.model_copy(update={"name": statement.to, "foreign_keys": keys, "key_name": named}),
         lambda rows: rows)  # fmt: skip
    for name, table in catalog.tables.items():
        theirs = tuple(one.model_copy(update={"table": statement.to}) if one.table == found.name else one
                       for one in table.foreign_keys)  # fmt: skip
        catalog.tables[name] = table.model_copy(update={"foreign_keys": theirs})


def _changed(state: State, table: Table, action: AlterAction) -> tuple[Table, Rows | None]:
    """The table after an action, and what happens to its rows (None: nothing)."""
    catalog, columns = state.catalog, {column.name: column for column in table.columns}
    if action.kind == "add constraint":
        assert action.constraint is not None
        return _constrained(catalog, table, action.constraint), None
    if action.kind == "drop constraint":
        return _without_constraint(catalog, table, action), None
    if action.kind == "add column":
        if action.name in columns and action.lenient:
            return table, None
        return _with_column(catalog, table, action)
    if action.name not in columns:
        if action.lenient:
            return table, None
        raise UnknownName(f"column of {table.name}", action.name, columns)
    column = columns[action.name]
    match action.kind:
        case "default":
            if column.generated is not None:
                raise UnsupportedSQL(f"the generated column {column.name} cannot have a DEFAULT", code="42601")
            made = _with(table, column.model_copy(update={"default": action.to}))
            check_columns(made, catalog)
            return made, None
        case "set not null":
            return _with(table, column.model_copy(update={"not_null": True})), None
        case "drop not null":
            if column.name in table.primary_key:
                raise UnsupportedSQL(f"column {column.name} is in a primary key", code="42P16")
            return _with(table, column.model_copy(update={"not_null": False})), None
        case "type":
            return _with_type(catalog, table, column, action)
        case "rename column":
            return _renamed(catalog, table, column.name, str(action.to))
        case _:
            return _without(catalog, table, column)


def _constrained(catalog: Catalog, table: Table, wanted: Constraint) -> Table:
    if wanted.kind == "primary key":
        raise UnsupportedSQL("ADD PRIMARY KEY is not supported", remedy="add UNIQUE, and SET NOT NULL")
    return with_constraint(table, wanted, catalog)


def _with_column(catalog: Catalog, table: Table, action: AlterAction) -> tuple[Table, Rows]:
    given = action.column
    assert given is not None
    if given.name in {column.name for column in table.columns}:
        raise Conflict(f"column {given.name} of {table.name} already exists", name=given.name, code="42701")
    if given.name.lower() in ("__time", "__diff"):
        raise UnsupportedSQL(f"{given.name} is the name of an update's own column", remedy="choose another name")
    if sinks := [sink.name for sink in catalog.sinks.values() if sink.collection == table.name]:
        raise Conflict(f"{table.name} is read by sink {sinks[0]}", remedy="drop it first", name=table.name)
    column = ColumnModel(name=given.name, type=given.type, not_null=given.not_null, default=given.default,
                         generated=given.generated)  # fmt: skip
    made = table.model_copy(update={"columns": (*table.columns, column)})
    check_columns(made, catalog)
    value = Literal(None, column.type) if column.default is None else bind_default(column.default, column.type, catalog)
    scalar = compile(functions.cast(value, column.type))

    def rows(updates: Updates) -> Updates:
        updates = updates.with_columns({column.name: values(table, scalar, updates).cast(arrow_type(column.type))})
        return with_generated(made, updates)

    for one in action.beside:
        made = _constrained(catalog, made, one)
    return made, rows


def _without(catalog: Catalog, table: Table, column: ColumnModel) -> tuple[Table, Rows]:
    """The table without a column, and the constraints on it."""
    name = column.name
    _refuse_readers(catalog, table.name, "drop")
    if name in table.primary_key or any(name in one.columns for one in _referred(catalog, table)):
        raise UnsupportedSQL(f"column {name} is in the PRIMARY KEY, or a foreign key refers to it", code="2BP01")
    if any(other.generated is not None and other.name != name for other in table.columns) or table.checks:
        _refuse_reading(table, name)
    if len(table.columns) == 1:
        raise UnsupportedSQL("a table needs columns", remedy="DROP TABLE", code="42P16")
    made = table.model_copy(update={
        "columns": tuple(one for one in table.columns if one.name != name),
        "unique": tuple(one for one in table.unique if name not in one.columns),
        "foreign_keys": tuple(one for one in table.foreign_keys if name not in one.columns),
    })  # fmt: skip
    return made, lambda updates: updates.select([one.name for one in made.columns])


def _renamed(catalog: Catalog, table: Table, name: str, to: str) -> tuple[Table, Rows]:
    _refuse_readers(catalog, table.name)
    if to in {column.name for column in table.columns}:
        raise Conflict(f"column {to} of {table.name} already exists", name=to, code="42701")
    if table.checks or any(column.generated is not None for column in table.columns):
        _refuse_reading(table, name)
    if _referred(catalog, table) and any(name in one.columns for one in _referred(catalog, table)):
        raise UnsupportedSQL(f"a foreign key refers to column {name}", remedy="DROP CONSTRAINT first")

    def new(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(to if one == name else one for one in names)

    made = table.model_copy(update={
        "columns": tuple(one.model_copy(update={"name": to}) if one.name == name else one for one in table.columns),
        "primary_key": new(table.primary_key),
        "unique": tuple(one.model_copy(update={"columns": new(one.columns)}) for one in table.unique),
        "foreign_keys": tuple(one.model_copy(update={"columns": new(one.columns)}) for one in table.foreign_keys),
    })  # fmt: skip
    pairs = list(zip((one.name for one in table.columns), (one.name for one in made.columns), strict=True))
    return made, lambda updates: updates.renamed(pairs)


def _with_type(catalog: Catalog, table: Table, column: ColumnModel, action: AlterAction) -> tuple[Table, Rows | None]:
    assert action.type is not None
    if action.type == column.type:
        return table, None
    _refuse_readers(catalog, table.name, "change the type")
    if not _keeps(column.type, action.type):
        raise UnsupportedSQL(f"a column of type {column.type} cannot become {action.type}, since values may change",
                             remedy="add a column, and fill it with UPDATE")  # fmt: skip
    if any(column.name in one.columns for one in (*table.foreign_keys, *_referred(catalog, table))):
        raise UnsupportedSQL(f"a foreign key has the column {column.name}", remedy="DROP CONSTRAINT first")
    if any(other.generated is not None and column.name in names_read(other.generated) for other in table.columns):
        raise UnsupportedSQL(f"a generated column reads the column {column.name}", remedy="drop it first", code="0A000")
    made = _with(table, column.model_copy(update={"type": action.type}))
    check_columns(made, catalog)
    scalar, target = compile(functions.cast(column.column, action.type)), arrow_type(action.type)

    def rows(updates: Updates) -> Updates:
        return updates.with_columns({column.name: values(table, scalar, updates).cast(target)})

    return made, rows


def _keeps(source: SqlType, target: SqlType) -> bool:
    """Whether a value of one type is the same value of the other."""
    if source.kind in STRINGS and target.kind in STRINGS and Kind.CHAR not in (source.kind, target.kind):
        return target.precision is None or (source.precision is not None and source.precision <= target.precision)
    if (source.kind in INTEGERS and target.kind in INTEGERS) or target.kind is Kind.NUMERIC:
        scales = (source.scale or 0) <= (target.scale or 0) if source.kind is Kind.NUMERIC else True
        exact = source.kind in (*INTEGERS, Kind.NUMERIC)
        return exact and scales and not cast_fallible(source, target)
    return (source.kind, target.kind) == (Kind.REAL, Kind.DOUBLE)


def _without_constraint(catalog: Catalog, table: Table, action: AlterAction) -> Table:
    name = action.name
    if name not in constraint_names(table):
        if action.lenient:
            return table
        raise UnknownName(f"constraint of {table.name}", name, constraint_names(table))
    if name not in {one.name for one in (*table.unique, *table.checks, *table.foreign_keys)}:
        raise UnsupportedSQL("a PRIMARY KEY cannot be dropped", remedy="CREATE TABLE ... AS a new table")
    if sorted(table.keys.get(name, ())) in [sorted(one.references) for one in _referring(catalog, table)]:
        raise Conflict(f"a foreign key refers to {name}", remedy="drop that first", name=name, code="2BP01")
    return table.model_copy(update={
        kind: tuple(one for one in getattr(table, kind) if one.name != name)
        for kind in ("unique", "checks", "foreign_keys")
    })  # fmt: skip


def _put(state: State, old: Table, new: Table, rows: Rows | None) -> None:
    """Put a table in the place of another, with its rows; the views over it stay."""
    there, catalog = state.tables.pop(old.name), state.catalog
    catalog.tables = {(new.name if name == old.name else name): (new if name == old.name else table)
                      for name, table in catalog.tables.items()}  # fmt: skip
    refer(catalog, new)
    made = enter_table(state, catalog.tables[new.name])
    made.since = there.since
    for key, arrangement in there.shared().items():
        kept = {user: None for user in arrangement.users if user.kind in ("view", "node", "index", "new view")}
        if kept:
            made.arrangements.setdefault(key, replace(arrangement, users={})).users.update(kept)
    if rows is None and made.schema == there.schema:
        _adopt(state, old.name, there, made)
    else:
        change = rows or (lambda updates: updates)
        for part in there.runs:
            for piece in part.pieces():
                take_in(state, "tables", new.name, made, change(piece))
    _check_views(state, new.name)


def _adopt(state: State, name: str, there: Collection, made: Collection) -> None:
    """Keep a collection whose rows stay as they are, with other arrangements."""
    there.arrangements = {**made.arrangements}
    state.tables[name] = there


def _check_views(state: State, table: str) -> None:
    """Check that the views over a changed table, and the work to maintain them, are what they were.

    Raises:
        Conflict: one is not.
    """
    for name in state.above([table]):
        view, running = state.catalog.views.get(name), state.maintained[name]
        if view is None or running.plan is None:
            continue
        planned = plan(bind(parse_query(view.text), state.catalog, view.text), Replayed(state, view.planned), name)
        columns = [(column.name, column.type) for column in planned.columns]
        if columns != [(column.name, column.type) for column in view.columns] or not same_work(planned, running.plan):
            raise Conflict(f"the materialized view {name} would change", name=table, holder=name, code="2BP01",
                           remedy="name the columns that it reads, or drop it first")  # fmt: skip


def _check_rows(state: State, table: Table) -> None:
    """Check the present and future rows of a table against its constraints.

    Raises:
        InvalidRow: one breaks them.
    """
    collection = state.tables[table.name]
    pieces = [piece for part in collection.runs for piece in part.pieces()]
    every = concat(pieces) if pieces else empty(collection.schema)
    rows = consolidate(every.not_before(max(state.upper - 1, 0)))  # what was there before does not matter
    for column in table.columns:
        if column.not_null and rows.filter(rows.diff > 0).columns[column.name].null_count:
            raise InvalidRow(f"column {column.name} of {table.name} contains NULLs", table=table.name,
                             column=column.name, code="23502")  # fmt: skip
    try:
        check_row_by_row(table, rows)
    except InvalidRow as problem:
        raise problem.with_(row=None) from None
    for one in table.unique:
        asked = rows.filter(known(rows, one.columns))
        try:
            key_of(table, one.columns, collection).check([], asked)
        except InvalidRow as problem:
            raise problem.with_(row=None, reason=f"could not create unique constraint {one.name}") from None
    if table.foreign_keys and len(rows):
        before = dict(state.tables)
        before[table.name] = replace(collection, held=(), stored=None, cold=None, arrangements=collection.shared())
        check_foreign_keys(Tables(state.catalog.tables, before), {table.name: rows})


def _refuse_readers(catalog: Catalog, name: str, word: str = "rename") -> None:
    """Refuse to change what views, indexes or sinks name.

    Raises:
        Conflict: one does.
    """
    readers = [view.name for view in catalog.views.values() if name in view.reads]
    readers += [f"sink {sink.name}" for sink in catalog.sinks.values() if sink.collection == name]
    readers += [f"index {index.name}" for index in catalog.indexes.values() if index.collection == name]
    if readers:
        raise Conflict(f"{name} is read by {', '.join(readers)}", remedy=f"drop what reads it, {word}, create it again",
                       name=name, holder=", ".join(readers), code="2BP01")  # fmt: skip


def _refuse_reading(table: Table, column: str) -> None:
    """Refuse to change a column that a CHECK or a generated column names.

    Raises:
        UnsupportedSQL: one does.
    """
    texts = [(one.name, one.text) for one in table.checks]
    texts += [(one.name, one.generated) for one in table.columns if one.generated is not None]
    for name, text in texts:
        if column in names_read(text):
            raise UnsupportedSQL(f"{name} reads the column {column}", remedy="drop it first", code="2BP01")


def _kind(view: View) -> str:
    return "materialized view" if view.materialized else "view"


def _with(table: Table, column: ColumnModel) -> Table:
    columns = tuple(column if one.name == column.name else one for one in table.columns)
    return table.model_copy(update={"columns": columns})


def _referring(catalog: Catalog, table: Table) -> list[ForeignKey]:
    """The foreign keys that refer to a table."""
    return [key for other in catalog.tables.values() for key in other.foreign_keys if key.table == table.name]


def _referred(catalog: Catalog, table: Table) -> list[ForeignKey]:
    """As `_referring`, with the columns of this table."""
    return [key.model_copy(update={"columns": key.references}) for key in _referring(catalog, table)]

"""ALTER TABLE: the table after each action, and what happens to its rows."""

from __future__ import annotations

import pyarrow as pa

from halfjoin.catalog.catalog import Catalog, kind_of
from halfjoin.catalog.models import ColumnModel, ForeignKey, Sequence, Table
from halfjoin.engine.batch.state import State
from halfjoin.engine.intake.generated import values, with_generated
from halfjoin.engine.scalar import compile
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.statements.definitions import drop_view
from halfjoin.engine.statements.dependents import readers_of_column
from halfjoin.engine.statements.identities import alter_identity
from halfjoin.engine.statements.numbered_column import numbered
from halfjoin.engine.statements.renaming import columns_of_index, refuse_sinks, rename_column
from halfjoin.engine.statements.reshaping import Rows, check_rows, put
from halfjoin.engine.statements.retyping import keys_with, with_type
from halfjoin.engine.statements.tables import (
    add_sequences,
    check_columns,
    check_key,
    column_of,
    constraint_names,
    with_constraint,
)
from halfjoin.engine.updates.updates import Updates, constant
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind.constraints import bind_default, names_read, sequence_of_default
from halfjoin.sql.definitions import AlterAction, AlterTable, Constraint
from halfjoin.sql.expr import Call, Expr, Literal, walk
from halfjoin.sql.functions.chance import CHANCE


def alter_table(state: State, statement: AlterTable, gone: list[str] | None = None) -> None:
    """Carry out ALTER TABLE: all of its actions or none. What CASCADE drops beside them is added to `gone`.

    Raises:
        UnknownName, UnsupportedSQL, Conflict: an action is not possible.
        InvalidRow: a row of the table breaks a new constraint.
    """
    if statement.if_exists and statement.name not in state.catalog.tables:
        return
    for action in statement.actions:
        table = state.catalog.table(statement.name)
        if action.kind.endswith("identity"):
            alter_identity(state, table, action)
            continue
        if action.kind == "rename column":
            rename_column(state, table, action.name, str(action.to))
            continue
        made, rows = _changed(state, table, action, [] if gone is None else gone)
        if made is not table:
            put(state, table, made, rows, whole=action.kind == "add column" and _of_each_row(made.columns[-1]))
            if action.kind in ("add constraint", "validate constraint", "set not null", "add column", "type"):
                check_rows(state, made)
            if action.kind == "type":
                for other in dict.fromkeys(other.name for other, _ in keys_with(state.catalog, made, action.name)):
                    check_rows(state, state.catalog.tables[other])


def _changed(state: State, table: Table, action: AlterAction, gone: list[str]) -> tuple[Table, Rows | None]:
    """The table after an action, and what happens to its rows (None: nothing). `gone`: as of `alter_table`."""
    catalog, columns = state.catalog, {column.name: column for column in table.columns}
    if action.kind == "add constraint":
        assert action.constraint is not None
        if action.lenient and action.constraint.name in constraint_names(table):
            return table, None
        made = _constrained(catalog, table, action.constraint, fresh=not len(state.tables[table.name]))
        return made, None if made.primary_key == table.primary_key else _same
    if action.kind == "drop constraint":
        made = _without_constraint(state, table, action, gone)
        return made, None if made.primary_key == table.primary_key else _same
    if action.kind == "rename constraint":
        return _with_constraint_named(table, action.name, str(action.to)), None
    if action.kind == "validate constraint":
        return _validated(table, action.name), None
    if action.kind == "add column":
        if action.name in columns and action.lenient:
            return table, None
        return _with_column(state, table, action)
    if action.name not in columns:
        if action.lenient:
            return table, None
        raise UnknownName(f"column of {table.name}", action.name, columns)
    column = columns[action.name]
    if column.sequence and action.kind in ("default", "drop not null"):
        raise UnsupportedSQL(f"column {column.name} is an identity column", remedy="write DROP IDENTITY first",
                             code="42601")  # fmt: skip
    match action.kind:
        case "default":
            if column.generated is not None:
                raise UnsupportedSQL(f"the generated column {column.name} cannot have a DEFAULT", code="42601")
            made = _with(table, column.model_copy(update={"default": action.to}))
            check_columns(made, catalog)
            return made, None
        case "set not null":
            return _with(table, _not_null(column)), None
        case "drop not null":
            if column.name in table.primary_key:
                raise UnsupportedSQL(f"column {column.name} is in a primary key", code="42P16")
            if column.domain is not None and column.domain.not_null:  # it stays so
                return _with(table, column.model_copy(update={"own_not_null": False})), None
            free = {"not_null": False, "own_not_null": False, "had_nulls": False}
            return _with(table, column.model_copy(update=free)), None
        case "type":
            return with_type(catalog, table, column, action)
        case _:
            if action.cascade:
                table = _drop_readers(state, table, column.name, gone)
            return _without(catalog, table, column)


def _constrained(catalog: Catalog, table: Table, wanted: Constraint, *, fresh: bool) -> Table:
    if wanted.kind == "primary key":
        return _keyed(table, wanted)
    return with_constraint(table, wanted, catalog, fresh=fresh)


def _same(updates: Updates) -> Updates:
    return updates


def _not_null(column: ColumnModel) -> ColumnModel:
    """The column with NOT NULL. Its past may have NULLs."""
    return column.model_copy(update={"not_null": True, "own_not_null": True,
                                     "had_nulls": column.had_nulls or not column.not_null})  # fmt: skip


def _keyed(table: Table, wanted: Constraint) -> Table:
    """The table with a PRIMARY KEY."""
    known = [column.name for column in table.columns]
    if table.primary_key:
        raise UnsupportedSQL(f"multiple primary keys for table {table.name} are not allowed", code="42P16")
    for name in wanted.columns:
        if name not in known:
            raise UnknownName(f"column of {table.name}", name, known)
        if next(column for column in table.columns if column.name == name).generated is not None:
            raise UnsupportedSQL(f"the generated column {name} cannot be a PRIMARY KEY")
    check_key(wanted, table.columns)
    if wanted.name in constraint_names(table):
        raise UnsupportedSQL(f"constraint {wanted.name} for {table.name} already exists", code="42710")
    return table.model_copy(update={
        "primary_key": wanted.columns, "key_name": wanted.name or "",
        "columns": tuple(_not_null(one) if one.name in wanted.columns else one for one in table.columns),
    })  # fmt: skip


def _of_each_row(column: ColumnModel) -> bool:
    """Whether a new column may have another value for each row that is there."""
    default = column.default or (column.domain and column.domain.default) or ""
    return bool(column.sequence) or any(word in default.lower() for word in ("random", "uuid", "nextval"))


def _with_column(state: State, table: Table, action: AlterAction) -> tuple[Table, Rows]:
    given, catalog = action.column, state.catalog
    assert given is not None
    if given.name in {column.name for column in table.columns}:
        raise Conflict(f"column {given.name} of {table.name} already exists", name=given.name, code="42701")
    if given.name.lower() in ("__time", "__diff"):
        raise UnsupportedSQL(f"{given.name} is the name of an update's own column", remedy="choose another name")
    refuse_sinks(catalog, table.name)
    column = column_of(table.name, given, catalog)
    made = table.model_copy(update={"columns": (*table.columns, column)})
    check_columns(made, catalog)
    default = column.default or (column.domain and column.domain.default)
    sequence = column.sequence or (sequence_of_default(default, column.name) if default else "")
    value: Expr = Literal(None, column.type)
    if default and not sequence:
        value = bind_default(default, column.type, catalog, catalog.system())
    drawn = any(isinstance(one, Call) and one.function in CHANCE for one in walk(value))
    if (sequence or drawn) and len(state.pending.get(table.name, ())):
        what = "an identity" if column.sequence else "a DEFAULT of another value for each row"
        raise UnsupportedSQL(f"ADD COLUMN with {what} is not supported in a transaction that has changed the rows",
                             remedy="COMMIT first")  # fmt: skip
    scalar = compile(functions.cast(value, column.type))

    def rows(updates: Updates) -> Updates:
        if drawn:  # a row has one value, when it comes and when it goes
            updates, counted = numbered(updates, column.name, Sequence(name="rows", next=1), state.upper, pa.int64())
            singles = Updates({}, constant(0, counted.next), constant(1, counted.next))
            each = values(table, scalar, singles).take(updates.columns[column.name])
        else:
            each = values(table, scalar, updates)
        return with_generated(made, updates.with_columns({column.name: each.cast(arrow_type(column.type))}))

    def numbers(updates: Updates) -> Updates:
        new = catalog.sequences[sequence]
        found, catalog.sequences[new.name] = numbered(updates, column.name, new, state.upper, arrow_type(column.type))
        return with_generated(made, found)

    for one in action.beside:
        made = _constrained(catalog, made, one, fresh=False)
    add_sequences(catalog, made, [given])
    return made, numbers if sequence else rows


def _without(catalog: Catalog, table: Table, column: ColumnModel) -> tuple[Table, Rows]:
    """The table without a column, and without the constraints and indexes on it."""
    name = column.name
    refuse_sinks(catalog, table.name)
    if any(name in one.columns for one in _referred(catalog, table)):
        raise UnsupportedSQL(f"a foreign key refers to column {name}", remedy="write CASCADE", code="2BP01")
    _refuse_generated(table, name)
    if len(table.columns) == 1:
        raise UnsupportedSQL("a table needs columns", remedy="DROP TABLE", code="42P16")
    for index in list(catalog.indexes.values()):
        if index.collection == table.name and name in columns_of_index(index):
            catalog.remove(index)
    made = table.model_copy(update={
        "columns": tuple(one for one in table.columns if one.name != name),
        "primary_key": () if name in table.primary_key else table.primary_key,
        "key_name": "" if name in table.primary_key else table.key_name,
        "unique": tuple(one for one in table.unique if name not in one.columns),
        "foreign_keys": tuple(one for one in table.foreign_keys if name not in one.columns),
        "checks": tuple(one for one in table.checks if name not in names_read(one.text)),
    })  # fmt: skip
    for one in [one for one in catalog.sequences.values() if (one.owner, one.column) == (table.name, name)]:
        del catalog.sequences[one.name]
    if column.sequence:
        del catalog.sequences[column.sequence]
    return made, lambda updates: updates.select([one.name for one in made.columns])


def _drop_readers(state: State, table: Table, name: str, gone: list[str]) -> Table:
    """Drop what reads a column: views, generated columns, CHECKs, and foreign keys that refer to it."""
    catalog = state.catalog
    views = readers_of_column(catalog, table, name)
    for view in reversed(views):
        if sinks := [sink.name for sink in catalog.sinks.values() if sink.collection == view.name]:
            raise Conflict(f"{view.name} is read by sink {sinks[0]}", remedy="drop it first", name=view.name,
                           holder=sinks[0], code="2BP01")  # fmt: skip
        drop_view(state, view)
    gone += [f"{kind_of(view)} {view.name}" for view in views]
    for key in table.keys.values():
        if name in key:
            _drop_references(state, table, sorted(key), gone)
    table = catalog.tables[table.name]
    for column in table.columns:
        if column.name != name and column.generated is not None and name in names_read(column.generated):
            made, rows = _without(catalog, catalog.tables[table.name], column)
            put(state, catalog.tables[table.name], made, rows)
            gone.append(f"column {column.name} of table {table.name}")
    table = catalog.tables[table.name]
    return table.model_copy(update={"checks": tuple(one for one in table.checks if name not in names_read(one.text))})


def _without_constraint(state: State, table: Table, action: AlterAction, gone: list[str]) -> Table:
    catalog, name = state.catalog, action.name
    if name not in constraint_names(table):
        if action.lenient:
            return table
        raise UnknownName(f"constraint of {table.name}", name, constraint_names(table))
    key = sorted(table.keys.get(name, ()))
    others = [sorted(columns) for other, columns in table.keys.items() if other != name]
    if key not in others and key in [sorted(one.references) for one in _referring(catalog, table)]:
        if not action.cascade:
            raise Conflict(f"a foreign key refers to {name}", remedy="drop that first, or write CASCADE", name=name,
                           code="2BP01")  # fmt: skip
        _drop_references(state, table, key, gone)
        table = catalog.tables[table.name]
    if name not in {one.name for one in (*table.unique, *table.checks, *table.foreign_keys)}:
        return table.model_copy(update={"primary_key": (), "key_name": "", "key_comment": ""})
    return table.model_copy(update={
        kind: tuple(one for one in getattr(table, kind) if one.name != name)
        for kind in ("unique", "checks", "foreign_keys")
    })  # fmt: skip


def _with_constraint_named(table: Table, name: str, to: str) -> Table:
    """The table with another name for a constraint."""
    names = constraint_names(table)
    if name not in names:
        raise UnknownName(f"constraint of {table.name}", name, names)
    if to in names:
        raise UnsupportedSQL(f"constraint {to} for {table.name} already exists", code="42710")
    update: dict[str, object] = {
        kind: tuple(one.model_copy(update={"name": to}) if one.name == name else one for one in getattr(table, kind))
        for kind in ("unique", "checks", "foreign_keys")
    }  # fmt: skip
    if name not in {one.name for one in (*table.unique, *table.checks, *table.foreign_keys)}:
        update["key_name"] = to
    return table.model_copy(update=update)


def _validated(table: Table, name: str) -> Table:
    """The table with a constraint that is no longer NOT VALID."""
    if name not in constraint_names(table):
        raise UnknownName(f"constraint of {table.name}", name, constraint_names(table))
    if name not in {one.name for one in (*table.checks, *table.foreign_keys)}:
        raise UnsupportedSQL(f"constraint {name} of {table.name} is not a foreign key or check constraint",
                             remedy="it always holds", code="42809")  # fmt: skip
    return table.model_copy(update={
        kind: tuple(one.model_copy(update={"valid": True}) if one.name == name else one for one in getattr(table, kind))
        for kind in ("checks", "foreign_keys")
    })  # fmt: skip


def _drop_references(state: State, table: Table, key: list[str], gone: list[str]) -> None:
    """Drop the foreign keys that refer to a key of a table."""
    for other in list(state.catalog.tables.values()):
        kept = tuple(one for one in other.foreign_keys if one.table != table.name or sorted(one.references) != key)
        if len(kept) < len(other.foreign_keys):
            gone += [told_key(other, one) for one in other.foreign_keys if one not in kept]
            put(state, other, other.model_copy(update={"foreign_keys": kept}), None)


def told_key(table: Table, key: ForeignKey) -> str:
    """What a foreign key is called among the things that are dropped."""
    return f"constraint {key.name} on table {table.name}"


def _refuse_generated(table: Table, column: str) -> None:
    """Refuse to drop a column that a generated column names.

    Raises:
        UnsupportedSQL: one does.
    """
    for one in table.columns:
        if one.generated is not None and one.name != column and column in names_read(one.generated):
            raise UnsupportedSQL(f"{one.name} reads the column {column}", remedy="drop it first", code="2BP01")


def _with(table: Table, column: ColumnModel) -> Table:
    columns = tuple(column if one.name == column.name else one for one in table.columns)
    return table.model_copy(update={"columns": columns})


def _referring(catalog: Catalog, table: Table) -> list[ForeignKey]:
    """The foreign keys that refer to a table."""
    return [key for other in catalog.tables.values() for key in other.foreign_keys if key.table == table.name]


def _referred(catalog: Catalog, table: Table) -> list[ForeignKey]:
    """As `_referring`, with the columns of this table."""
    return [key.model_copy(update={"columns": key.references}) for key in _referring(catalog, table)]

"""CREATE TABLE: the columns, constraints and defaults of a new table, checked, with the names of PostgreSQL."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from halfjoin.catalog.catalog import Catalog
from halfjoin.catalog.models import Check, ColumnModel, ForeignKey, Table, Unique
from halfjoin.engine.scalar.arrow_types import arrow_type
from halfjoin.engine.statements.creating import identifier
from halfjoin.engine.statements.sequence_options import new_sequence
from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.bind.bind import bind_columns
from halfjoin.sql.bind.constraints import bind_check, bind_default, bind_generated, casting, names_read
from halfjoin.sql.bind.named_types import resolved
from halfjoin.sql.definitions import ColumnDef, Constraint, CreateTable, CreateTableAs, Identity, Like
from halfjoin.sql.named import SequenceOptions
from halfjoin.sql.parse.renaming import renamed
from halfjoin.sql.prepared import Execute
from halfjoin.sql.types import INTEGERS, Kind, SqlType, has_rows, innermost, looks_vary


def table_of(statement: CreateTable, catalog: Catalog) -> Table:
    """The table of CREATE TABLE.

    Raises:
        UnsupportedSQL, UnknownName: an expression or a constraint of it is not valid.
    """
    check_schema(statement.name, catalog)
    statement = with_likes(statement, catalog)
    columns, constraints = statement.columns, statement.constraints
    names = [column.name for column in columns]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UnsupportedSQL(f"column {twice[0]} is named twice", code="42701")
    key = next((one for one in constraints if one.kind == "primary key"), None)
    made = Table(
        name=statement.name,
        columns=tuple(column_of(statement.name, column, catalog, key is not None and column.name in key.columns)
                      for column in columns),
        primary_key=() if key is None else key.columns, key_name=(key and key.name) or "",
        retain=statement.retain, id=uuid.uuid4().hex, ended=statement.ended,
    )  # fmt: skip
    if key is not None:
        check_key(key, made.columns)
    check_columns(made, catalog)
    for one in constraints:
        if one.kind != "primary key" and not _repeats(made, one):
            made = with_constraint(made, one, catalog, fresh=True)
    return made


def _repeats(table: Table, wanted: Constraint) -> bool:
    """Whether CREATE TABLE names a key twice, which is one key. One that ALTER TABLE adds is another, and stays when
    the first is dropped."""
    return wanted.kind == "unique" and wanted.name is None and wanted.columns in table.keys.values()


def with_likes(statement: CreateTable, catalog: Catalog) -> CreateTable:
    """The statement with what its LIKE clauses stand for.

    Raises:
        UnknownName: there is no such table or view.
    """
    columns, constraints = list(statement.columns), list(statement.constraints)
    for like in reversed(statement.likes):
        there, found = _liked(catalog, like, statement.name)
        columns[like.place : like.place] = there
        constraints += found
    return replace(statement, columns=tuple(columns), constraints=tuple(constraints), likes=())


def columns_of_query(statement: CreateTableAs, catalog: Catalog, text: str) -> CreateTable:
    """CREATE TABLE with the columns of a query."""
    assert not isinstance(statement.query, Execute)  # whoever calls this has put its query there
    columns = bind_columns(statement.query, catalog, text)
    if len(statement.names) > len(columns):
        raise UnsupportedSQL(f"{len(statement.names)} names for {len(columns)} columns", code="42601")
    names = [*statement.names, *(column.name for column in columns[len(statement.names):])]
    for name, column in zip(names, columns, strict=True):
        if innermost(column.type).kind is Kind.RECORD and not innermost(column.type).named:
            raise UnsupportedSQL(f'column "{name}" has pseudo-type {column.type}', code="42P16", wrong=True,
                                 remedy="CREATE TYPE pair AS (a integer, b text), and cast to it: ROW(1, 'x')::pair")
    made = tuple(ColumnDef(name, column.type) for name, column in zip(names, columns, strict=True))
    return CreateTable(statement.name, made, (), statement.retain, statement.if_not_exists, ended=statement.ended)


def check_columns(table: Table, catalog: Catalog, *, retyped: str | None = None) -> None:
    """Check the expressions of DEFAULT and GENERATED. `retyped`: the column that gets another type, and keeps its
    DEFAULT, which the statement does not show.

    Raises:
        UnsupportedSQL, UnknownName: one is not valid.
    """
    plain = [column.column for column in table.columns if column.generated is None]
    known, catalog = Catalog.knowing(table), catalog.copy()
    catalog.numbers = dict(catalog.numbers)  # a check gives out no numbers
    for column in table.columns:
        if column.default is not None:
            named = casting(f"default for column {column.name}", column.type,
                            f"write ALTER COLUMN {column.name} DROP DEFAULT first")  # fmt: skip
            with named if column.name == retyped else nullcontext():
                bind_default(column.default, column.type, catalog, catalog.system())
        if column.generated is not None:
            if column.default is not None or column.name in table.primary_key:
                raise UnsupportedSQL(f"the generated column {column.name} cannot have a DEFAULT or be a PRIMARY KEY")
            bind_generated(column.generated, plain, column.type, known, table.name)


def with_constraint(table: Table, wanted: Constraint, catalog: Catalog, *, fresh: bool) -> Table:
    """The table with one more UNIQUE, CHECK or FOREIGN KEY. `fresh`: it never had a row.

    Raises:
        UnsupportedSQL, UnknownName: it is not valid.
    """
    known = [column.name for column in table.columns]
    for name in wanted.columns:
        if name not in known:
            raise UnknownName(f"column of {table.name}", name, known)
    ending = {"unique": "key", "check": "check", "foreign key": "fkey"}[wanted.kind]
    named = wanted.columns
    if wanted.kind == "check" and not named:
        named = tuple(found) if len(found := names_read(wanted.text)) == 1 else ()
    name = wanted.name or _free([table.own_name, *named, ending], constraint_names(table))
    if wanted.name in constraint_names(table):
        raise UnsupportedSQL(f"constraint {name} for {table.name} already exists", code="42710")
    match wanted.kind:
        case "unique":
            check_key(wanted, table.columns)
            one = Unique(name=name, columns=wanted.columns, index=wanted.index, lasting=fresh)
            return table.model_copy(update={"unique": (*table.unique, one)})
        case "check":
            bind_check(wanted.text, [column.column for column in table.columns], Catalog.knowing(table), table.name)
            check = Check(name=name, text=wanted.text, valid=wanted.valid)
            return table.model_copy(update={"checks": (*table.checks, check)})
        case _:
            parent = table if wanted.table == table.name else catalog.table(wanted.table)
            made = _foreign_key(table, parent, wanted, name)
            return table.model_copy(update={"foreign_keys": (*table.foreign_keys, made),
                                            "referenced": table.referenced or parent is table})  # fmt: skip


def check_key(key: Constraint, columns: Iterable[ColumnModel]) -> None:
    """Refuse a column that appears twice in a key, and a type of which equal values look different."""
    if len(set(key.columns)) < len(key.columns):
        raise UnsupportedSQL(f"a column appears twice in {key.kind.upper()} ({', '.join(key.columns)})", code="42701")
    for column in columns:
        if column.name in key.columns and innermost(column.type).kind is Kind.JSON:
            raise UnsupportedSQL('data type json has no default operator class for access method "btree"', code="42704",
                                 remedy="take another column as the key, or a jsonb")
        if column.name in key.columns and has_rows(column.type):
            raise UnsupportedSQL(f"{key.kind.upper()} of {column.name}, which holds rows, is not supported", remedy=
                                 f"make its fields columns: k integer GENERATED ALWAYS AS (({column.name}).a) STORED")
        if column.name in key.columns and looks_vary(column.type):
            raise UnsupportedSQL(f"{key.kind.upper()} of {column.name}, which is {column.type}: equal intervals can "
                                 "look different", remedy="take another column as the key")  # fmt: skip


def constraint_names(table: Table) -> list[str]:
    """The names of all constraints of a table."""
    return [*table.keys, *(one.name for one in (*table.checks, *table.foreign_keys))]


def refer(catalog: Catalog, table: Table) -> None:
    """Mark the tables that foreign keys of a table refer to."""
    for key in table.foreign_keys:
        parent = catalog.tables[key.table]
        if not parent.referenced:
            catalog.tables[key.table] = parent.model_copy(update={"referenced": True})


def _foreign_key(table: Table, parent: Table, wanted: Constraint, name: str) -> ForeignKey:
    references = wanted.references or parent.primary_key
    there = [column.name for column in parent.columns]
    if missing := [name for name in references if name not in there]:
        raise UnknownName("column", missing[0], there)
    if sorted(references) not in map(sorted, parent.keys.values()):
        raise UnsupportedSQL("there is no unique constraint matching given keys for referenced table "
                             f"{parent.name}", code="42830", remedy="name the columns of its PRIMARY KEY or UNIQUE")
    if len(references) != len(wanted.columns):
        raise UnsupportedSQL("number of referencing and referenced columns for foreign key disagree", code="42830")
    check_key_types(table, parent, wanted.columns, references)
    generated = [column.name for column in table.columns if column.generated is not None
                 and column.name in wanted.columns]  # fmt: skip
    for event, action in (("UPDATE", wanted.on_update), ("DELETE", wanted.on_delete)):
        if generated and action and (event, action) != ("DELETE", "cascade"):
            raise UnsupportedSQL(f"ON {event} {action.upper()} would set {generated[0]}, a generated column",
                                 remedy="leave it out", code="42601")  # fmt: skip
    return ForeignKey(name=name, columns=wanted.columns, table=parent.name, references=references,
                      on_delete=wanted.on_delete, on_update=wanted.on_update, deferred=wanted.deferred,
                      valid=wanted.valid)


def check_key_types(table: Table, parent: Table, columns: Sequence[str], references: Sequence[str]) -> None:
    """Refuse a foreign key whose columns are of other types than those that they refer to."""
    ours, theirs = ({column.name: column.type for column in one.columns} for one in (table, parent))
    for mine, other in zip(columns, references, strict=True):
        named = ours[mine].named != theirs[other].named
        whole = ours[mine].kind in INTEGERS and theirs[other].kind in INTEGERS
        if named or (not whole and arrow_type(ours[mine]) != arrow_type(theirs[other])):
            raise UnsupportedSQL(f"{table.name}.{mine} is {ours[mine]}, and {parent.name}.{other} is {theirs[other]}",
                                 remedy="give both columns one type", code="42804")  # fmt: skip


def column_of(table: str, column: ColumnDef, catalog: Catalog, in_key: bool = False) -> ColumnModel:
    """A new column, with the types and the domain that it names, and the name of the sequence of an identity.

    Raises:
        UnknownName: there is no type of that name.
    """
    domain = catalog.domain(column.type.named) if column.type.kind is Kind.NAMED else None
    own = column.not_null or in_key
    not_null = own or (domain is not None and domain.not_null)
    sequence = "" if column.identity is None else free_sequence(catalog, table, column.name, column.identity)
    return ColumnModel(name=column.name, type=resolved(column.type, catalog), not_null=not_null, own_not_null=own,
                       domain=domain, default=column.default, generated=column.generated, sequence=sequence,
                       always=column.identity is not None and column.identity.always,
                       serial=column.identity is not None and column.identity.serial)  # fmt: skip


def free_sequence(catalog: Catalog, table: str, column: str, identity: Identity) -> str:
    """The name of the sequence of a column.

    Raises:
        UnsupportedSQL: the statement gives it a name that is taken.
    """
    if (name := identity.sequence) in (*catalog.sequences, *catalog.names()):
        raise UnsupportedSQL(f"{name} exists already", remedy="leave out SEQUENCE NAME", code="42P07")
    if name:
        return name
    return _free([table, column, "seq"], [*catalog.sequences, *catalog.names()])


def add_sequences(catalog: Catalog, table: Table, columns: Iterable[ColumnDef]) -> None:
    """Enter the sequences of new columns."""
    names = {column.name: column.sequence for column in table.columns}
    for column in columns:
        if column.identity is not None:
            name = names[column.name]
            catalog.sequences[name] = new_sequence(catalog, name, column.identity.options, table.name)


def check_schema(name: str, catalog: Catalog) -> None:
    """Check that the schema of a new name exists.

    Raises:
        UnknownName: it does not. UnsupportedSQL: it is that of temporary things, for what cannot be one.
    """
    schema, dot, _ = name.partition(".")
    if schema == "pg_temp" and schema not in catalog.schemas:
        raise UnsupportedSQL("a temporary type or domain is not supported: columns of tables that stay may have it",
                             remedy=f"create it without pg_temp, and DROP TYPE {name.partition('.')[2]} at the end")
    if dot and schema not in catalog.schemas:
        raise UnknownName("schema", schema, ["public", *catalog.schemas], code="3F000")


def _declared(column: ColumnModel) -> SqlType:
    return column.type if column.domain is None else SqlType(Kind.NAMED, named=column.domain.name)


def _liked(catalog: Catalog, like: Like, name: str) -> tuple[list[ColumnDef], list[Constraint]]:
    """The columns of another table or view, and those of its constraints that are included, for the table `name`."""
    source = catalog.tables.get(like.table) or catalog.views.get(like.table)
    if source is None:
        raise UnknownName("table or view", like.table, catalog.names())
    tables = {like.table.rpartition(".")[2]: identifier(name.rpartition(".")[2])}
    found = [ColumnDef(column.name, _declared(column), column.not_null and column.own_not_null is not False,
                       column.default if "defaults" in like.including else None,
                       renamed(column.generated, {}, tables) if column.generated and "generated" in like.including
                       else None, _numbered_alike(catalog, like, column)) for column in source.columns]  # fmt: skip
    constraints: list[Constraint] = []
    if isinstance(source, Table) and "constraints" in like.including:
        constraints += [Constraint("check", one.name, (), renamed(one.text, {}, tables)) for one in source.checks]
    if isinstance(source, Table) and "indexes" in like.including:
        if source.primary_key:
            constraints.append(Constraint("primary key", None, source.primary_key))
        constraints += [Constraint("unique", None, one.columns) for one in source.unique]
    return [replace(one) for one in found], constraints


def _numbered_alike(catalog: Catalog, like: Like, column: ColumnModel) -> Identity | None:
    """The identity of a column, with a sequence of its own. That of a serial is a default of PostgreSQL's."""
    one = catalog.sequences.get(column.sequence)
    if one is None or not ("identity" in like.including or ("defaults" in like.including and not column.always)):
        return None
    options = SequenceOptions(one.start, one.step, one.least, one.most, one.cycle, one.type)
    return Identity(column.always, options, column.serial)


def _free(words: Iterable[str], taken: list[str]) -> str:
    """A name of these words that is not taken, numbered as PostgreSQL numbers it."""
    base = "_".join(words)
    return next(name for name in (base, *(f"{base}{n}" for n in range(1, len(taken) + 2))) if name not in taken)

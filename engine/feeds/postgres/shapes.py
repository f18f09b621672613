"""What the server says of its tables, and the tables of the engine that they become.

A table keeps its columns, NOT NULL, and as PRIMARY KEY the columns that identify a row in the log. A table that is
there already may have other types, as long as the values fit, and further columns.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from halfjoin.catalog.models import Table
from halfjoin.engine.feeds.postgres.server import PostgresOptions, Server
from halfjoin.engine.feeds.postgres.slot import ANEW, refuse_taken
from halfjoin.engine.feeds.postgres.wire import Relation
from halfjoin.engine.feeds.source import Definition
from halfjoin.errors import Conflict, UnknownName, UnsupportedSQL
from halfjoin.sql.definitions import CreateTable, OptionValue
from halfjoin.sql.parse.parse import parse
from halfjoin.sql.types import Kind, innermost

_VARCHAR = 1043  # the oid of varchar, whose length may grow without a change of values
Types = Mapping[str, tuple[int, int]]  # by column: the oid of its type, and its length or digits in the server's code

_TABLES = """
SELECT c.oid::int8, n.nspname, c.relname, c.relkind, c.relreplident,
       ARRAY(SELECT a.attname::text FROM pg_index i, unnest(i.indkey::int2[]) WITH ORDINALITY k(number, place)
             JOIN pg_attribute a ON a.attnum = k.number
             WHERE i.indrelid = c.oid AND a.attrelid = c.oid AND k.place <= i.indnkeyatts
               AND CASE WHEN c.relreplident = 'i' THEN i.indisreplident ELSE i.indisprimary END ORDER BY k.place)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = ANY(%s)
"""
# A domain stands for the type below it.
_COLUMNS = """
SELECT a.attname, a.attnum, a.atttypid::int8, a.atttypmod, format_type(b.oid, b.modifier), a.attnotnull OR b.not_null,
       e.typname, ARRAY(SELECT enumlabel::text FROM pg_enum WHERE enumtypid = e.oid ORDER BY enumsortorder)
FROM pg_attribute a
CROSS JOIN LATERAL (
    WITH RECURSIVE below(oid, modifier, kind, base, base_modifier, not_null) AS (
        SELECT t.oid, a.atttypmod, t.typtype, t.typbasetype, t.typtypmod, t.typnotnull
        FROM pg_type t WHERE t.oid = a.atttypid
        UNION ALL
        SELECT t.oid, below.base_modifier, t.typtype, t.typbasetype, t.typtypmod, below.not_null OR t.typnotnull
        FROM below JOIN pg_type t ON t.oid = below.base WHERE below.kind = 'd'
    ) SELECT oid, modifier, not_null FROM below WHERE kind <> 'd') b
JOIN pg_type t ON t.oid = b.oid
LEFT JOIN pg_type e ON e.oid = CASE WHEN t.typelem <> 0 AND t.typlen = -1 THEN t.typelem ELSE t.oid END
                   AND e.typtype = 'e'
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' ORDER BY a.attnum
"""


@dataclass(frozen=True, slots=True)
class ServerColumn:
    """A column of the server's. `number` is another one once it is dropped and added again. `text` is its type as SQL
    writes it; `enum`: the name of an enum, with `labels`."""

    name: str
    number: int
    type: int
    modifier: int
    text: str
    not_null: bool
    enum: str | None
    labels: tuple[str, ...]


class Origin(BaseModel):
    """What a table of the server's was when its rows were taken: names alone do not tell it from one made anew.

    Attributes:
        number: its oid.
        where: the rows that are published; None: all.
        columns: the numbers of its columns, by their names.
    """

    model_config = ConfigDict(frozen=True)

    number: int
    where: str | None = None
    columns: dict[str, int] = {}


@dataclass(frozen=True, slots=True)
class Shape:
    """A table of the server's that is published. `number` is its oid; `key` identifies a row in the log; `where`: the
    rows that are published, None: all; `parted`: it has partitions."""

    number: int
    schema: str
    name: str
    key: tuple[str, ...]
    identity: str
    columns: tuple[ServerColumn, ...]
    where: str | None
    parted: bool

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def types(self) -> Types:
        """The types of the columns."""
        return {column.name: (column.type, column.modifier) for column in self.columns}

    @property
    def origin(self) -> Origin:
        """What the table is."""
        return Origin(number=self.number, where=self.where, columns={one.name: one.number for one in self.columns})


def definitions(
    options: PostgresOptions, into: Sequence[str]
) -> tuple[Sequence[Definition], Sequence[str], Mapping[str, OptionValue]]:
    """What CREATE SOURCE makes, the tables' names, and the server's as an option, as ours may be renamed; see
    `engine.feeds.source.Kind.tables`. Checks the server.

    Raises:
        Conflict, UnknownName: the server lacks something.
    """
    server = Server(options)
    try:
        server.check()
        refuse_taken(server)
        found = shapes(server, into)
    finally:
        server.close()
    names = tuple(into) or tuple(shape.name for shape in found)
    if len(names) != len(found):
        raise Conflict(f"INTO has {len(names)} tables, and the server's are {', '.join(map(str, found))}",
                       remedy="name one table after INTO for each, in their order, or write INTO TABLES")  # fmt: skip
    if len(set(names)) < len(names):
        raise Conflict("two of the server's tables would be one table", remedy="name a table for each after INTO",
                       name=next(name for name in names if names.count(name) > 1))  # fmt: skip
    types = {column.enum: column for shape in found for column in shape.columns if column.enum is not None}
    made = [Definition(name, f"CREATE TYPE {quoted(name)} AS ENUM ({', '.join(map(_literal, column.labels))})")
            for name, column in types.items()]  # fmt: skip
    made += [_definition(name, one) for name, one in zip(names, found, strict=True)]
    return made, names, {"tables": tuple(f"{quoted(one.schema)}.{quoted(one.name)}" for one in found)}


def shapes(server: Server, into: Sequence[str]) -> list[Shape]:
    """The tables that the source follows, in their order: those that its options name; or else those of the publication
    that have the names `into`; or else all of it.

    Raises:
        UnknownName: the server has no such table. Conflict: the publication does not have it.
    """
    publication, fine = server.options.publication, server.connection.info.server_version >= 150000
    published = {
        (schema, name): (attributes, where) for schema, name, attributes, where in server.rows(
            f"SELECT schemaname, tablename, {'attnames::text[], rowfilter' if fine else 'NULL, NULL'} "
            "FROM pg_publication_tables WHERE pubname = %s ORDER BY 1, 2", [publication],
        )
    }  # fmt: skip
    known = [f"{schema}.{name}" for schema, name in published]
    numbers = []
    for text in server.options.names:
        number = server.one("SELECT to_regclass(%s)::oid::int8", [text if "." in text else f"public.{text}"])
        if number is None:
            raise UnknownName("table of the server", text, known)
        numbers.append(number)
    if not server.options.names:
        for name in into:
            if name not in {one for _, one in published}:
                raise UnknownName(f"table of the publication {publication}", name, known)
        numbers = [server.one("SELECT format('%%I.%%I', %s::text, %s::text)::regclass::oid::int8", pair)
                   for name in into or [one for _, one in published] for pair in published if pair[1] == name]
    rows = {row[0]: row for row in server.rows(_TABLES, [numbers])}
    return [_shape(server, rows[number], published) for number in numbers]


def _shape(server: Server, row: tuple[int, str, str, str, str, list[str]],
           published: Mapping[tuple[str, str], tuple[list[str] | None, str | None]]) -> Shape:  # fmt: skip
    number, schema, name, kind, identity, key = row
    if (schema, name) not in published:
        publication = server.options.publication
        remedy = f"run ALTER PUBLICATION {publication} ADD TABLE {schema}.{name} on the server"
        if kind == "p":
            remedy += f", and ALTER PUBLICATION {publication} SET (publish_via_partition_root = true)"
        raise Conflict(f"the publication {publication} does not have the table {schema}.{name}", remedy=remedy,
                       name=publication)  # fmt: skip
    attributes, where = published[schema, name]
    columns = tuple(
        ServerColumn(column, place, type, modifier, text, not_null, enum, tuple(labels))
        for column, place, type, modifier, text, not_null, enum, labels in server.rows(_COLUMNS, [number])
        if attributes is None or column in attributes
    )
    return Shape(number, schema, name, tuple(key), identity, columns, where, kind == "p")


def _definition(name: str, shape: Shape) -> Definition:
    """What makes a table for one of the server's. A table that is there may have other types than the engine has."""
    try:
        return Definition(name, _table(name, shape))
    except UnsupportedSQL as problem:
        return Definition(name, "", problem)


def _table(name: str, shape: Shape) -> str:
    """CREATE TABLE for a table of the server's.

    Raises:
        UnsupportedSQL: names each column whose type the engine does not have.
    """
    bad, parts = [], []
    for column in shape.columns:
        try:
            text = _type(column)
        except UnsupportedSQL as problem:
            bad.append(f"{column.name} ({problem.reason})")
        else:
            parts.append(f"{quoted(column.name)} {text}{' NOT NULL' if column.not_null else ''}")
    if bad:
        raise UnsupportedSQL(f"columns of {shape} have types that no column of a table has: {'; '.join(bad)}",
                             remedy="make the table before the source, with text or another type for these columns, or "
                                    f"leave them out: ALTER PUBLICATION ... SET TABLE {shape} (columns)")  # fmt: skip
    if shape.key:
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, shape.key))})")
    return f"CREATE TABLE {quoted(name)} ({', '.join(parts)})"


def _type(column: ServerColumn) -> str:
    if column.enum is not None:
        return quoted(column.enum) + ("[]" if column.text.endswith("[]") else "")
    (made,) = parse(f"CREATE TABLE t (c {column.text})")
    assert isinstance(made, CreateTable)
    kind = made.columns[0].type
    if innermost(kind).kind is Kind.NAMED:
        raise UnsupportedSQL(f"type {column.text} is not supported")
    return str(kind)


def refuse_misfit(shape: Shape, table: Table) -> None:
    """Refuse a table that cannot hold the rows of the server's.

    Raises:
        Conflict: columns or the key do not match.
    """
    mine = {column.name for column in table.columns}
    missing = [column for column in shape.columns if column.name not in mine]
    if missing:
        raise new_column(table.name, str(shape), missing[0].name, missing[0].text)
    if table.primary_key and set(table.primary_key) != set(shape.key):
        raise Conflict(f"the PRIMARY KEY of {table.name} is ({', '.join(table.primary_key)}), but rows of {shape} are "
                       f"identified by ({', '.join(shape.key)})", remedy="make the table with that key",
                       name=table.name)  # fmt: skip


def misfit(server: Server, relation: Relation, table: Table, types: Types) -> Conflict | None:
    """Why rows of a relation, as the log describes it now, cannot go on into the table; None if they can.

    `types`: those that the columns had so far. Columns that the table got meanwhile are NULL in rows from before.
    """
    name, columns = f"{relation.schema}.{relation.name}", {one.name: one for one in relation.columns}
    mine = {column.name for column in table.columns}
    for column in relation.columns:
        if column.name not in mine:
            text = server.one("SELECT format_type(%s::int8::oid, %s)", [column.type, column.modifier])
            return new_column(table.name, name, column.name, str(text))
        before = types.get(column.name)
        grown = column.type == _VARCHAR and before is not None and before[0] == _VARCHAR and (
            column.modifier == -1 or -1 < before[1] <= column.modifier)  # fmt: skip
        if before not in (None, (column.type, column.modifier)) and not grown:
            return Conflict(f"the type of {name}.{column.name} was changed, and the log does not say what that made of "
                            "the rows", remedy=ANEW, name=table.name)  # fmt: skip
    for gone in types:
        if gone not in columns and gone in mine:
            alter = f"ALTER TABLE {quoted(table.name)}"
            return Conflict(f"{name} has lost the column {gone}: it was dropped or renamed",
                            remedy=f"run {alter} DROP COLUMN {quoted(gone)}, or {alter} RENAME COLUMN, and ALTER "
                                   "SOURCE ... RESUME", name=table.name)  # fmt: skip
    key = [column.name for column in relation.columns if column.key]
    told = relation.identity == "d" or (relation.identity == "i" and bool(key))  # others do not tell the key
    return other_key(name, key, table) if told else None


def other_key(source: str, key: Collection[str], table: Table) -> Conflict | None:
    """The error if another key than the table's identifies rows of the server's; None if it does not."""
    if not table.primary_key or set(key) == set(table.primary_key):
        return None
    now = f"identified by ({', '.join(key)}) now" if key else "not identified by a key any more"
    return Conflict(f"rows of {source} are {now}, and {table.name} has the PRIMARY KEY "
                    f"({', '.join(table.primary_key)})", remedy="set the table's key and REPLICA IDENTITY back, or "
                    "make the table and the source anew", name=table.name)  # fmt: skip


def other(shape: Shape, origin: Origin, table: Table) -> Conflict | None:
    """Why a table of the server's is not the one whose rows are here, although it has its name; None if it is."""
    if shape.number != origin.number:
        return made_anew(str(shape), table.name)
    if shape.where != origin.where:
        return Conflict(f"the publication has other rows of {shape} than when they were taken", remedy=ANEW,
                        name=table.name)  # fmt: skip
    for column in shape.columns:
        if origin.columns.get(column.name, column.number) != column.number:
            return Conflict(f"the column {column.name} of {shape} is another one of that name, and the log does not "
                            "say what its rows have in it", remedy=ANEW, name=table.name)  # fmt: skip
    return other_key(str(shape), shape.key, table)


def made_anew(source: str, table: str) -> Conflict:
    """The error of another table that has the name of the one that was followed."""
    return Conflict(f"{source} is another table than the one whose rows were taken: it was made anew, or renamed",
                    remedy=ANEW, name=table)  # fmt: skip


def new_column(table: str, source: str, name: str, text: str) -> Conflict:
    """The error of a column that the server's table has and the engine's does not."""
    return Conflict(f"{source} has a column {name}, and {table} does not",
                    remedy=f"run ALTER TABLE {quoted(table)} ADD COLUMN {quoted(name)} {text} (with the same DEFAULT, "
                           "if the server filled the rows with one), and ALTER SOURCE ... RESUME",
                    name=table)  # fmt: skip


def quoted(name: str) -> str:
    """A name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"

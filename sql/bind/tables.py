"""Finds the tables and views that a query reads."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnknownName
from halfjoin.sql.bind.scope import ANY
from halfjoin.sql.parse.locate import PUBLIC, catalog_name, name_of, place, schema_of
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.parse.type_names import sql_type
from halfjoin.sql.system import PG_CATALOG, SCHEMAS, SEQUENCE

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema


def names_of(query: exp.Query, schema: Schema, sql: str = "") -> set[str]:
    """All tables and views that a query reads, directly or through plain views.

    Raises:
        UnknownName: a name is not that of a table or view.
        UnsupportedSQL: a name has a schema.
    """
    names: set[str] = set()
    for table in references(query):
        if system_name(table, schema, sql) is not None:
            continue
        name = catalog_name(table, sql)
        if name not in schema.names():
            if sequence_name(name, schema) is not None:
                continue
            raise UnknownName("table or view", name, schema.names()).at(sql, *place(table, sql))
        if name not in names:
            names.add(name)
            text = schema.plain_view(name)
            if text is not None:
                names |= names_of(parse_query(text), schema, text)
    return names


def system_name(table: exp.Table, schema: Schema, sql: str) -> str | None:
    """The name of a table of PostgreSQL's catalog, with its schema; None if the name is not that of one. A table of the
    user's that has such a name comes first, unless the schema is named."""
    given, name = schema_of(table, sql), name_of(table)
    if given in SCHEMAS:
        return f"{given}.{name}"
    system = f"{PG_CATALOG}.{name}"
    if table.args.get("db") is not None or not name.startswith("pg_") or name in schema.names():
        return None
    found = schema.system()
    return system if found is not None and found.columns(system) is not None else None


def sequence_name(name: str, schema: Schema) -> str | None:
    """The table of the catalog with the one row of a sequence, for the sequence's name; None if there is none."""
    system, found = schema.system(), f"{SEQUENCE}{name}"
    return found if system is not None and system.columns(found) is not None else None


def tables_of(query: exp.Query, schema: Schema, sql: str = "") -> set[str]:
    """The tables and materialized views whose contents a query needs; raises the errors of `names_of`."""
    return {name for name in names_of(query, schema, sql) if schema.plain_view(name) is None}


def without_schema(text: str, name: str, taken: Collection[str] = ()) -> tuple[str, tuple[str, ...]]:
    """A query that names a table or view without its schema, and the names by which it does so. `taken`: names without
    a schema that mean something else.

    Where the text has the schema, the new name is one that the text has for nothing else. The alias stays. So it is
    where columns have schemas, as in `public.t.k`, so that these still tell tables of one name apart.

    >>> without_schema("SELECT t.k FROM public.t, t AS u", "t")
    ('SELECT t.k FROM "public.t" AS t, t AS u', ('public.t', 't'))
    """
    query = parse_query(text)
    tables = [table for table in references(query) if catalog_name(table, text) == name
              and (table.args.get("db") is not None or name_of(table) not in taken)]  # fmt: skip
    every = any(column.args.get("db") is not None for column in query.find_all(exp.Column))
    written = [table for table in tables if every or table.args.get("db") is not None]
    names = [name] if len(written) < len(tables) else []
    if written:
        new, taken = name if "." in name else f"{PUBLIC}.{name}", {one.name for one in query.find_all(exp.Identifier)}
        while new in taken:
            new += "_"
        names.insert(0, new)
        for table in sorted(written, key=lambda one: one.parts[0].meta["start"], reverse=True):
            start, end = table.parts[0].meta["start"], table.this.meta["end"] + 1
            own = text[table.this.meta["start"] : end]
            alias = "" if table.args.get("alias") or _is_query(table, text) else f" AS {own}"
            text = f'{text[:start]}"{new.replace(chr(34), chr(34) * 2)}"{alias}{text[end:]}'
    return text, tuple(names)


def schema_within(query: object, name: str, alias: str) -> str:
    """The schema of the table in whose place a view reads a query of WITH, since that was renamed: the one that
    `without_schema` has put into the name, or ANY. Nothing for other queries."""
    parts = {key for key, value in query.args.items() if value} if isinstance(query, exp.Select) else set()
    if not isinstance(query, exp.Select) or parts != {"expressions", "from_"}:
        return ""
    source = query.args["from_"].this
    if not isinstance(source, exp.Table) or source.args.get("db") is None or source.args.get("alias") is not None:
        return ""
    schema, _, table = name.partition(".")
    if not table:
        return ANY if name == alias else ""
    return schema if table.startswith(alias) and not table.removeprefix(alias).strip("_") else ""


def _is_query(table: exp.Table, text: str) -> bool:
    """Whether a table's name is the query `TABLE t`, which takes no alias."""
    before = text[: table.parts[0].meta["start"]].rstrip()
    return isinstance(table.parent, exp.From) and before[-5:].lower() == "table"


def types_of(query: exp.Query) -> set[str]:
    """The types of the user's that a query names."""
    named = (sql_type(node) for node in query.find_all(exp.DataType) if node.this is exp.DType.USERDEFINED)
    return {type.named for type in named}


def references(query: exp.Expr) -> Iterator[exp.Table]:
    """The tables that a query or a change names, except those that its WITH clauses define."""
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and (
            table.args.get("db") or _is_changed(table) or name_of(table) not in _common(table)):
            yield table


def _is_changed(table: exp.Table) -> bool:
    """Whether a table is the one that a statement changes, which no query of WITH is."""
    inside = table.parent if isinstance(table.parent, exp.Schema) else table
    return inside.arg_key == "this" and isinstance(inside.parent, (exp.Insert, exp.Update, exp.Delete, exp.Merge))


def _common(node: exp.Expr) -> set[str]:
    """The names of the WITH queries that are visible from a node."""
    names: set[str] = set()
    child, parent = node, node.parent
    while parent is not None:
        if isinstance(parent, exp.With):
            defined = [name_of(item.args["alias"].this) for item in parent.expressions]
            recursive = bool(parent.args.get("recursive"))
            names.update(defined if recursive else defined[: _position(child, parent)])
        elif clause := parent.args.get("with_"):
            names.update(name_of(item.args["alias"].this) for item in clause.expressions if child is not clause)
        child, parent = parent, parent.parent
    return names


def _position(item: exp.Expr, clause: exp.With) -> int:
    return next(position for position, other in enumerate(clause.expressions) if other is item)

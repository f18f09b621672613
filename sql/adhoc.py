"""Queries that are not maintained: which collections they read, and their text for DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from halfjoin.sql.dialect import Halfjoin
from halfjoin.sql.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.locate import name_of, place, refuse
from halfjoin.sql.output_names import output_name
from halfjoin.sql.parse import parse_query
from halfjoin.sql.table_functions import returns_rows
from halfjoin.sql.unmaintained import EXPRESSIONS

if TYPE_CHECKING:
    from halfjoin.catalog.facts import Schema

# What the connection must be set to for `to_duckdb`'s text to mean what it means in PostgreSQL.
SETTINGS = ("SET integer_division = true", "SET TimeZone = 'UTC'")


def names_of(query: exp.Query, schema: Schema, sql: str = "") -> set[str]:
    """All tables and views that a query reads, by itself or through plain views.

    Raises:
        UnknownName: there is no table or view of a name.
    """
    names: set[str] = set()
    for table in _references(query):
        name = name_of(table)
        if table.args.get("db"):
            raise refuse(table, sql, "there are no schemas", f"write {name}")
        if name not in schema.names():
            raise UnknownName("table or view", name, schema.names()).at(sql, *place(table, sql))
        if name not in names:
            names.add(name)
            text = schema.plain_view(name)
            if text is not None:
                names |= names_of(parse_query(text), schema, text)
    return names


def tables_of(query: exp.Query, schema: Schema, sql: str = "") -> set[str]:
    """The tables and materialized views whose contents a query needs; UnknownName as `names_of`."""
    return {name for name in names_of(query, schema, sql) if schema.plain_view(name) is None}


def to_duckdb(query: exp.Query, schema: Schema, sql: str = "") -> str:
    """The query as DuckDB's SQL, plain views inlined; DuckDB's `SETTINGS` must be made first.

    Raises:
        UnsupportedSQL: it uses what only maintenance gives a meaning to: mz_now(), weights, the user's functions; or
            it has parameters.
    """
    given = query.find(exp.Placeholder, exp.Parameter)
    if given is not None:
        raise refuse(given, sql, *EXPRESSIONS[type(given)])
    tree = _inlined(query.copy(), schema, sql)
    _name_outputs(tree)
    for node in list(tree.find_all(exp.Table)):
        _name_function_columns(node, schema)
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() == "regexp_split_to_table":  # DuckDB has it as a value only
            split = exp.Anonymous(this="string_split_regex", expressions=call.expressions)
            call.replace(exp.Anonymous(this="unnest", expressions=[split]))
    for clock in list(tree.find_all(exp.CurrentDate)):  # DuckDB takes the word for a column's name
        clock.replace(exp.Cast(this=exp.Anonymous(this="now"), to=exp.DataType.build("date")))
    for interval in list(tree.find_all(exp.Interval)):
        unit = f" {interval.args['unit'].name}" if interval.args.get("unit") else ""
        text = exp.Literal.string(interval.this.name + unit)
        interval.replace(exp.Cast(this=text, to=exp.DataType.build("interval")))
    return _translated(tree)


def _translated(tree: exp.Expr) -> str:
    """DuckDB's text, by way of the nodes that sqlglot translates between dialects."""
    try:
        plain = parse_one(tree.sql(Halfjoin), read="materialize")
        for type in plain.find_all(exp.DataType):
            if type.this is exp.DType.DECIMAL and not type.expressions:
                type.set("expressions", [exp.DataTypeParam(this=exp.Literal.number(size)) for size in (38, 10)])
        return str(plain.sql("duckdb"))
    except (SqlglotError, RecursionError) as error:
        raise UnsupportedSQL(f"the query cannot be translated: {str(error).partition(chr(10))[0]}") from None


def _references(query: exp.Expr) -> Iterator[exp.Table]:
    """The tables that a query names, those of its WITH clauses aside."""
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and (table.args.get("db") or name_of(table) not in _common(table)):
            yield table


def _common(node: exp.Expr) -> set[str]:
    """Names of the WITH queries that can be seen from a node."""
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


def _inlined(query: exp.Expr, schema: Schema, sql: str) -> exp.Expr:
    """The query with subqueries in place of plain views."""
    for call in query.find_all(exp.Anonymous):
        if call.name.lower() in ("mz_now", "repeat_row") or schema.table_function(call.name.lower()) is not None:
            raise refuse(call, sql, f"{call.name.lower()} is not supported in a query that no view could be",
                         "create a materialized view of that part, and query it")
    for table in list(_references(query)):
        name = name_of(table)
        text = schema.plain_view(name)
        if text is None:
            continue
        body = _inlined(parse_query(text), schema, text)
        hidden = {name_of(inner) for inner in _references(body)} & _common(table)
        if hidden:
            raise refuse(table, sql, f"the view {name} reads {min(hidden)}, which a WITH query here is called too",
                         "call the WITH query something else")
        alias = table.args.get("alias") or exp.TableAlias(this=table.this.copy())
        subquery = exp.Subquery(this=body, alias=alias)
        subquery.set("joins", table.args.get("joins"))
        table.replace(subquery)
    return query


def _name_outputs(query: exp.Expr) -> None:
    """Give the columns of the result the names that PostgreSQL gives them."""
    while isinstance(query, (exp.SetOperation, exp.Subquery)):
        query = query.this
    if isinstance(query, exp.Select):
        for node in query.expressions:
            if not isinstance(node, (exp.Alias, exp.Column)) and not node.is_star:
                name = output_name(node)
                node.replace(exp.Alias(this=node.copy(), alias=exp.to_identifier(name, quoted=True)))


def _name_function_columns(table: exp.Table, schema: Schema) -> None:
    """Give the column of a function in FROM the name PostgreSQL gives it: the alias, or else the function's name."""
    call = table.this
    if not isinstance(call, exp.Anonymous) or not returns_rows(call.name.lower(), schema):
        return
    alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(call.name.lower()))
    if not alias.args.get("columns"):
        alias.set("columns", [alias.this.copy()])
    if table.args.get("ordinality") and len(alias.args["columns"]) == 1:
        alias.append("columns", exp.to_identifier("ordinality"))
    table.set("alias", alias)

"""The place of a syntax node in its text, for errors that underline it; and names, folded as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlglot import ErrorLevel, exp

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.system import DATABASE, SCHEMAS

BARE_VALUES = "_values"  # the alias that sqlglot gives to VALUES without SELECT


def place(node: exp.Expr | None, sql: str) -> tuple[int | None, int | None]:
    """Line and column (from 1) of the node's first token, or else of the nearest enclosing node with a token."""
    while node is not None:
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        if starts and min(starts) < len(sql):
            return line_and_column(min(starts), sql)
        node = node.parent
    return None, None


def line_and_column(offset: int, sql: str) -> tuple[int, int]:
    """Line and column (from 1) of a character of the text."""
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def written(node: exp.Expr) -> str:
    """A node as SQL text, for messages only: it may contain syntax that PostgreSQL lacks."""
    return str(node.sql("halfjoin", unsupported_level=ErrorLevel.IGNORE))


def refuse(node: exp.Expr | None, sql: str, reason: str, instead: str | None = None) -> UnsupportedSQL:
    """The error to raise for a node, with the node's place."""
    line, column = place(node, sql)
    return UnsupportedSQL(reason, remedy=instead, sql=sql, line=line, column=column)


def name_of(node: exp.Expr | str) -> str:
    """A name: as written if quoted, else in lower case. For a table, column or definition, its last part."""
    if isinstance(node, str):
        return node.lower()
    if isinstance(node.this, exp.Identifier):
        return name_of(node.this)
    name: str = node.name
    return name if node.args.get("quoted") else name.lower()


def owner_of(column: exp.Column) -> tuple[str | None, str]:
    """The table that a column's name has before it, or None, and the table's schema, or nothing."""
    table, schema = column.args.get("table"), column.args.get("db")
    return table and name_of(table), name_of(schema) if schema else ""


PUBLIC = "public"


def schema_of(node: exp.Expr, sql: str) -> str:
    """The schema of a table's name: PUBLIC if it names none. UnsupportedSQL if it names another database."""
    database = node.args.get("catalog")
    if database is not None and name_of(database) != DATABASE:
        raise refuse(node, sql, f"there is one database, {DATABASE}", "write schema.name")
    given = node.args.get("db")
    return PUBLIC if given is None else name_of(given)


def catalog_name(node: exp.Expr, sql: str) -> str:
    """The name of a table, view, type, ... in the catalog: bare in PUBLIC, else with the schema: `s.t`.

    UnsupportedSQL if it is not a name, or one of information_schema.
    """
    if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
        raise refuse(node, sql, "expected the name of a table or view")
    schema = schema_of(node, sql)
    if schema in SCHEMAS:
        raise refuse(node, sql, f"{schema} cannot be changed")
    return name_of(node) if schema == PUBLIC else f"{schema}.{name_of(node)}"


def as_query(node: exp.Expr) -> Any:
    """Turn a bare VALUES into `SELECT * FROM (VALUES ...)`; other nodes stay."""
    if not isinstance(node, exp.Values):
        return node
    node.set("alias", exp.TableAlias(this=exp.to_identifier(BARE_VALUES)))
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=node))


def bare_values(node: exp.Expr) -> exp.Values | None:
    """The VALUES of a query that was written without SELECT, None for another query."""
    clause = node.args.get("from_") if isinstance(node, exp.Select) else None
    values = clause.this if clause is not None else None
    return values if isinstance(values, exp.Values) and values.alias == BARE_VALUES else None


# Clauses of other dialects: the words for them where the parser has other ones, and what to write instead.
_WORDS = {"PIVOTS": "PIVOT", "JOINS": "JOIN", "ALTERNATIVE": "OR", "DUPLICATE": "DUPLICATE KEY", "VERSION": "a version"}
_INSTEAD = {
    "PIVOTS": "write one aggregate for each column: sum(x) FILTER (WHERE k = 'a') AS a",
    "JOINS": "write UPDATE t SET ... FROM u WHERE ..., or DELETE FROM t USING u WHERE ...",
    "ALTERNATIVE": "write ON CONFLICT (key) DO UPDATE SET ..., or DO NOTHING",
    "DUPLICATE": "write ON CONFLICT (key) DO UPDATE SET x = excluded.x",
    "VERSION": "write SELECT ... FROM t AS OF time",
}


def only(node: exp.Expr, sql: str, what: str, allowed: Iterable[str]) -> None:
    """Refuse the node if it has a clause that is not in `allowed`, so that halfjoin never ignores part of a text."""
    for key, value in node.args.items():
        if value and key not in allowed:
            first = value[0] if isinstance(value, list) else value
            word = key.rstrip("_").replace("_", " ").upper()
            where = first if isinstance(first, exp.Expr) else node
            raise refuse(where, sql, f"{_WORDS.get(word, word)} is not supported in {what}",
                         _INSTEAD.get(word, "leave it out"))  # fmt: skip


def in_schema(name: str, schema: str) -> str:
    """The same name in another schema, as the catalog has it: those of public have none."""
    own = name.rpartition(".")[2]
    return own if schema == PUBLIC else f"{schema}.{own}"

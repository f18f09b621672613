"""FOR UPDATE and FOR SHARE wait for nobody: there is one writer, and the changes of a transaction are one batch. A
transaction that has them and changes something is refused if another batch changes the tables before COMMIT.

A query may have them where PostgreSQL allows them: where each row of the result is one row of each table.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from halfjoin.sql.bind.aggregates import is_aggregate
from halfjoin.sql.bind.context import Context
from halfjoin.sql.functions.table_functions import returns_rows
from halfjoin.sql.parse.locate import PUBLIC

GROUPING = (("distinct", "DISTINCT"), ("group", "GROUP BY"), ("having", "HAVING"))


def locked_in(query: exp.Query) -> frozenset[str]:
    """The tables that a query names, if it has FOR UPDATE or FOR SHARE somewhere; else none."""
    if query.find(exp.Lock) is None:
        return frozenset()
    return frozenset(f"{table.db}.{table.name}" if table.db not in ("", PUBLIC) else table.name
                     for table in query.find_all(exp.Table))  # fmt: skip


def check_locks(query: exp.Select, context: Context) -> None:
    """Refuse FOR UPDATE of a query whose rows are no rows of tables, and of a table that is not in FROM."""
    if not query.args.get("locks"):
        return
    if (why := next(_not_rows(query, context), None)) is not None:
        raise context.refuse(query, f"FOR UPDATE is not allowed with {why}", "leave it out")
    names = {table.alias_or_name for table in query.find_all(exp.Table, exp.Subquery)}
    for lock in query.args["locks"]:
        for table in lock.expressions:
            if table.name not in names:
                raise context.wrong(table, f'relation "{table.name}" in FOR UPDATE clause not found in FROM clause')


def _not_rows(query: exp.Select, context: Context) -> Iterator[str]:
    """Why a row of the result is not one row of each table, in PostgreSQL's words."""
    around = query.parent
    while isinstance(around, exp.Subquery) and around.arg_key in ("this", "expression"):
        around = around.parent
    if isinstance(around, exp.SetOperation):
        yield "UNION/INTERSECT/EXCEPT"
    for key, word in GROUPING:
        if query.args.get(key):
            yield f"{word} clause"
    order = query.args.get("order")
    for node in (*query.expressions, *(order.expressions if order else ())):
        for part in node.walk(prune=lambda part: isinstance(part, exp.Query | exp.Window)):
            if isinstance(part, exp.Window):
                yield "window functions"
            elif is_aggregate(part, context.schema):
                yield "aggregate functions"
            elif isinstance(part, exp.Anonymous) and returns_rows(part.name.lower(), context.schema):
                yield "set-returning functions in the target list"

"""Binds calls of the user's reduces in FROM: `f(TABLE t PARTITION BY k ORDER BY x) AS r`.

This is the syntax of the SQL standard's polymorphic table functions. As there, `r.*` has the columns that the function
returns, and nothing else. The partition's columns can be read by their names, too: `r.k`. What the partition computes
has no name, and the function does not see it.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.bind.aggregates import sort_keys
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.function import renamed
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import FromItem
from halfjoin.sql.bind.selected import column_for, known, qualified
from halfjoin.sql.bind.subqueries import with_values
from halfjoin.sql.expr import Column, Expr, columns_of
from halfjoin.sql.functions.aggregates import is_aggregate_name
from halfjoin.sql.functions.table_functions import returns_rows
from halfjoin.sql.parse.locate import name_of, only
from halfjoin.sql.parse.syntax import TableArgument
from halfjoin.sql.relation import Relation, UserReduce

FORM = "TABLE t PARTITION BY k"


def takes_table(call: object) -> bool:
    """Whether it is a call with TABLE among its arguments."""
    return isinstance(call, exp.Anonymous) and any(isinstance(one, TableArgument) for one in call.expressions)


def table_argument(node: exp.Table | exp.Lateral, context: Context) -> TableArgument:
    """The argument of a call of a reduce.

    Raises:
        UnknownName: no reduce has that name.
        UnsupportedSQL: it is a function of another kind, or has other arguments, or stands where none may stand.
    """
    call, name = node.this, node.this.name.lower()
    if context.schema.reduce(name) is None:
        raise _no_reduce(call, name, context)
    if len(call.expressions) != 1:
        raise context.refuse(call, f"{name} takes one table, and no other argument", f"write {name}({FORM})")
    only(node, context.sql, "FROM", ("this", "alias"))
    argument: TableArgument = call.expressions[0]
    return argument


def _no_reduce(call: exp.Expr, name: str, context: Context) -> UnsupportedSQL | UnknownName:
    if is_aggregate_name(name, context.schema):
        return context.refuse(call, f"{name} is an aggregate, which takes no TABLE",
                              f"write SELECT k, {name}(x) FROM t GROUP BY k")
    if returns_rows(name, context.schema):
        return context.refuse(call, f"{name} takes values of each row, not a TABLE",
                              f"write FROM t, {name}(t.x), or register a reduce")
    with context.at(call):
        raise UnknownName("reduce", name, context.schema.reduces(),
                          remedy=f"engine.register_reduce({name!r}, ...) makes a function of a table's groups")


def bind_reduce(
    node: exp.Table | exp.Lateral, argument: TableArgument, rows: Relation, scalars: Scalars
) -> tuple[UserReduce, FromItem]:
    """The call over the rows of its argument, and the name and columns that it adds to the scope. `scalars` binds what
    reads these rows."""
    context, function, alias = scalars.context, node.this.name.lower(), node.args.get("alias")
    order = argument.args.get("order")
    if order is not None:
        only(order, context.sql, "ORDER BY", ("expressions",))
    by = argument.args.get("partition_by") or []
    rows, scalars = with_values(rows, scalars, [*by, *([order] if order is not None else [])])
    keys = _keys(by, rows, scalars)
    sort = sort_keys(order.expressions, scalars) if order is not None else ()
    returned = context.schema.reduce(function) or ()
    shown = name_of(alias.this) if alias is not None and alias.this else function
    names = renamed([name for name, _ in returned], alias, shown, context)
    namer = qualified(context.aliases.fresh(shown))
    outputs = tuple((own, Column(namer(name), type)) for (own, type), name in zip(returned, names, strict=True))
    groups = tuple((column_for(namer(name or "key"), value), value) for value, name in keys.items())
    made = UserReduce(rows, function, groups, _taken(function, keys, argument, scalars), sort, outputs)
    columns = tuple(zip(names, (column for _, column in outputs), strict=True))
    hidden = tuple((name, column) for (column, value) in groups if (name := keys[value]))
    return made, FromItem(shown, columns, hidden=hidden)


def _keys(by: Iterable[exp.Expr], rows: Relation, scalars: Scalars) -> dict[Expr, str | None]:
    """The expressions of PARTITION BY, and the names of those that are columns of the table."""
    keys, there = dict[Expr, str | None](), {column.name for column in rows.columns}
    for part in by:
        value = known(scalars.value(part))
        own = isinstance(part, exp.Column) and columns_of(value) <= there
        keys.setdefault(value, name_of(part) if own else None)
    return keys


def _taken(
    function: str, keys: dict[Expr, str | None], argument: TableArgument, scalars: Scalars
) -> tuple[tuple[str, Expr], ...]:
    """The columns that the function sees: those of the partition, then the others, each name once."""
    takes = dict[str, Expr]()
    every = [(name, value) for value, name in keys.items() if name]
    for name, value in (*every, *((one.name, one.expr) for one in scalars.scopes[0].visible)):
        if name.startswith("__") or takes.get(name, value) != value:
            problem = "begins with __" if name.startswith("__") else "is not the only one"
            raise scalars.context.refuse(
                argument.this, f"{function} cannot take the column {name}, whose name {problem}",
                f"rename it in a subquery: {function}(TABLE (SELECT ... AS ... FROM t))")  # fmt: skip
        takes[name] = value
    return tuple(takes.items())

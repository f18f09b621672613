"""The order in which the rows of FROM come, for what depends on it and does not say ORDER BY itself.

A subquery with ORDER BY, VALUES and a call that returns rows have an order. SQL does not promise that it reaches the
query around, but PostgreSQL reads the rows of a single item of FROM in it, and queries rely on that:

    SELECT string_agg(name, ',') FROM (SELECT name FROM t ORDER BY age) AS s
    SELECT ARRAY(SELECT x * 2 FROM unnest(a) AS x)
    SELECT * FROM (SELECT * FROM t ORDER BY age) AS s LIMIT 3

So here it is the order of aggregates of many values, of ARRAY, of LIMIT, of DISTINCT ON and of row numbers that have
none. Joins, groups, DISTINCT and set operations have no order. Hidden columns carry the keys, only where a query asks
for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlglot import exp

from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.selected import Namer, Selected, known
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.relation import Project, Relation, SortKey, TableFunction
from halfjoin.sql.types import BIGINT

KEY = " order"  # begins the names of the hidden columns; no user writes it
# Aggregates whose values have the order of the rows.
LISTS = frozenset(("array_agg", "string_agg", "jsonb_agg", "json_agg", "json_object_agg"))
NUMBERS = frozenset(("row_number", "lag", "lead", "ntile"))  # window functions that count rows


def asks(query: exp.Select, context: Context) -> bool:
    """Whether a query, or the one around it, depends on the order of the rows of its FROM."""
    if query.args.get("joins"):
        return False
    if any(_is_list(node) for node in _own(query)):
        return True
    if any(query.args.get(key) for key in ("order", "group", "having")):
        return False
    if (distinct := query.args.get("distinct")) is not None:
        return bool(distinct.args.get("on"))  # the first row of each
    return context.ordered or any(query.args.get(key) for key in ("limit", "offset"))


def _own(query: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of a query, outside subqueries."""
    for key in ("expressions", "having", "order", "qualify"):
        for part in query.args.get(key) or () if key == "expressions" else filter(None, [query.args.get(key)]):
            yield from part.walk(prune=lambda node: isinstance(node, exp.Query))


def _is_list(node: exp.Expr) -> bool:
    """Whether a node is a call that depends on the order of the rows, and does not say it."""
    if not isinstance(node, exp.Anonymous) or node.name.lower() not in LISTS | NUMBERS:
        return False
    over = node.parent
    while isinstance(over, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        over = over.parent
    if node.name.lower() in LISTS:
        return not isinstance(over, exp.Window) and not node.find(exp.Order, exp.Distinct)
    return isinstance(over, exp.Window) and not over.args.get("partition_by") and not over.args.get("order")


def carried(selected: Selected, made: Project, namer: Namer) -> tuple[Project, tuple[SortKey, ...]]:
    """The outputs with the keys of their order as more columns, and the order over these."""
    items: list[tuple[Column, Expr]] = []
    order = []
    for number, key in enumerate(selected.order, 1):
        value = known(key.expr)
        items.append((Column(namer(f"{KEY} {number}"), value.type), value))
        order.append(SortKey(items[-1][0], key.descending, key.nulls_first))
    return Project(made.input, (*made.items, *items)), tuple(order)


def in_sequence(call: Relation) -> tuple[Relation, tuple[SortKey, ...]]:
    """A call of FROM, or the fields of its rows, with the number of each row, and the order that it is. A call without
    columns has none."""
    if isinstance(call, Project):
        made, order = in_sequence(call.input)
        own = [(key.expr, key.expr) for key in order if isinstance(key.expr, Column)]
        return Project(made, (*call.items, *(one for one in own if one not in call.items))), order
    assert isinstance(call, TableFunction)
    if not call.outputs:
        return call, ()
    number = call.ordinality or Column(f"{call.alias}.{KEY}", BIGINT, nullable=False)
    return replace(call, ordinality=number), (SortKey(number),)


def is_carried(key: Expr) -> bool:
    """Whether the value of a key is that of rows of FROM, and not written where it is used."""
    return isinstance(key, Column) and key.name.rpartition(".")[2].startswith(KEY)

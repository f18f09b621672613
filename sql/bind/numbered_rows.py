"""nextval and currval in the SELECT list of a query over rows: computed for each row, once the rows are in order.

The query is cut in two. The first half is the query without the calls; the parts of the expressions around them that
do not call them become columns at its end. The second half is these expressions over the first half's rows, and over a
column of numbers for each call. So

    SELECT nextval('q') * 10 + k AS n FROM t ORDER BY k LIMIT 2

is `SELECT NULL, 10, k FROM t ORDER BY k LIMIT 2`, and then `number * second + third` over its rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from halfjoin.sql.bind.apart import at_rest
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.groups import is_key
from halfjoin.sql.bind.output_names import output_name
from halfjoin.sql.bind.query import BoundQuery
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import FromItem, Scope
from halfjoin.sql.bind.selected import column_for, known
from halfjoin.sql.bind.sequences import argument
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.relation import Project, Scan
from halfjoin.sql.schema import Schema
from halfjoin.sql.types import BIGINT

CALLED = ("nextval", "currval", "lastval")
PART = "part "
AROUND = (exp.Alias, exp.Paren, exp.Neg, exp.Cast, exp.Binary, exp.Anonymous)  # all of whose parts are computed


@dataclass(frozen=True)
class NumberedRows:
    """A query that calls nextval for its rows.

    `first`: its first half. `calls`: the function and the sequence (empty: any) of each call, in the order in which a
    row computes them. `items`: the expressions with calls and their names, by the names of the columns that stand for
    them in the first half; over its columns `part 0`, `part 1`, ..., and `number 0`, ... of the calls. `skipped`: how
    many rows OFFSET leaves out; their numbers are given out all the same.
    """

    first: exp.Select
    calls: tuple[tuple[str, str], ...]
    items: Mapping[str, tuple[exp.Expr, str]]
    skipped: int


def numbered_rows(query: exp.Query) -> NumberedRows | None:
    """The halves of a query; None for one that has no calls for rows, or cannot be cut."""
    if not isinstance(query, exp.Select) or query.args.get("from_") is None or query.args.get("distinct"):
        return None
    if not any(map(_calls, query.expressions)):
        return None
    first, calls, items = query.copy(), list[tuple[str, str]](), dict[str, tuple[exp.Expr, str]]()
    if (skipped := _without_offset(first)) is None:
        return None
    parts: list[exp.Expr] = []
    for place, item in enumerate(first.expressions):
        if not _calls(item):
            continue
        made = None if _named_by_key(first, item, place + 1) else _over_parts(item.unalias(), calls, parts)
        if made is None:
            return None
        items[f"shown {place}"] = made, output_name(item)
    shown = [exp.alias_(exp.Null(), name, quoted=True) if (name := f"shown {place}") in items else item
             for place, item in enumerate(first.expressions)]  # fmt: skip
    first.set("expressions", [*shown, *parts])
    return NumberedRows(first, tuple(calls), items, skipped)


def _without_offset(query: exp.Select) -> int | None:
    """Take OFFSET off a query, which then has so many rows more. None if it is not a number."""
    offset, limit = query.args.get("offset"), query.args.get("limit")
    if offset is None:
        return 0
    counts = [offset.expression]
    if limit is not None:
        counts.append(limit.expression if isinstance(limit, exp.Limit) else None)
    if not all(isinstance(one, exp.Literal) and one.name.isdigit() for one in counts):
        return None
    query.set("offset", None)
    if limit is not None:
        limit.set("expression", exp.Literal.number(sum(int(one.name) for one in counts)))
    return int(offset.expression.name)


def _calls(node: exp.Expr) -> bool:
    """Whether an expression calls one of the functions, other than in a subquery."""
    return any(isinstance(one, exp.Anonymous) and one.name.lower() in CALLED
               for one in node.walk(prune=lambda one: isinstance(one, exp.Query)))  # fmt: skip


def _named_by_key(query: exp.Select, item: exp.Expr, place: int) -> bool:
    """Whether ORDER BY names an item of the list, or GROUP BY its position: the numbers come before that."""
    order, group = query.args.get("order"), query.args.get("group")
    keys = [key.this for key in order.expressions] if order is not None else []
    keys += [key for key in group.find_all(exp.Literal) if is_key(key)] if group is not None else []
    name = name_of(item.args["alias"]) if isinstance(item, exp.Alias) else output_name(item)
    return any((isinstance(key, exp.Literal) and key.name == str(place)) or _calls(key)
               or (isinstance(key, exp.Column) and name_of(key) == name) for key in keys)  # fmt: skip


def _over_parts(node: exp.Expr, calls: list[tuple[str, str]], parts: list[exp.Expr]) -> exp.Expr | None:
    """The expression over the columns of the first half; None if it may skip a call."""
    if isinstance(node, exp.Anonymous) and node.name.lower() in CALLED:
        sequence = "" if node.name.lower() == "lastval" and not node.expressions else argument(node)
        if sequence is None:
            return None
        calls.append((node.name.lower(), sequence))
        return exp.column(f"number {len(calls) - 1}", quoted=True)
    if not _calls(node):
        if isinstance(node, exp.Literal | exp.Null | exp.Boolean | exp.DataType | exp.Identifier):
            return node
        part = exp.column(f"{PART}{len(parts)}", quoted=True)
        parts.append(exp.Alias(this=node.copy(), alias=part.this.copy()))
        return part
    if not isinstance(node, AROUND) or isinstance(node, exp.Connector) or node.name.lower() == "coalesce":
        return None
    made = node.copy()
    for key, value in node.args.items():
        if isinstance(value, exp.Expr):
            made.set(key, new := _over_parts(value, calls, parts))
            if new is None:
                return None
        elif isinstance(value, list):
            found = [_over_parts(one, calls, parts) if isinstance(one, exp.Expr) else one for one in value]
            if None in found:
                return None
            made.set(key, found)
    return made


def bind_second(rows: NumberedRows, first: BoundQuery, schema: Schema, sql: str, collection: str) -> BoundQuery:
    """The second half over a collection that has the columns of the first one, the numbers and the row's own number,
    named by their positions. The relation's last column is the row's number."""
    shown = first.relation.columns[: len(first.names)]
    types = [*(column.type for column in shown), *(BIGINT for _ in (*rows.calls, 0))]
    columns = tuple(Column(f"rows.{n}", type) for n, type in enumerate(types))
    called = [*first.names, *(f"number {n}" for n in range(len(rows.calls)))]
    context = Context(schema, sql)
    context.note_rows(columns)
    scalars = Scalars(context, (Scope.of(FromItem("rows", tuple(zip(called, columns, strict=False)))),))
    values, names = list[Expr](), list[str]()
    for name, column in zip(first.names, columns, strict=False):
        node, own = rows.items.get(name, (None, name))
        if not name.startswith(PART):
            values.append(column if node is None else known(scalars.value(node)))
            names.append(own)
    items = tuple((column_for(f"output.{n}", value), value) for n, value in enumerate(values))
    relation = Project(Scan(collection, "rows", columns), (*items, (columns[-1], columns[-1])))
    return BoundQuery(at_rest(relation, context), tuple(names), None)

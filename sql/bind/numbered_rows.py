"""nextval, currval, setval and pg_notify in the SELECT list of a query over rows: computed for each row, in order.

The query is cut in two. The first half is the query without the calls; the parts of the expressions around them that
do not call them become columns at its end. The second half is these expressions over the first half's rows, and over a
column of numbers for each call. So

    SELECT nextval('q') * 10 + k AS n FROM t ORDER BY k LIMIT 2

is `SELECT NULL, 10, k FROM t ORDER BY k LIMIT 2`, and then `number * second + third` over its rows. What setval takes
is computed in the first half, and is the value of the call. So is what pg_notify takes, whose value is void.
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
from halfjoin.sql.bind.sequences import argument, constants, of_column
from halfjoin.sql.bind.session_functions import VOID
from halfjoin.sql.bind.system_functions import NOTIFY
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.parse.locate import name_of
from halfjoin.sql.relation import Project, Scan
from halfjoin.sql.schema import Schema
from halfjoin.sql.types import BIGINT

CALLED = ("nextval", "currval", "lastval", "setval", NOTIFY)
NOTIFIED = exp.Placeholder()  # what stands for a call of pg_notify in the second half
PART = "part "
AROUND = (exp.Alias, exp.Paren, exp.Neg, exp.Cast, exp.Binary, exp.Anonymous)  # all of whose parts are computed


@dataclass(frozen=True)
class NumberedRows:
    """A query that calls nextval, setval or pg_notify for its rows.

    `first`: its first half. `calls`: the function and the sequence (empty: any) of each call, in the order in which a
    row computes them. `sets`: the sequence of each call of setval, and the columns of the first half that have its
    number and whether it is given out. `notes`: the columns of the first half that have the channel and the text of
    each call of pg_notify. `items`: the expressions with calls and their names, by the names of the columns
    that stand for them in the first half; over its columns `part 0`, `part 1`, ..., and `number 0`, ... of the calls.
    `skipped`: how many rows OFFSET leaves out; their numbers are given out all the same.
    """

    first: exp.Select
    calls: tuple[tuple[str, str], ...]
    sets: tuple[tuple[str, str, str], ...]
    notes: tuple[tuple[str, str], ...]
    items: Mapping[str, tuple[exp.Expr, str]]
    skipped: int


def numbered_rows(query: exp.Query, schema: Schema) -> NumberedRows | None:
    """The halves of a query; None for one that has no calls for rows, or cannot be cut. Without FROM there is one row,
    which has no halves if the numbers of setval are written in it."""
    if not isinstance(query, exp.Select) or query.args.get("distinct"):
        return None
    found = [call for item in query.expressions for call in _calls(item)]
    if query.args.get("from_") is None:
        found = [call for call in found if call.name.lower() == NOTIFY or (
            call.name.lower() == "setval" and constants(call) is None)]  # fmt: skip
    if not found:
        return None
    first, calls, items = query.copy(), _Calls(schema), dict[str, tuple[exp.Expr, str]]()
    if (skipped := _without_offset(first)) is None:
        return None
    for place, item in enumerate(first.expressions):
        if not _calls(item):
            continue
        made = None if _named_by_key(first, item, place + 1) else calls.of_item(item.unalias())
        if made is None:
            return None
        items[f"shown {place}"] = made, output_name(item)
    shown = [exp.alias_(exp.Null(), name, quoted=True) if (name := f"shown {place}") in items else item
             for place, item in enumerate(first.expressions)]  # fmt: skip
    first.set("expressions", [*shown, *calls.parts])
    if not {name for name, *_ in calls.sets}.isdisjoint(name for _, name in calls.found):
        return None  # the numbers of all rows are given out at once
    return NumberedRows(first, tuple(calls.found), tuple(calls.sets), tuple(calls.notes), items, skipped)


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


def _calls(node: exp.Expr) -> list[exp.Anonymous]:
    """The calls of the functions in an expression, other than in a subquery."""
    return [one for one in node.walk(prune=lambda one: isinstance(one, exp.Query))
            if isinstance(one, exp.Anonymous) and one.name.lower() in CALLED]  # fmt: skip


def _named_by_key(query: exp.Select, item: exp.Expr, place: int) -> bool:
    """Whether ORDER BY names an item of the list, or GROUP BY its position: the numbers come before that."""
    order, group = query.args.get("order"), query.args.get("group")
    keys = [key.this for key in order.expressions] if order is not None else []
    keys += [key for key in group.find_all(exp.Literal) if is_key(key)] if group is not None else []
    name = name_of(item.args["alias"]) if isinstance(item, exp.Alias) else output_name(item)
    return any((isinstance(key, exp.Literal) and key.name == str(place)) or _calls(key)
               or (isinstance(key, exp.Column) and name_of(key) == name) for key in keys)  # fmt: skip


class _Calls:
    """Takes the calls out of expressions. `found`, `sets`, `notes`: as of `NumberedRows`; `parts`: the columns of the
    parts."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.found: list[tuple[str, str]] = []
        self.sets: list[tuple[str, str, str]] = []
        self.notes: list[tuple[str, str]] = []
        self.parts: list[exp.Expr] = []

    def of_item(self, node: exp.Expr) -> exp.Expr | None:
        """An item of the list over the columns of the first half; None if it may skip a call."""
        if not isinstance(node, exp.Anonymous) or node.name.lower() != NOTIFY:
            return self.over_parts(node)
        if len(node.expressions) != 2 or any(map(_calls, node.expressions)):
            return None
        channel, said = (self._part(exp.cast(one.copy(), "text")).name for one in node.expressions)
        self.notes.append((channel, said))
        return NOTIFIED

    def over_parts(self, node: exp.Expr) -> exp.Expr | None:
        """The expression over the columns of the first half; None if it may skip a call."""
        if isinstance(node, exp.Anonymous) and node.name.lower() in CALLED:
            return self._called(node)
        if not _calls(node):
            if isinstance(node, exp.Literal | exp.Null | exp.Boolean | exp.DataType | exp.Identifier):
                return node
            return self._part(node.copy())
        if not isinstance(node, AROUND) or isinstance(node, exp.Connector) or node.name.lower() == "coalesce":
            return None
        made = node.copy()
        for key, value in node.args.items():
            if isinstance(value, exp.Expr):
                made.set(key, new := self.over_parts(value))
                if new is None:
                    return None
            elif isinstance(value, list):
                found = [self.over_parts(one) if isinstance(one, exp.Expr) else one for one in value]
                if None in found:
                    return None
                made.set(key, found)
        return made

    def _called(self, node: exp.Anonymous) -> exp.Expr | None:
        name = node.name.lower()
        if name == NOTIFY:
            return None
        any_one = name == "lastval" and not node.expressions
        sequence = "" if any_one else argument(node) or of_column(node, self.schema)
        if sequence is None or any(map(_calls, node.expressions)) or (
            name == "setval" and len(node.expressions) not in (2, 3)):
            return None
        if name != "setval":
            self.found.append((name, sequence))
            return exp.column(f"number {len(self.found) - 1}", quoted=True)
        _, number, *rest = node.expressions
        asked, value = exp.cast(rest[0].copy() if rest else exp.true(), "boolean"), exp.cast(number.copy(), "bigint")
        known = exp.Is(this=asked.copy(), expression=exp.Null()).not_()  # setval is NULL if one of them is
        made, called = self._part(exp.Case(ifs=[exp.If(this=known, true=value)])), self._part(asked)
        self.sets.append((sequence, made.name, called.name))
        return made

    def _part(self, node: exp.Expr) -> exp.Column:
        part = exp.column(f"{PART}{len(self.parts)}", quoted=True)
        self.parts.append(exp.Alias(this=node, alias=part.this.copy()))
        return part


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
            values.append(column if node is None else Literal("", VOID) if node is NOTIFIED else
                          known(scalars.value(node)))  # fmt: skip
            names.append(own)
    items = tuple((column_for(f"output.{n}", value), value) for n, value in enumerate(values))
    relation = Project(Scan(collection, "rows", columns), (*items, (columns[-1], columns[-1])))
    return BoundQuery(at_rest(relation, context), tuple(names), None)

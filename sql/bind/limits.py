"""Binds LIMIT, OFFSET and FETCH.

A number that is constant makes a top-k. One that reads columns of outer queries, or is a subquery, cannot: the rows are
numbered, and the numbers are compared with it. PostgreSQL knows both as the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from halfjoin.errors import UnknownName
from halfjoin.sql import functions
from halfjoin.sql.bind.constant import constant
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.quantified import has_subquery
from halfjoin.sql.bind.rows import Rows
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.selected import qualified
from halfjoin.sql.bind.subqueries import bind_values
from halfjoin.sql.expr import FALSE, Call, Column, Expr, Literal, columns_of
from halfjoin.sql.functions.chance import draws
from halfjoin.sql.parse.locate import only
from halfjoin.sql.relation import Filter, Project, Relation, SortKey, TopK, Window, WindowCall
from halfjoin.sql.types import BIGINT

Number = int | exp.Expr | None  # a node if it is not constant


@dataclass(frozen=True)
class Limit:
    """LIMIT and OFFSET, or FETCH; true if there is either. `outer`: the scopes that they may read."""

    count: Number = None
    offset: Number = None
    with_ties: bool = False
    outer: tuple[Scope, ...] = ()

    def __bool__(self) -> bool:
        return self.count is not None or bool(self.offset)

    def apply(self, relation: Relation, order: Sequence[SortKey], context: Context) -> Relation:
        """The rows within the limit."""
        count, offset = self.count, self.offset or 0
        if count == 0:
            return Filter(relation, FALSE)
        if isinstance(offset, int) and not isinstance(count, exp.Expr):
            return TopK(relation, (), tuple(order), count, offset, self.with_ties) if self else relation
        return self._numbered(relation, order, context)

    def _numbered(self, relation: Relation, order: Sequence[SortKey], context: Context) -> Relation:
        namer = qualified(context.aliases.fresh("limit"))
        number, rank = (Column(namer(name), BIGINT, nullable=False) for name in ("row_number", "rank"))
        called = [(number, WindowCall("row_number", (), BIGINT))]
        if self.with_ties:
            called.append((rank, WindowCall("rank", (), BIGINT)))
        window = Window(relation, (), tuple(order), tuple(called))
        rows = Rows([window], Scalars(context, self.outer, context.lifted))
        first = self._value(self.offset, "offset rows", rows)
        offset = functions.resolve("coalesce", (first, Literal(0, BIGINT)))
        conditions = [functions.resolve(">", (number, offset))]
        if self.count is not None:
            count = self._value(self.count, "limit rows", rows)
            within = functions.resolve("-", (rank if self.with_ties else number, offset))
            conditions.append(functions.resolve("or", (
                functions.resolve("is null", (count,)), functions.resolve("<=", (within, count)))))  # fmt: skip
        made = Filter(rows.relations[0], functions.resolve("and", tuple(conditions)))
        return Project(made, tuple((column, column) for column in relation.columns))

    @staticmethod
    def _value(number: Number, function: str, rows: Rows) -> Expr:
        """The value of a number, over the rows and the outer ones; it fails if it is negative."""
        if not isinstance(number, exp.Expr):
            return Literal(number, BIGINT)
        bind_values(rows, [number])
        with rows.scalars.context.at(number):
            return Call(function, (functions.cast(rows.scalars.value(number), BIGINT),), BIGINT)


NO_LIMIT = Limit()


def limit_of(query: exp.Expr, context: Context, scopes: tuple[Scope, ...], *, own: bool) -> Limit:
    """LIMIT, OFFSET and FETCH of a query. `own`: the first of the scopes is the query's own, which they cannot read."""
    limit, offset = query.args.get("limit"), query.args.get("offset")
    count: Number = None
    with_ties = False
    if isinstance(limit, exp.Fetch):
        written = limit.args.get("count")
        count = 1 if written is None else _number(written, "LIMIT", context, scopes, own)
    elif limit is not None:
        only(limit, context.sql, "LIMIT", ("this", "expression", "limit_options"))
        count = _number(limit.expression, "LIMIT", context, scopes, own)
    if limit is not None and (options := limit.args.get("limit_options")):
        if options.args.get("percent"):
            raise context.refuse(limit, "LIMIT with a percentage is not supported", "write a number of rows")
        with_ties = bool(options.args.get("with_ties"))
    if with_ties and not query.args.get("order"):
        raise context.wrong(limit, "WITH TIES cannot be specified without ORDER BY clause")
    skipped = None if offset is None else _number(offset.expression, "OFFSET", context, scopes, own)
    return Limit(count, skipped, with_ties and count is not None, scopes[own:])


def _number(node: exp.Expr, clause: str, context: Context, scopes: tuple[Scope, ...], own: bool) -> Number:
    """The number of rows; None for ALL and NULL."""
    if isinstance(node, exp.Var) and node.name.upper() == "ALL":
        return None
    if has_subquery(node):
        return node
    with context.at(node):
        try:
            value = functions.cast(Scalars(context, scopes).value(node), BIGINT)
        except UnknownName as error:
            if error.kind != "column" or node.find(exp.Column) is None or len(scopes) > own:
                raise
            raise context.wrong(node, f"argument of {clause} must not contain variables").with_(code="42P10") from None
    mine = {column.name for source in scopes[0].sources for _, column in source.columns} if own else set()
    if columns_of(value) & mine:
        raise context.wrong(node, f"argument of {clause} must not contain variables").with_(code="42P10")
    if columns_of(value):
        return node
    made = constant(value)
    if draws(made):
        raise context.refuse(node, f"{clause} depends on chance", "write the number")
    if not isinstance(made, Literal):
        return node
    if made.value is None:
        return None
    assert isinstance(made.value, int)
    if made.value < 0:
        raise context.wrong(node, f"{clause} must not be negative")
    return made.value

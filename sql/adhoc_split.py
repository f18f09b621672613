"""Queries that no view could be, split into steps: what computes values for the engine, all else for DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.sql import adhoc_select, bind_select, functions
from halfjoin.sql.adhoc_script import Made, Script, Steps
from halfjoin.sql.adhoc_select import Item, Key, Rows
from halfjoin.sql.bind_context import Aliases, CommonTable, Context
from halfjoin.sql.bind_from import bind_from
from halfjoin.sql.errors import UnknownName, UnsupportedSQL
from halfjoin.sql.expr import Column, Expr, conjunction, substitute
from halfjoin.sql.locate import bare_values, name_of, only
from halfjoin.sql.relation import Join
from halfjoin.sql.table_functions import returns_rows
from halfjoin.sql.types import BOOLEAN
from halfjoin.sql.unmaintained import ON_TOP

if TYPE_CHECKING:
    from halfjoin.catalog.facts import Schema

_CLAUSES = ("expressions", "from_", "joins", "where", "with_", "group", "having", "order", "limit", "offset",
            "distinct", "windows")
_QUANTIFIERS = (exp.Any, exp.All, exp.Array, exp.In)
_SETS: dict[type[exp.SetOperation], str] = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}


def split(query: exp.Query, schema: Schema, sql: str) -> Script | UnsupportedSQL:
    """The steps of a query, one of the engine's alone where a view could be it; or why it cannot be split.

    Outer joins, correlated subqueries, WITH RECURSIVE and functions that are not in the table are not split.

    Raises:
        UnsupportedSQL: the query is wrong by PostgreSQL's rules, too.
        UnknownName: of a table or a column.
    """
    steps = Steps(schema)
    try:
        found = _Splitter(steps).query(query.copy(), Context(steps, sql))
    except UnsupportedSQL as error:
        if error.wrong:
            raise
        return error
    except UnknownName as error:
        if error.kind == "function":
            refused = UnsupportedSQL(f"unknown function {error.name}")
            refused.__cause__ = error
            return refused
        raise
    if not found.names:
        raise UnsupportedSQL("a query needs at least one column")
    return Script(tuple(steps.done), found.names)


@dataclass(frozen=True)
class _Result:
    """A query that has become a step: its table, and what its columns are called."""

    made: Made
    names: tuple[str, ...]

    def query(self) -> exp.Select:
        """The same as a query over the step's table."""
        columns = [exp.to_identifier(name, quoted=True) for name in self.names]
        table = exp.to_identifier(self.made.name, quoted=True)
        alias = exp.TableAlias(this=table.copy(), columns=columns)
        return exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Table(this=table, alias=alias)))


class _Splitter:
    """Splits queries, inner ones first; it may change the syntax tree that it is given."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps

    def query(self, query: exp.Expr, context: Context) -> _Result:
        """Any query, as a step."""
        _move_order(query)
        try:
            selected = bind_select.select(query, replace(context, aliases=Aliases()))
            values = [value for _, value in selected.items]
            return _Result(self.steps.evaluate(selected.input, values), tuple(selected.names))
        except UnsupportedSQL as error:
            if error.wrong:
                raise
            if isinstance(query, exp.Select):
                return self.select(query, context)
            if isinstance(query, exp.SetOperation):
                return self.set_operation(query, context)
            if isinstance(query, exp.Subquery):
                only(query, context.sql, "a subquery", ("this", "alias", "with_"))
                return self.query(query.this, self.common(query, context))
            raise

    def operand(self, query: exp.Expr, context: Context) -> bind_select.Selected:
        """A query whose values may yet be cast."""
        try:
            return bind_select.select(query, replace(context, aliases=Aliases()))
        except UnsupportedSQL:
            return bind_select.select(self.query(query, context).query(), context)

    def inner(self, query: exp.Expr, context: Context) -> _Result:
        """A subquery; one that reads columns around it cannot be split off."""
        try:
            return self.query(query, context)
        except UnknownName as error:
            if error.kind in ("column", "table or alias"):
                raise context.refuse(query, f"a subquery cannot read {error.name}") from error
            raise

    def common(self, query: exp.Expr, context: Context) -> Context:
        """The context with the queries of WITH, those that no view could be as steps."""
        clause = query.args.get("with_")
        if clause is None:
            return context
        if clause.args.get("recursive"):
            raise context.refuse(clause, "WITH RECURSIVE is not maintained yet", ON_TOP)
        for item in clause.expressions:
            only(item, context.sql, "WITH", ("this", "alias", "materialized"))
            alias = item.args["alias"]
            self.replace(item.this, context)
            table = CommonTable(item.this, tuple(alias.args.get("columns") or ()), context)
            context = replace(context, common={**context.common, name_of(alias.this): table})
        query.set("with_", None)
        return context

    def replace(self, query: exp.Expr, context: Context) -> None:
        """Put a read of a step's table in the place of a query, if no view could be it."""
        try:
            bind_select.select(query, replace(context, aliases=Aliases()))
        except UnsupportedSQL:
            query.replace(self.inner(query, context).query())

    def sources(self, query: exp.Select, context: Context) -> None:
        """The subqueries of FROM, made steps where no view could be them."""
        clause = query.args.get("from_")
        items = [clause.this] if clause is not None else []
        for item in [*items, *(join.this for join in query.args.get("joins") or ())]:
            for node in [item, *(join.this for join in item.args.get("joins") or ())]:
                if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query):
                    self.replace(node.this, context)

    def set_operation(self, query: exp.SetOperation, context: Context) -> _Result:
        """UNION, INTERSECT, EXCEPT, with their ORDER BY and LIMIT."""
        word = next(word for kind, word in _SETS.items() if isinstance(query, kind))
        only(query, context.sql, word, ("this", "expression", "with_", "distinct", "order", "limit", "offset"))
        context = self.common(query, context)
        sides = [self.operand(side, context) for side in (query.this, query.expression)]
        names = tuple(sides[0].names)
        if len(sides[1].items) != len(names):
            raise context.refuse(query.expression, f"the parts of {word} have different numbers of columns")
        with context.at(query.expression):
            pairs = zip(*(side.items for side in sides), strict=True)
            types = [bind_select.common([value for _, value in pair]) for pair in pairs]
            made = [self.steps.evaluate(side.input, [functions.cast(value, type) for (_, value), type in
                                                     zip(side.items, types, strict=True)]) for side in sides]
        every = "" if query.args.get("distinct") else " ALL"
        text = f'SELECT * FROM "{made[0].name}" {word}{every} SELECT * FROM "{made[1].name}"'
        items = [Item(name, None) for name in names]
        keys = adhoc_select.keys_of(query.args.get("order"), items, context)
        for key in keys:
            if key.output is None:
                raise context.refuse(key.node, f"ORDER BY of {word} takes names or positions of its columns")
        if keys:
            text += " ORDER BY " + ", ".join(f"c{(key.output or 0) + 1}{key.direction}" for key in keys)
        text += adhoc_select.limit_of(query, context)
        return _Result(self.steps.compute(text, [column.type for column in made[0].columns]), names)

    def select(self, query: exp.Select, context: Context) -> _Result:
        """A SELECT, layer by layer."""
        only(query, context.sql, "a query", _CLAUSES)
        context = self.common(query, replace(context, aliases=Aliases()))
        self.sources(query, context)
        _name_windows(query)
        relation, scope = bind_from(query, context, None, ())
        rows = Rows(relation or bind_select.one_row(context), (scope,), context)
        if where := query.args.get("where"):
            self.where(where.this, rows)
        order, distinct, having = (query.args.get(key) for key in ("order", "distinct", "having"))
        on = distinct.args["on"].expressions if distinct and distinct.args.get("on") else []
        clauses = [node for node in (order, having, query.args.get("group"), *on) if node is not None]
        for node in (*query.expressions, *clauses):
            self.values(node, rows)
        items = adhoc_select.items_of(query, rows)
        names = tuple(item.name for item in items)
        keys = adhoc_select.keys_of(order, items, context)
        firsts = [adhoc_select.key_of(node, items, context) for node in on]
        nodes = [item.node for item in items if item.node is not None]
        nodes += [key.node for key in (*keys, *firsts) if key.output is None]
        filters = [having.this] if having is not None else []
        if query.args.get("group") or filters or adhoc_select.has_aggregates(nodes, rows.bound):
            if any(isinstance(node, exp.Anonymous) and returns_rows(node.name.lower(), self.steps)
                   for item in query.expressions for node in item.walk()):
                raise context.refuse(query, "a function that returns rows beside aggregates", "write it in FROM")
            by = adhoc_select.group_keys(query, items, rows)
            rows, items = adhoc_select.group(rows, by, items, [*nodes, *filters], self.steps)
            for node in filters:
                rows.filter(rows.scalars.condition(node))
        moved: dict[str, Expr] = {}
        if adhoc_select.windows_in(nodes, rows.bound):
            rows, items, moved = adhoc_select.with_windows(rows, items, nodes, self.steps)

        values = [substitute(adhoc_select.value_of(item, rows), moved) for item in items]

        def value(key: Key) -> Expr:
            if key.output is not None:
                return values[key.output]
            return substitute(rows.scalars.value(key.node), moved)

        sort = [(value(key), key.direction) for key in keys]
        first = [value(key) for key in firsts]
        made = adhoc_select.last(rows, values, sort, first, distinct is not None and not on,
                                 adhoc_select.limit_of(query, context), self.steps)
        return _Result(made, names)

    def where(self, condition: exp.Expr, rows: Rows) -> None:
        """WHERE; `x IN (subquery)` as a join with the subquery's distinct rows."""
        parts: list[exp.Expr] = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
        for part in parts:
            inside = part.unnest()
            if isinstance(inside, exp.In) and inside.args.get("query"):
                rows.filter(self.membership(inside, rows))
        others = [part for part in parts if not (isinstance(part.unnest(), exp.In) and part.unnest().args.get("query"))]
        for part in others:
            self.values(part, rows)
        rows.filter(conjunction(tuple(rows.scalars.condition(part) for part in others)))

    def membership(self, node: exp.In, rows: Rows) -> Expr:
        """That values are those of one row of a subquery, which is joined without duplicates."""
        found = self.inner(node.args["query"], rows.context).made
        listed = ", ".join(column.name for column in found.columns)
        types = [column.type for column in found.columns]
        scan = self.steps.compute(f'SELECT DISTINCT {listed} FROM "{found.name}"', types).scan(rows.context.aliases)
        values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        if len(values) != len(types):
            raise rows.context.refuse(node, f"IN compares {len(values)} values with {len(types)} columns")
        rows.relation = Join((rows.relation, scan))
        with rows.context.at(node):
            return conjunction(tuple(functions.resolve("=", (rows.scalars.value(value), column))
                                     for value, column in zip(values, scan.columns, strict=True)))

    def values(self, node: exp.Expr, rows: Rows) -> None:
        """Make steps of one row of the scalar subqueries and EXISTS in an expression."""
        for query in list(_subqueries(node)):
            if isinstance(query, exp.Exists):
                found = self.inner(query.this, rows.context).made
                made = self.steps.compute(f'SELECT count(*) > 0 FROM "{found.name}"', [BOOLEAN])
            elif isinstance(query, exp.Subquery) and not isinstance(query.parent, _QUANTIFIERS):
                found = self.inner(query.this, rows.context).made
                if len(found.columns) != 1:
                    raise rows.context.refuse(query, "a subquery as a value must have one column")
                made = self.steps.compute(f'SELECT (SELECT c1 FROM "{found.name}")', [found.columns[0].type])
            else:
                raise rows.context.refuse(query, "such a subquery cannot be split off")
            scan = made.scan(rows.context.aliases)
            column: Column = scan.columns[0]
            rows.bound[id(query)] = column
            rows.singles[column.name] = scan


def _move_order(query: exp.Expr) -> None:
    """Give ORDER BY and LIMIT of a bare VALUES to the query around it."""
    if isinstance(query, exp.Select) and (values := bare_values(query)) is not None:
        for key in ("order", "limit", "offset"):
            if clause := values.args.get(key):
                values.set(key, None)
                query.set(key, clause)
                values.set("alias", exp.TableAlias(this=exp.to_identifier("values")))


def _name_windows(query: exp.Select) -> None:
    """Write out the windows that are defined in WINDOW where they are used by their name alone."""
    defined = {name_of(window.this): window for window in query.args.get("windows") or ()}
    for window in list(query.walk(prune=lambda node: isinstance(node, exp.Query) and node is not query)):
        name = window.args.get("alias") if isinstance(window, exp.Window) else None
        if name is not None and name_of(name) in defined and not window.args.get("partition_by"):
            for key in ("partition_by", "order", "spec"):
                value = defined[name_of(name)].args.get(key)
                if value and not window.args.get(key):
                    window.set(key, [part.copy() for part in value] if isinstance(value, list) else value.copy())
            window.set("alias", None)


def _subqueries(node: exp.Expr) -> Iterator[exp.Expr]:
    """The subqueries in an expression, outermost only."""
    if isinstance(node, (exp.Query, exp.Exists)):
        yield node
        return
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("all", "some"):
        yield from (item for item in node.expressions if isinstance(item, exp.Select))
    for child in node.iter_expressions():
        yield from _subqueries(child)

"""Splits queries that no view could be into steps: the engine computes values, DuckDB does the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.adhoc import groups as adhoc_groups
from halfjoin.sql.adhoc import select as adhoc_select
from halfjoin.sql.adhoc.from_clause import OF_NAMES, QueryFrom
from halfjoin.sql.adhoc.rows import Base, Found
from halfjoin.sql.adhoc.script import Loop, Made, Script, Steps, wrong
from halfjoin.sql.adhoc.select import Item, Key, SelectRows
from halfjoin.sql.adhoc.subqueries import bind_subqueries
from halfjoin.sql.bind import select as bind_select
from halfjoin.sql.bind.context import CommonTable, Context
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.unmaintained import REFUSED_CLAUSES
from halfjoin.sql.expr import Column, Expr, Literal, conjunction, substitute
from halfjoin.sql.functions.table_functions import returns_rows
from halfjoin.sql.parse.locate import bare_values, name_of, only
from halfjoin.sql.relation import Relation
from halfjoin.sql.types import UNKNOWN

if TYPE_CHECKING:
    from halfjoin.sql.schema import Schema

_CLAUSES = ("expressions", "from_", "joins", "where", "with_", "group", "having", "order", "limit", "offset",
            "distinct", "windows")
_SETS: dict[type[exp.SetOperation], str] = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}
_MOST_TRIED = 2000  # the most queries to bind: each level of nesting is tried alone, then for each outer row


def split(query: exp.Query, schema: Schema, sql: str) -> Script:
    """The steps of a query; a single step of the engine if the query could be a view.

    Raises:
        UnsupportedSQL: the query is wrong, or needs something that halfjoin cannot compute as PostgreSQL does.
        UnknownName: the query names an unknown table, column or function.
    """
    steps = Steps(schema)
    found = Splitter(steps).query(query.copy(), Context(steps, sql, now=datetime.now(UTC).isoformat(" ")))
    if not found.names:
        raise UnsupportedSQL("a query needs at least one column")
    return Script(tuple(steps.done), found.names)


@dataclass(frozen=True)
class _Side:
    """One side of a set operation: a tag, if there are outer rows, and expressions over a relation's columns."""

    input: Relation
    tag: tuple[Expr, ...]
    items: tuple[tuple[str, Expr], ...]


class Splitter:
    """Splits queries, inner ones first; it may change the syntax trees passed to it."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self._tried = 0

    def query(self, query: exp.Expr, context: Context, base: Base | None = None) -> Found:
        """Any query as a step; with `base`, a subquery that is computed for each row of `base`."""
        self._tried += 1
        if self._tried > _MOST_TRIED:
            raise context.refuse(query, "subqueries are nested too deep", "make a part of them a view of its own")
        _move_order(query)
        around, scopes, tag = (base.relation, base.scopes, (base.tag,)) if base else (None, (), ())
        try:
            selected = bind_select.select(query, context, around, scopes)
            values = [value for _, value in selected.items]
            return Found(self.steps.evaluate(selected.input, [*tag, *values]), tuple(selected.names))
        except (UnsupportedSQL, UnknownName) as error:
            if _final(error):
                raise
            if isinstance(query, exp.Select) and bare_values(query) is None:
                return self.select(query, context, base)
            if isinstance(query, exp.SetOperation):
                return self.set_operation(query, context, base)
            if isinstance(query, exp.Subquery):
                only(query, context.sql, "a subquery", ("this", "alias", "with_"))
                return self.query(query.this, self.common(query, context), base)
            raise

    def side(self, query: exp.Expr, context: Context, base: Base | None) -> _Side:
        """A query as one side of a set operation, whose values the caller can still cast."""
        try:
            if base is None:
                selected = bind_select.select(query, context)
                return _Side(selected.input, (), selected.items)
            selected = bind_select.select(query, context, base.relation, base.scopes)
            return _Side(selected.input, (base.tag,), selected.items)
        except (UnsupportedSQL, UnknownName) as error:
            if _final(error):
                raise
        found = self.query(query, context, base)
        scan = found.made.scan(context.aliases)
        columns: tuple[Column, ...] = scan.columns
        tags = 0 if base is None else 1
        values = [found.untyped.get(place, column) for place, column in enumerate(columns[tags:])]
        return _Side(scan, columns[:tags], tuple(zip(found.names, values, strict=True)))

    def common(self, query: exp.Expr, context: Context) -> Context:
        """The context plus the queries of WITH; a query that no view could be becomes a step."""
        clause = query.args.get("with_")
        if clause is None:
            return context
        query.set("with_", None)
        for item in bind_select.common_tables(clause, context):
            name, columns = name_of(item.args["alias"].this), tuple(item.args["alias"].args.get("columns") or ())
            if clause.args.get("recursive") and _reads(item.this, name):
                table = self.loop(item.this, name, columns, context)
            else:
                table = CommonTable(self.maintainable(item.this, context), columns, context)
            context = replace(context, common={**context.common, name: table})
        return context

    def maintainable(self, query: exp.Query, context: Context) -> exp.Query:
        """The query itself if it could be a view, else a query that reads the step it becomes."""
        try:
            bind_select.select(query, context)
            return query
        except (UnsupportedSQL, UnknownName) as error:
            if _final(error):
                raise
            found = self.query(query, context)
            return _read(found.made, found.names)

    def loop(self, query: exp.Expr, name: str, columns: tuple[exp.Identifier, ...], context: Context) -> CommonTable:
        """A query of WITH RECURSIVE that reads itself, as a `Loop`."""
        if not isinstance(query, exp.Union) or _reads(query.this, name):
            raise wrong(query, context, f"{name} reads itself, so it must be: a query that does not, UNION [ALL], one "
                                        "that does")
        only(query, context.sql, "WITH RECURSIVE", ("this", "expression", "distinct"))
        first = self.query(query.this, context)
        types = [column.type for column in first.made.columns]
        working, made = self.steps.table(types), self.steps.table(types)
        known = len(self.steps.done)
        inner = CommonTable(_read(working, first.names), columns, context)
        side = self.side(query.expression, replace(context, common={**context.common, name: inner}), None)
        if len(side.items) != len(types):
            raise wrong(query.expression, context, "the parts of UNION have different numbers of columns")
        for (_, value), type in zip(side.items, types, strict=True):
            if bind_select.common([value, Column("", type)]) != type:
                raise wrong(query.expression, context, f"a column of {name} is {type} in its first part, and "
                            f"{value.type} in its second", f"cast it in the first part: ::{value.type}")
        self.steps.evaluate(side.input, [functions.cast(value, type) for (_, value), type in
                                         zip(side.items, types, strict=True)])
        found = tuple(self.steps.done[known:])
        del self.steps.done[known:]
        self.steps.done.append(Loop(made, first.made, working, found, bool(query.args.get("distinct"))))
        return CommonTable(_read(made, first.names), columns, context)

    def set_operation(self, query: exp.SetOperation, context: Context, base: Base | None) -> Found:
        """UNION, INTERSECT or EXCEPT, with ORDER BY and LIMIT."""
        word = next(word for kind, word in _SETS.items() if isinstance(query, kind))
        only(query, context.sql, word, ("this", "expression", "with_", "distinct", "order", "limit", "offset"))
        context = self.common(query, context)
        sides = [self.side(side, context, base) for side in (query.this, query.expression)]
        names = tuple(name for name, _ in sides[0].items)
        if len(sides[1].items) != len(names):
            raise wrong(query.expression, context, f"the parts of {word} have different numbers of columns")
        with context.at(query.expression):
            pairs = zip(*(side.items for side in sides), strict=True)
            types = [bind_select.common([value for _, value in pair]) for pair in pairs]
            made = [self.steps.evaluate(side.input, [*side.tag, *(functions.cast(value, type) for (_, value), type in
                                                                  zip(side.items, types, strict=True))])
                    for side in sides]
        every = "" if query.args.get("distinct") else " ALL"
        text = f'(SELECT * FROM "{made[0].name}" {word}{every} SELECT * FROM "{made[1].name}")'
        items = [Item(name, None) for name in names]
        ways, within = [], ["c1"] if base else []
        for key in adhoc_select.keys_of(query.args.get("order"), items, context):
            if key.output is None:
                raise wrong(key.node, context, f"ORDER BY of {word} takes names or positions of its columns")
            ways.append(f"c{key.output + 1 + len(within)}{key.direction}")
        text = adhoc_select.limit_of(query, context).text(adhoc_select.listed(made[0]), text, within,
                                                          ways)
        return Found(self.steps.compute(text, [column.type for column in made[0].columns]), names)

    def select(self, query: exp.Select, context: Context, base: Base | None) -> Found:
        """A SELECT, layer by layer."""
        for key, (reason, instead) in REFUSED_CLAUSES.items():
            if query.args.get(key):
                raise context.refuse(query, reason, instead)
        only(query, context.sql, "a query", _CLAUSES)
        context = self.common(query, context)
        _name_windows(query, context)
        rows = self.rows(query, context, base)
        if where := query.args.get("where"):
            self.where(where.this, rows)
        order, distinct, having, group = (query.args.get(key) for key in ("order", "distinct", "having", "group"))
        on = distinct.args["on"].expressions if distinct and distinct.args.get("on") else []
        items = adhoc_select.items_of(query, rows)
        names = tuple(item.name for item in items)
        keys = adhoc_select.keys_of(order, items, context)
        firsts = [adhoc_select.key_of(node, items, context) for node in on]
        nodes = [item.node for item in items if item.node is not None]
        nodes += [key.node for key in (*keys, *firsts) if key.output is None]
        filters = [having.this] if having is not None else []
        if group or filters or adhoc_groups.has_aggregates(nodes, rows.bound):
            self.refuse_rows_beside_aggregates(query, context)
            grouped = adhoc_groups.grouped_nodes(group, items, rows)
            for node in [*adhoc_groups.topmost_of([*nodes, *filters], rows.bound), *grouped]:
                bind_subqueries(node, rows, self)
            by, sets = adhoc_groups.keys_of_groups(query, items, rows)
            rows, items = adhoc_groups.group(rows, by, sets, items, [*nodes, *filters], self.steps)
            for node in filters:
                bind_subqueries(node, rows, self)
                rows.filter(rows.scalars.condition(node))
        for node in nodes:
            bind_subqueries(node, rows, self)
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
        tag = [substitute(base.tag, moved)] if base else []
        made = adhoc_select.last(rows, tag, values, sort, first, distinct is not None and not on,
                                 adhoc_select.limit_of(query, context), self.steps)
        untyped = {place: value for place, value in enumerate(values)
                   if isinstance(value, Literal) and value.type == UNKNOWN}
        return Found(made, names, untyped)

    def rows(self, query: exp.Select, context: Context, base: Base | None) -> SelectRows:
        """The rows of FROM, joined to the outer rows of `base`."""
        relation, outer = (base.relation, base.scopes) if base else (None, ())
        scope, clause = Scope(), query.args.get("from_")
        if clause is not None:
            items = QueryFrom(self, context, outer)
            relation, scope = items.items(clause.this, query.args.get("joins") or [], relation, Scope())
        return SelectRows(relation or bind_select.one_row(context), (scope, *outer), context, base)

    def refuse_rows_beside_aggregates(self, query: exp.Select, context: Context) -> None:
        """Refuse a function that returns rows in the SELECT list of a query with aggregates."""
        if any(isinstance(node, exp.Anonymous) and returns_rows(node.name.lower(), self.steps)
               for item in query.expressions for node in item.walk(prune=lambda node: isinstance(node, exp.Query))):
            raise context.refuse(query, "a function that returns rows is not supported beside aggregates",
                                 "write it in FROM")

    def where(self, condition: exp.Expr, rows: SelectRows) -> None:
        """WHERE: the conditions without subqueries first, then those with subqueries."""
        parts: Sequence[exp.Expr] = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
        plain = [part for part in parts if part.find(exp.Query) is None]
        rows.filter(conjunction(tuple(rows.scalars.condition(part) for part in plain)))
        for part in parts:
            if part.find(exp.Query) is not None:
                bind_subqueries(part, rows, self)
                rows.filter(rows.scalars.condition(part))


def _final(error: UnsupportedSQL | UnknownName) -> bool:
    """Whether splitting cannot mend the error. It can mend an unknown column, since steps see outer columns."""
    return error.wrong if isinstance(error, UnsupportedSQL) else error.kind not in OF_NAMES


def _read(made: Made, names: Sequence[str]) -> exp.Select:
    """A query that reads a step's table."""
    columns = [exp.to_identifier(name, quoted=True) for name in names]
    table = exp.to_identifier(made.name, quoted=True)
    alias = exp.TableAlias(this=table.copy(), columns=columns)
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Table(this=table, alias=alias)))


def _reads(query: exp.Expr, name: str) -> bool:
    """Whether a query reads a table of that name."""
    return any(isinstance(table.this, exp.Identifier) and name_of(table) == name for table in query.find_all(exp.Table))


def _move_order(query: exp.Expr) -> None:
    """Move ORDER BY and LIMIT of a bare VALUES to the query around it."""
    if isinstance(query, exp.Select) and (values := bare_values(query)) is not None:
        for key in ("order", "limit", "offset"):
            if clause := values.args.get(key):
                values.set(key, None)
                query.set(key, clause)
                values.set("alias", exp.TableAlias(this=exp.to_identifier("values")))


def _name_windows(query: exp.Select, context: Context) -> None:
    """Replace the names of windows by their definitions in WINDOW."""
    defined: dict[str, exp.Window] = {}
    for window in query.args.get("windows") or ():
        _extend(window, defined, context)
        defined[name_of(window.this)] = window
    for window in list(query.walk(prune=lambda node: isinstance(node, exp.Query) and node is not query)):
        if isinstance(window, exp.Window) and window.arg_key != "windows":
            _extend(window, defined, context)


def _extend(window: exp.Window, defined: dict[str, exp.Window], context: Context) -> None:
    """Copy the clauses of the window that a window names into it."""
    name = window.args.get("alias")
    if name is None or name_of(name) not in defined:
        return
    for key in ("partition_by", "order", "spec"):
        value = defined[name_of(name)].args.get(key)
        if value and window.args.get(key):
            raise wrong(window, context, f"{key.partition('_')[0].upper()} repeats a clause of window {name_of(name)}")
        if value:
            window.set(key, [part.copy() for part in value] if isinstance(value, list) else value.copy())
    window.set("alias", None)

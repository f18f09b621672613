"""Binds FROM: tables, views, subqueries, table functions and joins, from left to right.

Every item extends the relation, so that a LATERAL item can read all items to its left. Scopes are separate from the
relation: a JOIN's condition sees only the items that it joins, and USING merges only their columns.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.bind import select as bind_select  # for subqueries: the two modules call each other
from halfjoin.sql.bind.aggregates import aggregates_in
from halfjoin.sql.bind.context import CommonTable, Context, Looped
from halfjoin.sql.bind.function import bind_calls, bind_scalar, is_scalar, renamed, rows_from
from halfjoin.sql.bind.presence import with_presence
from halfjoin.sql.bind.quantified import has_subquery
from halfjoin.sql.bind.reading import outer_columns
from halfjoin.sql.bind.reduced import bind_reduce, table_argument, takes_table
from halfjoin.sql.bind.row_sequence import carried, in_sequence
from halfjoin.sql.bind.rows import BothSides, Rows
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import FromItem, Scope, Visible
from halfjoin.sql.bind.selected import column_for
from halfjoin.sql.bind.subqueries import bind_values, filtered
from halfjoin.sql.bind.system_functions import not_in_catalog
from halfjoin.sql.bind.tables import schema_within, sequence_name, system_name
from halfjoin.sql.bind.unmaintained import refuse_join, side_of
from halfjoin.sql.bind.windows import windows_in
from halfjoin.sql.expr import TRUE, Column, Expr, Literal, conjunction, conjuncts, substitute
from halfjoin.sql.parse.locate import bare_values, catalog_name, name_of, only, schema_of, written
from halfjoin.sql.parse.parse import parse_query
from halfjoin.sql.relation import Filter, Join, Outer, Project, Relation, Scan, SortKey, Values
from halfjoin.sql.system import SEQUENCE

Bound = tuple[Relation, Scope]


def bind_from(query: exp.Select, context: Context, base: Relation | None,
              outer: tuple[Scope, ...]) -> tuple[Relation | None, Scope]:
    """The relation of a FROM clause on top of `base`, and its scope."""
    clause, joins = query.args.get("from_"), query.args.get("joins") or []
    if clause is None:
        return base, Scope()
    return From(context, outer, through=base is not None).items(clause.this, joins, base, Scope())


class From:
    """Binds the items of one FROM clause."""

    def __init__(self, context: Context, outer: tuple[Scope, ...], through: bool = False) -> None:
        """`through`: the items are bound on top of the outer rows, so a subquery in FROM cannot read these."""
        self.context, self.outer = context, outer
        self.derived_outer = () if through else outer

    def items(self, first: exp.Expr, joins: list[exp.Join], relation: Relation | None, left: Scope) -> Bound:
        """Items with their joins; commas bind looser than JOIN. `left`: the scope further left, for LATERAL."""
        groups: list[tuple[exp.Expr, list[exp.Join]]] = [(first, [])]
        for join in joins:
            if join.meta.get("comma"):
                refuse_join(join, self.context)
                groups.append((join.this, []))
            else:
                groups[-1][1].append(join)
        total = Scope()
        for item, chain in groups:
            before = visible(left, total)
            if relation is not None and any(side_of(join) in ("RIGHT", "FULL") for join in chain):
                added, group = self.chain(item, chain, None, before)  # all rows to the left are beside all of its rows
                relation, group = self.lateral_item(relation, added, before, group)
            else:
                relation, group = self.chain(item, chain, relation, before)
            with self.context.at(item):
                total = total.beside(group)
        assert relation is not None
        return relation, total

    def chain(self, first: exp.Expr, joins: list[exp.Join], relation: Relation | None, left: Scope) -> Bound:
        """An item and the JOINs after it, without commas."""
        relation, group = self.item(first, relation, left)
        for join in joins:
            relation, group = self.joined(join, relation, group, left)
        return relation, group

    def joined(self, join: exp.Join, relation: Relation, group: Scope, left: Scope) -> Bound:
        """One more JOIN; `group` is the scope that it joins to. LATERAL sees it, unless its rows may be missing, and
        `left`, the scope further left."""
        refuse_join(join, self.context)
        if side_of(join):
            return self.outer_join(join, relation, group, left)
        relation, item = self.item(join.this, relation, visible(left, group))
        return self.join(join, relation, group, item)

    def join(self, join: exp.Join, relation: Relation, left: Scope, right: Scope) -> Bound:
        """Join two scopes, with the condition as a filter."""
        with self.context.at(join):
            if join.args.get("using") or join.text("method"):
                merged, condition = self.using(join, left, right)
                relation = Filter(relation, condition) if merged else relation
                return self.named_merged(join, relation, left.merged(right, merged), merged)
            scope = left.beside(right)
            if join.args.get("on"):
                scalars = Scalars(self.context, (scope, *self.outer), self.context.lifted)
                self.note(join.args["on"], scalars)
                relation = filtered(relation, scalars, join.args["on"])
            return relation, scope

    def outer_join(self, join: exp.Join, relation: Relation, group: Scope, left: Scope) -> Bound:
        """LEFT, RIGHT or FULL JOIN. The right side is bound by itself; if it reads the left one, it is LATERAL.

        So is the side that may be missing if a subquery in ON reads both sides.
        """
        side = side_of(join)
        right, item = self.item(join.this, None, visible(left, group) if side == "LEFT" else left)
        if side != "RIGHT":
            right, item = with_presence(right, item, join, self.context)
        if side != "LEFT":
            relation, group = with_presence(relation, group, join, self.context)
        with self.context.at(join):
            merged: list[Visible] = []
            if join.args.get("using") or join.text("method"):
                merged, on = self.using(join, group, item)
            else:
                scalars = Scalars(self.context, (group.beside(item), *self.outer), self.context.lifted)
                self.note(join.args["on"], scalars)
                rows = Rows([relation, right], scalars)
                try:
                    bind_values(rows, [join.args["on"]])
                    (relation, right), on = rows.relations, rows.scalars.condition(join.args["on"])
                except BothSides:
                    return self.within(join, relation, right, group, item, scalars)
            if self.reads(right, relation):
                made = self.beside(relation, right, visible(left, group), item, on)
            elif side == "RIGHT":
                made = Outer(right, relation, on)
            else:
                made = Outer(relation, right, on, full=side == "FULL")
            group = group if side == "LEFT" else group.nullable()
            item = item if side == "RIGHT" else item.nullable()
            if side != "LEFT":
                merged = [_merged(column, group, item, side) for column in merged]
            return self.named_merged(join, made, group.merged(item, merged), merged)

    def within(self, join: exp.Join, left: Relation, right: Relation, group: Scope, item: Scope,
               scalars: Scalars) -> Bound:  # fmt: skip
        """LEFT or RIGHT JOIN, of which ON is a condition in the side that may be missing, which is LATERAL."""
        condition, side = join.args["on"], side_of(join)
        if side == "FULL":
            raise self.context.refuse(condition, "a subquery in the condition of a FULL JOIN may read one side only",
                                      "write LEFT JOIN, and UNION ALL with NULLs beside the right side's rows WHERE "
                                      "NOT EXISTS (SELECT ... FROM the left side WHERE the condition)")
        if side == "RIGHT":
            made = self.beside(right, filtered(left, scalars, condition), item, group, TRUE)
            return made, group.nullable().beside(item)
        made = self.beside(left, filtered(right, scalars, condition), group, item, TRUE)
        return made, group.beside(item.nullable())

    def named_merged(self, join: exp.Join, relation: Relation, scope: Scope, merged: list[Visible]) -> Bound:
        """USING (...) AS name: the name has the merged columns, and is seen beside the joined items."""
        if (alias := join.meta.get("alias")) is None:
            return relation, scope
        unique = self.context.aliases.fresh(name_of(alias))
        columns = [(column.name, column_for(f"{unique}.{column.name}", column.expr)) for column in merged]
        kept = ((column, column) for column in relation.columns)
        made = zip((column for _, column in columns), (column.expr for column in merged), strict=True)
        return Project(relation, (*kept, *made)), scope.beside(Scope((FromItem(name_of(alias), tuple(columns)),)))

    @staticmethod
    def reads(right: Relation, left: Relation) -> bool:
        """Whether a relation reads columns of another as outer ones."""
        return not outer_columns(right).keys().isdisjoint(column.name for column in left.columns)

    def beside(self, relation: Relation, right: Relation, left: Scope, item: Scope, on: Expr | None) -> Relation:
        """Each row with the rows of a LATERAL item, which reads it. `on`: of a LEFT JOIN, None for an inner one."""
        rows = Rows([relation], Scalars(self.context, (left, *self.outer), self.context.lifted))
        inner = rows.inner(right, joined=True)
        if not inner.single:
            whole = conjunction((*inner.on, *([] if on is None else conjuncts(on))))
            if on is not None:
                return Outer(relation, inner.relation, whole)
            return Filter(Join((relation, inner.relation)), whole)
        rows.join(inner)
        shown = [column for source in item.sources for _, column in (*source.columns, *source.hidden)]
        values = [inner.meanings[column.name] for column in shown]
        if on is not None:
            there = conjunction((*inner.having, *conjuncts(substitute(on, inner.meanings))))
            values = [functions.resolve("case", (there, value, Literal(None, value.type))) for value in values]
        made = rows.relations[0]
        if on is None and inner.having:
            made = Filter(made, conjunction(inner.having))
        kept = ((column, column) for column in relation.columns)
        return Project(made, (*kept, *zip(shown, values, strict=True)))

    def using(self, join: exp.Join, left: Scope, right: Scope) -> tuple[list[Visible], Expr]:
        """The merged columns of USING or NATURAL, and the condition that their two sides are equal."""
        if join.args.get("using"):
            nodes = [node.this if isinstance(node, exp.Column) else node for node in join.args["using"]]
            names = [name_of(node) for node in nodes]
        else:
            shared = {column.name for column in right.visible}
            names = [column.name for column in left.visible if column.name in shared]
            nodes = [join] * len(names)
        merged, conditions = [], []
        for node, name in zip(nodes, names, strict=True):
            with self.context.at(node):
                a, b = left.column(name), right.column(name)
                if a is None or b is None:
                    known = [column.name for column in (left if a is None else right).visible]
                    raise UnknownName("column", name, known)
                conditions.append(functions.resolve("=", (a, b)))
                owner = next(column.table for column in left.visible if column.name == name)
                merged.append(Visible(name, functions.cast(a, functions.common_type([a.type, b.type])), owner))
        return merged, conjunction(tuple(conditions))

    def item(self, node: exp.Expr, relation: Relation | None, left: Scope) -> Bound:
        """One item on top of the relation to its left."""
        if nested := node.args.get("joins"):
            alone = node.copy()
            alone.set("joins", None)
            return self.items(alone, nested, relation, left)
        if isinstance(node, exp.Lateral):
            return self.lateral(node, relation, left)
        inner = node.this if isinstance(node, exp.Subquery) else None
        if isinstance(inner, (exp.Table, exp.Lateral)) or (isinstance(inner, exp.Subquery) and _joined(inner)):
            only(node, self.context.sql, "FROM", ("this", "alias"))
            if node.args.get("alias"):
                return self.aliased(node, relation, left)
            return self.item(node.this, relation, left)
        if isinstance(node, exp.Table) and takes_table(node.this):
            return self.reduced(node, relation, left)
        if isinstance(node, exp.Table) and (isinstance(node.this, exp.Anonymous) or node.args.get("rows_from")
                                            or is_scalar(node.this, self.context)):
            only(node, self.context.sql, "FROM", ("this", "rows_from", "alias", "ordinality"))
            return self._call(node, relation, left)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            added, source = self.table(node)
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Values):  # in parentheses, before a JOIN
            only(node, self.context.sql, "FROM", ("this", "alias"))
            added, source = self.subquery(node.this, node.args.get("alias"), left)
        elif isinstance(node, (exp.Subquery, exp.Values)):
            added, source = self.subquery(node, node.args.get("alias"), left)
        else:
            raise self.context.refuse(node, f"{written(node)} is not supported in FROM",
                                      "write a table, a view, a subquery or a table function")
        return beside(relation, added), Scope.of(source)

    def aliased(self, node: exp.Expr, relation: Relation | None, left: Scope) -> Bound:
        """Joined items in parentheses with an alias, which hides their names."""
        made, scope = From(self.context, (left, *self.outer)).item(node.this, None, Scope())
        selected = bind_select.Selected(made, tuple((column.name, column.expr) for column in scope.visible))
        right, source = self.derived(selected, node.args["alias"], "")
        return self.lateral_item(relation, right, left, Scope.of(source))

    def lateral(self, node: exp.Lateral, relation: Relation | None, left: Scope) -> Bound:
        """LATERAL: a subquery or call that reads the items to its left."""
        only(node, self.context.sql, "LATERAL", ("this", "alias", "ordinality"))
        if takes_table(node.this):
            return self.reduced(node, relation, left)
        if isinstance(node.this, exp.Anonymous) or is_scalar(node.this, self.context):
            return self._call(node, relation, left)
        if not isinstance(node.this, exp.Subquery):
            raise self.context.refuse(node, "LATERAL takes a subquery or a table function", "leave LATERAL out")
        if relation is not None and _is_plain(node.this, self.context):
            selected = bind_select.select(node.this, self.context, relation, (left, *self.outer))
            name, unique, names = self.named(node.args.get("alias"), "", selected.names)
            added = bind_select.project(selected.renamed(names), bind_select.qualified(unique), carry=True)
            outputs = added.columns[len(added.columns) - len(names):]
            return added, Scope.of(FromItem(name, tuple(zip(names, outputs, strict=True))))
        selected = bind_select.select(node.this, self.context, None, (left, *self.outer))
        right, source = self.derived(selected, node.args.get("alias"), "")
        return self.lateral_item(relation, right, left, Scope.of(source))

    def lateral_item(self, relation: Relation | None, right: Relation, left: Scope, item: Scope) -> Bound:
        """The rows so far with those of an item that may read them."""
        if relation is not None and self.reads(right, relation):
            return self.beside(relation, right, left, item, None), item
        return beside(relation, right), item

    def reduced(self, node: exp.Table | exp.Lateral, relation: Relation | None, left: Scope) -> Bound:
        """A call of the user's reduce. As any function in FROM, it may read the items to its left."""
        argument = table_argument(node, self.context)
        inside = From(self.context, (left, *self.outer))
        rows, scope = inside.item(argument.this, None, Scope())
        scalars = Scalars(self.context, (scope, *inside.outer), self.context.lifted)
        made, source = bind_reduce(node, argument, rows, scalars)
        return self.lateral_item(relation, made, left, Scope.of(source))

    def _call(self, node: exp.Table | exp.Lateral, relation: Relation | None, left: Scope) -> Bound:
        if relation is None:
            relation = Values(self.context.aliases.fresh("row"), (), ((),))
        scalars = Scalars(self.context, (left, *self.outer), self.context.lifted)
        ordinality, rows = bool(node.args.get("ordinality")), Rows([relation], scalars)
        if not node.args.get("rows_from") and is_scalar(node.this, self.context):
            self.note(node.this, scalars)
            bind_values(rows, [node.this])
            made, source = bind_scalar(node.this, node.args.get("alias"), ordinality, rows.relations[0], rows.scalars)
            return made, Scope.of(source)
        calls = rows_from(node, self.context)
        for call in calls:
            self.note(call, scalars)
        bind_values(rows, calls)
        bound, source = bind_calls(calls, node.args.get("alias"), ordinality, rows.relations[0], rows.scalars)
        if self.context.ordered:
            bound, order = in_sequence(bound)
            source = replace(source, order=order)
        return bound, Scope.of(source)

    def note(self, node: exp.Expr, scalars: Scalars) -> None:
        """Tell a trial of an expression in FROM, which may have aggregates of the queries around."""
        if self.context.trial is not None:
            self.context.trial.note(node, scalars)

    def subquery(self, node: exp.Expr, alias: exp.TableAlias | None, left: Scope) -> tuple[Relation, FromItem]:
        """A subquery without LATERAL, which cannot read the items to its left."""
        try:
            selected = bind_select.select(node, self.context, None, self.derived_outer)
        except UnknownName as error:
            if error.kind in ("column", "table or alias") and _lends(left, error.name):
                raise UnsupportedSQL(f"{error.name} is to the left of the subquery, and not visible in it",
                                     remedy="write LATERAL before the subquery", sql=error.sql, line=error.line,
                                     column=error.column, wrong=True) from None
            raise
        return self.derived(selected, alias, "")

    def derived(self, selected: bind_select.Selected, alias: exp.TableAlias | None,
                 default: str) -> tuple[Relation, FromItem]:
        """An item of FROM whose columns are a query's outputs."""
        name, unique, names = self.named(alias, default, selected.names)
        namer = bind_select.qualified(unique)
        relation = bind_select.project(selected.renamed(names), namer)
        order: tuple[SortKey, ...] = ()
        columns = tuple(zip(names, relation.columns, strict=True))
        if self.context.ordered and selected.order:
            relation, order = carried(selected, relation, namer)
        return relation, FromItem(name, columns, order=order)

    def table(self, node: exp.Table) -> tuple[Relation, FromItem]:
        """A table, a view or a query of WITH."""
        context, own, alias = self.context, name_of(node), node.args.get("alias")
        common = context.common.get(own) if node.args.get("db") is None else None
        if common is None and (system := system_name(node, context.schema, context.sql)) is not None:
            return self.system(node, system, own)
        table = catalog_name(node, context.sql)
        if node.args.get("sample"):
            raise context.refuse(node, "TABLESAMPLE is not supported: a view must not depend on chance",
                                 "write a condition that picks rows, such as id % 100 = 0")
        only(node, context.sql, "FROM", ("this", "db", "catalog", "alias", "only"))  # no table inherits from another
        if common is not None:
            selected = self.common(common)
            names = renamed(selected.names, exp.TableAlias(columns=list(common.columns)), table, context)
            relation, item = self.derived(selected.renamed(names), alias, table)
            return relation, replace(item, schema=schema_within(common.query, own, item.name))
        if (text := context.schema.plain_view(table)) is not None:
            inner = replace(context, sql=text, common={})
            relation, item = self.derived(bind_select.select(parse_query(text), inner), alias, own)
            return relation, item if alias is not None else replace(item, schema=schema_of(node, context.sql))
        columns = context.schema.columns(table)
        if columns is None:
            if (sequence := sequence_name(table, context.schema)) is not None:
                return self.system(node, sequence, own)
            with context.at(node):
                raise UnknownName("table or view", table, [*context.common, *context.schema.names()])
        name, unique, names = self.named(alias, own, [column.name for column in columns])
        qualified = tuple(Column(f"{unique}.{column.name}", column.type, column.nullable) for column in columns)
        context.note_rows(qualified)
        schema = "" if alias is not None else schema_of(node, context.sql)
        return Scan(table, unique, qualified), FromItem(name, tuple(zip(names, qualified, strict=True)), schema=schema)

    def system(self, node: exp.Table, table: str, own: str) -> tuple[Relation, FromItem]:
        """A table of PostgreSQL's catalog, in a query."""
        context, schema = self.context, table.partition(".")[0]
        columns = context.system.columns(table) if context.system is not None else None
        if context.system is None:
            what = "a sequence" if table.startswith(SEQUENCE) else f"{schema}, which changes with definitions"
            raise context.refuse(node, f"a view cannot read {what}", "read it in a query")
        if columns is None:
            with context.at(node):
                raise not_in_catalog("table", table, context.system.names())
        only(node, context.sql, "FROM", ("this", "db", "catalog", "alias", "only"))
        name, unique, names = self.named(node.args.get("alias"), own, [column.name for column in columns])
        qualified = tuple(replace(column, name=f"{unique}.{column.name}") for column in columns)
        hidden = tuple((one.name, replace(one, name=f"{unique}.{one.name}")) for one in context.system.hidden())
        scan = Scan(table, unique, (*qualified, *(column for _, column in hidden)))
        schema = schema if node.args.get("alias") is None else ""
        return scan, FromItem(name, tuple(zip(names, qualified, strict=True)), hidden=hidden, schema=schema)

    def common(self, table: CommonTable) -> bind_select.Selected:
        """The outputs of a query of WITH."""
        aliases = self.context.aliases
        if isinstance(table.query, Looped):
            scan = table.query.scan(aliases)
            return bind_select.Selected(scan, tuple(zip(table.query.names, scan.columns, strict=True)))
        context = replace(table.context, aliases=aliases, ordered=self.context.ordered)
        return bind_select.select(table.query, context, None, table.outer)

    def named(self, alias: exp.TableAlias | None, default: str, columns: list[str]) -> tuple[str, str, list[str]]:
        """The item's name in this query, a unique form of that name, and its columns' names, all from its alias."""
        name = name_of(alias.this) if alias is not None and alias.this else default
        unique = self.context.aliases.fresh(name or "subquery")
        return name or unique, unique, renamed(columns, alias, name or "the subquery", self.context)


def _merged(column: Visible, left: Scope, right: Scope, side: str) -> Visible:
    """A merged column of RIGHT JOIN, the right side's, or of FULL JOIN, the first that is not NULL."""
    values = [left.column(column.name)] if side == "FULL" else []
    values.append(right.column(column.name))
    typed = [functions.cast(value, column.expr.type) for value in values if value is not None]
    return replace(column, expr=functions.resolve("coalesce", typed) if len(typed) > 1 else typed[0])


def beside(relation: Relation | None, added: Relation) -> Relation:
    """Every combination of two relations' rows."""
    if relation is None:
        return added
    return Join((*relation.inputs, added) if isinstance(relation, Join) else (relation, added))


def visible(*scopes: Scope) -> Scope:
    """All scopes as one, for LATERAL. It allows repeated names, which `Scope.beside` refuses later."""
    return Scope(tuple(source for scope in scopes for source in scope.sources),
                 tuple(column for scope in scopes for column in scope.visible))


def _is_plain(query: exp.Expr, context: Context) -> bool:
    """Whether a LATERAL subquery only joins, filters and computes, so that it can be bound on top of the rows to its
    left."""
    query = query.unnest()
    values = query if isinstance(query, exp.Values) else bare_values(query)
    if values is not None:
        ordered = any(values.args.get(key) for key in ("order", "limit", "offset"))
        return not ordered and not any(map(has_subquery, values.expressions))
    if not isinstance(query, exp.Select):
        return isinstance(query, exp.Table)
    clauses = ("group", "having", "distinct", "limit", "offset", "windows", "qualify", "order", "with_")
    items = filter(None, [query.args.get("from_"), *(query.args.get("joins") or [])])
    if any(query.args.get(key) for key in clauses) or any(map(has_subquery, items)):
        return False
    return not aggregates_in(query.expressions, Scalars(context, ())) and not windows_in(query.expressions, {})


def _joined(item: exp.Subquery) -> bool:
    """Whether parentheses hold joined items, and no query."""
    return bool(item.args.get("joins")) or isinstance(item.unnest(), (exp.Table, exp.Lateral))


def _lends(scope: Scope, name: str) -> bool:
    table, _, column = name.rpartition(".")
    return any(source.name in (name, table) for source in scope.sources) or any(
        visible.name == column for visible in scope.visible)

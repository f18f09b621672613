"""FROM of queries: all that views support, plus outer joins, subqueries as steps, and any LATERAL subquery.

An outer join is an inner join over numbered rows: the engine joins the numbered rows by the condition, whatever it
is, and DuckDB adds the unmatched rows, by their numbers alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnknownName, UnsupportedSQL
from halfjoin.sql import functions
from halfjoin.sql.adhoc.rows import Base, Found, Numbered, number, restored
from halfjoin.sql.bind import select as bind_select
from halfjoin.sql.bind.context import Context
from halfjoin.sql.bind.from_clause import Bound, From, beside, visible
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import FromItem, Scope, Visible
from halfjoin.sql.bind.unmaintained import refuse_join
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.relation import Filter, Join, Relation

if TYPE_CHECKING:
    from halfjoin.sql.adhoc.split import Splitter

OF_NAMES = ("column", "table or alias")  # kinds of unknown names that an outer query may know


class QueryFrom(From):
    """Binds the items of one FROM clause, with steps for the items that no view supports."""

    def __init__(self, splitter: Splitter, context: Context, outer: tuple[Scope, ...]) -> None:
        super().__init__(context, outer)
        self.splitter = splitter

    def items(self, first: exp.Expr, joins: list[exp.Join], relation: Relation | None, left: Scope) -> Bound:
        """As for views; a group with an outer join is bound alone first, without the items to its left or around it."""
        if not any(_side(join) for join in joins):
            return super().items(first, joins, relation, left)
        groups = _groups(first, joins)
        if relation is None and len(groups) == 1:
            return super().items(first, joins, relation, left)
        total = Scope()
        for head, group in groups:
            try:
                with self.splitter.steps.attempt():
                    apart = QueryFrom(self.splitter, self.context, ())
                    added, scope = From.items(apart, head, group, None, Scope())
                relation = beside(relation, added)
            except UnknownName as error:
                if error.kind not in OF_NAMES or relation is None:
                    raise
                if any(_side(join) in ("RIGHT", "FULL") for join in group):
                    raise self.context.refuse(head, f"{error.name} cannot be read below a RIGHT or FULL JOIN",
                                              "write the condition in WHERE") from error
                relation, scope = From.items(self, head, group, relation, visible(left, total))
            with self.context.at(head):
                total = total.beside(scope)
        assert relation is not None
        return relation, total

    def joined(self, join: exp.Join, relation: Relation, group: Scope, left: Scope) -> Bound:
        """Bind one more JOIN, inner or outer."""
        side = _side(join)
        if not side:
            return super().joined(join, relation, group, left)
        inner = join.copy()
        inner.set("side", None)
        inner.set("kind", None)
        refuse_join(inner, self.context)
        steps, aliases = self.splitter.steps, self.context.aliases
        lefts, rights = number(relation, steps, aliases), None
        if side == "LEFT":
            both, item = self.item(join.this, lefts.relation, left)
        else:
            added, item = self.item(join.this, None, Scope())
            rights = number(added, steps, aliases)
            both = beside(lefts.relation, rights.relation)
        merged, condition = self._condition(join, group, item)
        there = {column.name for column in lefts.relation.columns}
        padding = [column for column in both.columns if column.name not in there]
        if rights is None:
            matched = steps.evaluate(Filter(both, condition), [lefts.tag, *padding])
            columns = [*_of("l", lefts), *(f"m.c{i}" for i in range(2, len(padding) + 2))]
            text = f'"{lefts.made.name}" l LEFT JOIN "{matched.name}" m ON m.c1 = l.{lefts.number}'
        else:
            matched = steps.evaluate(Filter(both, condition), [lefts.tag, rights.tag])
            columns = [*_of("l", lefts), *_of("r", rights)]
            kept, word = f'"{lefts.made.name}" l', "LEFT JOIN" if side == "RIGHT" else "FULL JOIN"
            if side == "RIGHT":
                text = (f'"{rights.made.name}" r LEFT JOIN "{matched.name}" m ON m.c2 = r.{rights.number} '
                        f"LEFT JOIN {kept} ON m.c1 = l.{lefts.number}")
            else:
                text = (f'"{matched.name}" m {word} {kept} ON m.c1 = l.{lefts.number} '
                        f'{word} "{rights.made.name}" r ON m.c2 = r.{rights.number}')
        old = [*lefts.relation.columns, *padding]
        made = steps.compute(f"SELECT {', '.join(columns)} FROM {text}", [column.type for column in old])
        new = [replace(column, nullable=True) for column in old]
        after = {column.name: column for column in new}
        if side in ("RIGHT", "FULL"):
            merged = [self._merged(side, column, group, item) for column in merged]
        both_sides = group.mapped(after).merged(item.mapped(after), Scope((), tuple(merged)).mapped(after).visible)
        return restored(made.scan(aliases), new), both_sides

    def _condition(self, join: exp.Join, group: Scope, item: Scope) -> tuple[list[Visible], Expr]:
        with self.context.at(join):
            if join.args.get("using") or join.text("method"):
                return self.using(join, group, item)
            scope = group.beside(item)
            return [], Scalars(self.context, (scope, *self.outer)).condition(join.args["on"])

    @staticmethod
    def _merged(side: str, column: Visible, group: Scope, item: Scope) -> Visible:
        """The column of USING: the right side's for RIGHT JOIN, the first that is not NULL for FULL JOIN."""
        left, right = group.column(column.name), item.column(column.name)
        assert left is not None and right is not None
        value = functions.cast(right, column.expr.type)
        if side == "FULL":
            value = functions.resolve("coalesce", (functions.cast(left, column.expr.type), value))
        return replace(column, expr=value)

    def item(self, node: exp.Expr, relation: Relation | None, left: Scope) -> Bound:
        """One item; a subquery that reads columns of the outer queries is computed for each of their rows."""
        alias = node.args.get("alias")
        plain = isinstance(node, exp.Values) or (isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query))
        if not plain or node.args.get("joins"):
            return super().item(node, relation, left)
        try:
            with self.splitter.steps.attempt():
                return super().item(node, relation, left)
        except UnknownName as error:
            if error.kind not in OF_NAMES or relation is None or not self.outer:
                raise
            return self._through(node, alias, relation, self.outer)

    def lateral(self, node: exp.Lateral, relation: Relation | None, left: Scope) -> Bound:
        """A LATERAL subquery, bound as in a view if possible, or else computed for each row to its left."""
        try:
            with self.splitter.steps.attempt():
                return super().lateral(node, relation, left)
        except (UnsupportedSQL, UnknownName) as error:
            final = error.wrong if isinstance(error, UnsupportedSQL) else error.kind not in OF_NAMES
            if final or relation is None or not isinstance(node.this, exp.Subquery):
                raise
        return self._through(node.this, node.args.get("alias"), relation, (left, *self.outer))

    def _through(self, node: exp.Expr, alias: exp.TableAlias | None, relation: Relation,
                 scopes: tuple[Scope, ...]) -> Bound:
        """The relation, joined with a subquery that is computed for each of its rows."""
        rows = number(relation, self.splitter.steps, self.context.aliases)
        found = self.splitter.query(node.copy(), self.context, Base(rows.relation, rows.tag, scopes))
        scan = found.made.scan(self.context.aliases)
        name, _, names = self.named(alias, "", list(found.names))
        both = Filter(Join((rows.relation, scan)), functions.resolve("=", (rows.tag, scan.columns[0])))
        return both, Scope.of(FromItem(name, tuple(zip(names, scan.columns[1:], strict=True))))

    def subquery(self, node: exp.Expr, alias: exp.TableAlias | None, left: Scope) -> tuple[Relation, FromItem]:
        """A subquery, bound as in a view if possible, or else as a step."""
        try:
            return super().subquery(node, alias, left)
        except UnsupportedSQL as error:
            if error.wrong:
                raise
        return self.derived(self._selected(self.splitter.query(node.copy(), self.context)), alias, "")

    def _selected(self, found: Found) -> bind_select.Selected:
        scan = found.made.scan(self.context.aliases)
        columns: tuple[Column, ...] = scan.columns
        return bind_select.Selected(scan, tuple(zip(found.names, columns, strict=True)))


def _side(join: exp.Join) -> str:
    return str(join.text("side") or "").upper()


def _of(alias: str, numbered: Numbered) -> list[str]:
    return [f"{alias}.{column.name}" for column in numbered.made.columns]


def _groups(first: exp.Expr, joins: list[exp.Join]) -> list[tuple[exp.Expr, list[exp.Join]]]:
    """The items between commas, each with its joins."""
    groups: list[tuple[exp.Expr, list[exp.Join]]] = [(first, [])]
    for join in joins:
        if join.meta.get("comma"):
            groups.append((join.this, []))
        else:
            groups[-1][1].append(join)
    return groups

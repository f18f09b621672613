"""Binds queries: SELECT, VALUES, UNION ALL and WITH, from syntax trees to relations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind.context import Aliases, CommonTable, Context
from halfjoin.sql.bind.from_clause import bind_from
from halfjoin.sql.bind.function import list_calls, numbered
from halfjoin.sql.bind.output_names import output_name
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.unmaintained import ON_TOP, refuse_clauses, refuse_set_operation
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.parse.locate import bare_values, name_of, only
from halfjoin.sql.relation import Filter, Project, Relation, UnionAll, Values
from halfjoin.sql.types import TEXT, UNKNOWN, SqlType

Namer = Callable[[str], str]


@dataclass(frozen=True)
class Selected:
    """A query whose outputs do not yet have unique names and final types: expressions over a relation's columns."""

    input: Relation
    items: tuple[tuple[str, Expr], ...]

    @property
    def names(self) -> list[str]:
        """The outputs' names."""
        return [name for name, _ in self.items]

    def renamed(self, names: Sequence[str]) -> Selected:
        """The same outputs under other names."""
        return Selected(self.input, tuple((name, expr) for name, (_, expr) in zip(names, self.items, strict=True)))


def select(query: exp.Expr, context: Context, base: Relation | None = None,
           outer: tuple[Scope, ...] = ()) -> Selected:
    """A query's outputs. For LATERAL, `base` is the relation to the left, and `outer` the scopes that it can read."""
    if isinstance(query, exp.Subquery):
        only(query, context.sql, "a subquery", ("this", "alias", "with_"))
        return select(query.this, _with(query, context), base, outer)
    if (values := bare_values(query)) is not None:
        return _values(values, _with(query, context), base, outer)
    if isinstance(query, exp.Select):
        return _select(query, _with(query, context), base, outer)
    if isinstance(query, exp.Values):
        return _values(query, _with(query, context), base, outer)
    if isinstance(query, exp.SetOperation):
        refuse_set_operation(query, context)
        if base is not None:
            raise context.refuse(query, "LATERAL (... UNION ALL ...) is not supported",
                                 "write LATERAL (VALUES (...), (...))")
        return _union(query, _with(query, context))
    raise context.refuse(query, f"{query.key.upper()} is not supported as a query")


def project(selected: Selected, namer: Namer, types: Sequence[SqlType] | None = None, carry: bool = False) -> Project:
    """The outputs as columns, named by `namer` and cast to `types` (default: their own types, text for unknown).

    `carry` puts the input's columns in front of the outputs.
    """
    items: list[tuple[Column, Expr]] = [(column, column) for column in selected.input.columns] if carry else []
    for position, (name, expr) in enumerate(selected.items):
        type = types[position] if types else TEXT if expr.type == UNKNOWN else expr.type
        typed = functions.cast(expr, type)
        items.append((Column(namer(name), typed.type, _nullable(typed)), typed))
    return Project(selected.input, tuple(items))


def qualified(alias: str) -> Namer:
    """A namer that returns `alias.column`, and numbers repeated names."""
    columns = Aliases()
    return lambda column: f"{alias}.{columns.fresh(column)}"


def one_row(context: Context) -> Values:
    """The relation of a SELECT without FROM: one row without columns."""
    return Values(context.aliases.fresh("row"), (), ((),))


def _nullable(expr: Expr) -> bool:
    match expr:
        case Column():
            return expr.nullable
        case Literal():
            return expr.value is None
        case _:
            return True


def _with(query: exp.Expr, context: Context) -> Context:
    """The context plus the queries of the WITH clause; each query sees the ones before it."""
    clause = query.args.get("with_")
    if clause is None:
        return context
    if clause.args.get("recursive"):
        raise context.unmaintained(clause, "WITH RECURSIVE is", ON_TOP)
    for item in common_tables(clause, context):
        alias = item.args["alias"]
        table = CommonTable(item.this, tuple(alias.args.get("columns") or ()), context)
        context = replace(context, common={**context.common, name_of(alias.this): table})
    return context


def common_tables(clause: exp.With, context: Context) -> list[exp.CTE]:
    """The queries of a WITH clause; UnsupportedSQL if two have the same name."""
    names = set()
    for item in clause.expressions:
        only(item, context.sql, "WITH", ("this", "alias", "materialized"))
        name = name_of(item.args["alias"].this)
        if name in names:
            raise context.refuse(item, f"WITH has two queries {name}", "give one another name")
        if not isinstance(item.this, exp.Query):
            raise context.refuse(item, "WITH takes queries only", "run the other statement first")
        names.add(name)
    return list(clause.expressions)


def _select(query: exp.Select, context: Context, base: Relation | None, outer: tuple[Scope, ...]) -> Selected:
    refuse_clauses(query, context)
    relation, scope = bind_from(query, context, base, outer)
    if relation is None:
        relation = one_row(context)
    scalars = Scalars(context, (scope, *outer))
    if query.args.get("where"):
        relation = Filter(relation, scalars.condition(query.args["where"].this))
    relation, bound = list_calls(query.expressions, relation, scalars)
    scalars = replace(scalars, bound=bound)
    items: list[tuple[str, Expr]] = []
    for node in query.expressions:
        items += star(node, scope, context) or [(output_name(node), scalars.value(node.unalias()))]
    return Selected(relation, tuple(items))


def star(node: exp.Expr, scope: Scope, context: Context) -> list[tuple[str, Expr]] | None:
    """The columns that `*` or `t.*` means; None for another expression."""
    written = node.this if isinstance(node, exp.Column) else node
    if not isinstance(written, exp.Star):
        return None
    if any(written.args.values()):
        raise context.refuse(node, "* takes no EXCEPT or REPLACE", "name the columns")
    if isinstance(node, exp.Column):
        with context.at(node):
            return list(scope.star(name_of(node.args["table"])))
    if not scope.sources:
        raise context.refuse(node, "SELECT * needs FROM")
    return [(column.name, column.expr) for column in scope.visible]


def _values(query: exp.Values, context: Context, base: Relation | None, outer: tuple[Scope, ...]) -> Selected:
    only(query, context.sql, "VALUES", ("expressions", "alias", "with_"))
    scalars = Scalars(context, outer)
    rows = [scalars.values(row.expressions if isinstance(row, exp.Tuple) else [row]) for row in query.expressions]
    for node, row in zip(query.expressions, rows, strict=True):
        if len(row) != len(rows[0]):
            raise context.refuse(node, f"a row of VALUES has {len(row)} values, the first one {len(rows[0])}")
    names = [f"column{position + 1}" for position in range(len(rows[0]))]
    if len(rows) == 1:
        return Selected(base or one_row(context), tuple(zip(names, rows[0], strict=True)))
    with context.at(query):
        types = [common(column) for column in zip(*rows, strict=True)]
    typed = [[functions.cast(value, type) for value, type in zip(row, types, strict=True)] for row in rows]
    if base is not None:
        return _choice(base, names, typed, context)
    alias = context.aliases.fresh("values")
    columns = tuple(Column(f"{alias}.{name}", type) for name, type in zip(names, types, strict=True))
    items = tuple(zip(names, columns, strict=True))
    return Selected(Values(alias, columns, tuple(tuple(row) for row in typed)), items)


def _choice(base: Relation, names: list[str], rows: list[list[Expr]], context: Context) -> Selected:
    """VALUES that read columns to the left: repeat each left row; its n-th copy takes the values of the n-th row."""
    relation, number = numbered(base, len(rows), context)
    items = []
    for position, name in enumerate(names):
        args: list[Expr] = []
        for index, row in enumerate(rows[:-1]):
            args += [functions.resolve("=", (number, Literal(index + 1, number.type))), row[position]]
        items.append((name, functions.resolve("case", (*args, rows[-1][position]))))
    return Selected(relation, tuple(items))


def _union(query: exp.SetOperation, context: Context) -> Selected:
    branches = [select(branch, context) for branch in _branches(query, context)]
    width = len(branches[0].items)
    if any(len(branch.items) != width for branch in branches):
        raise context.refuse(query.expression, "the parts of UNION ALL have different numbers of columns")
    with context.at(query.expression):
        types = [common([branch.items[i][1] for branch in branches]) for i in range(width)]
    namer = qualified(context.aliases.fresh("union"))
    parts = tuple(project(branch, qualified(context.aliases.fresh("union")), types) for branch in branches)
    columns = []
    for position, name in enumerate(branches[0].names):
        nullable = any(part.columns[position].nullable for part in parts)
        columns.append(Column(namer(name), types[position], nullable))
    return Selected(UnionAll(parts, tuple(columns)), tuple(zip(branches[0].names, columns, strict=True)))


def _branches(query: exp.SetOperation, context: Context) -> list[exp.Expr]:
    """The parts of a chain of UNION ALL; a nested UNION ALL with its own WITH counts as one part.

    The context already has the WITH of the outermost one.
    """
    parts: list[exp.Expr] = []
    waiting = [query.expression, query.this]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.SetOperation) and not part.args.get("with_"):
            refuse_set_operation(part, context)
            waiting += [part.expression, part.this]
        else:
            parts.append(part)
    return parts


def common(values: Sequence[Expr]) -> SqlType:
    """The common type of the values; text if all are untyped literals."""
    types = [value.type for value in values if value.type != UNKNOWN]
    return functions.common_type(types) if types else TEXT

"""Binds queries: SELECT, VALUES, set operations and WITH, from syntax trees to relations."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind.aggregates import aggregates_in
from halfjoin.sql.bind.context import CommonTable, Context, Looped
from halfjoin.sql.bind.from_clause import bind_from
from halfjoin.sql.bind.function import key_calls, list_calls, numbered
from halfjoin.sql.bind.groups import group, grouped_nodes, is_grouped
from halfjoin.sql.bind.iteration import iterative
from halfjoin.sql.bind.locking import check_locks
from halfjoin.sql.bind.loops import looped, mutual
from halfjoin.sql.bind.ordering import Clauses, ordered_outputs
from halfjoin.sql.bind.outer_aggregates import outer_aggregates
from halfjoin.sql.bind.outputs import outputs_of
from halfjoin.sql.bind.quantified import has_subquery
from halfjoin.sql.bind.recursion import dependent, reads
from halfjoin.sql.bind.row_sequence import KEY, asks, in_sequence
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.scope import Scope
from halfjoin.sql.bind.search_cycle import rewritten
from halfjoin.sql.bind.selected import Selected, common, one_row, project, qualified
from halfjoin.sql.bind.set_operations import set_operation
from halfjoin.sql.bind.subqueries import equal_to_keys, filtered, with_values
from halfjoin.sql.bind.unmaintained import refuse_clauses, refuse_lateral, refuse_set_operation
from halfjoin.sql.bind.windows import alias_columns, defined_by, windows_in, with_windows
from halfjoin.sql.expr import Column, Expr, Literal
from halfjoin.sql.functions.chance import CHANCE
from halfjoin.sql.parse.locate import bare_values, name_of, only
from halfjoin.sql.parse.syntax import Iterate, IterativeWith, MutualWith
from halfjoin.sql.relation import Filter, Relation, SortKey, TableFunction, Values
from halfjoin.sql.types import INTEGER

__all__ = ["Selected", "common", "common_tables", "one_row", "over", "project", "qualified", "select",
           "with_queries"]


def select(query: exp.Expr, context: Context, base: Relation | None = None,
           outer: tuple[Scope, ...] = ()) -> Selected:
    """A query's outputs. For LATERAL, `base` is the relation to the left, and `outer` the scopes that it can read."""
    if isinstance(query, exp.Subquery):
        only(query, context.sql, "a subquery", ("this", "alias", "with_"))
        return select(query.this, with_queries(query, context, outer), base, outer)
    if (values := bare_values(query)) is not None:
        return _ordered_values(values, with_queries(query, context, outer), base, outer)
    if isinstance(query, exp.Select):
        return _select(query, with_queries(query, context, outer), base, outer)
    if isinstance(query, exp.Values):
        return _ordered_values(query, with_queries(query, context, outer), base, outer)
    if isinstance(query, exp.SetOperation):
        refuse_set_operation(query, context)
        if base is not None:
            raise context.refuse(query, "LATERAL (... UNION ALL ...) is not supported",
                                 "write LATERAL (VALUES (...), (...))")
        return set_operation(query, with_queries(query, replace(context, ordered=False), outer), outer)
    raise context.refuse(query, f"{query.key.upper()} is not supported as a query", "write SELECT or VALUES")


def with_queries(query: exp.Expr, context: Context, outer: tuple[Scope, ...]) -> Context:
    """The context plus the queries of the WITH clause; each query sees the ones before it, and the outer columns.

    Those of WITH RECURSIVE see all others.
    """
    clause = query.args.get("with_")
    if clause is None:
        return context
    recursive = clause.args.get("recursive")
    items = common_tables(clause, context)
    if isinstance(clause, MutualWith):
        return mutual(clause, items, context, outer)
    if isinstance(clause, IterativeWith):
        return iterative(clause, items, context, outer)
    for item in dependent(items) if recursive else items:
        alias = item.args["alias"]
        name, (inner, columns) = name_of(alias.this), rewritten(item, context, outer)
        itself = recursive and reads(inner, name)
        if _by_chance(inner) and len([one for one in query.find_all(exp.Table) if name_of(one) == name]) > 1:
            raise context.refuse(item, f"{name} depends on chance and is read twice, each time with other values",
                                 "keep its rows in a table first: CREATE TABLE x AS SELECT ...")
        made: exp.Query | Looped = looped(inner, name, columns, context, outer) if itself else inner
        table = CommonTable(made, columns, context, outer)
        context = replace(context, common={**context.common, name: table})
    return context


def _by_chance(query: exp.Expr) -> bool:
    return any(call.name.lower() in CHANCE for call in query.find_all(exp.Anonymous))


def common_tables(clause: exp.With, context: Context) -> list[exp.CTE]:
    """The queries of a WITH clause; UnsupportedSQL if two have the same name."""
    names = set()
    for item in clause.expressions:
        only(item, context.sql, "WITH", ("this", "alias", "materialized", "search", "cycle"))
        name = name_of(item.args["alias"].this)
        if name in names:
            raise context.refuse(item, f"WITH has two queries {name}", "give one another name")
        plain = clause.args.get("recursive") and not isinstance(clause, (MutualWith, IterativeWith))
        for key in ("search", "cycle"):
            if item.args.get(key) and not plain:
                raise context.wrong(item.args[key], f"{key.upper()} needs WITH RECURSIVE")
        if not isinstance(item.this, Iterate if isinstance(clause, IterativeWith) else exp.Query):
            if isinstance(clause, IterativeWith):
                raise context.refuse(item, f"{name} in WITH ITERATIVE needs a start and a step",
                                     "write name AS (start ITERATE step)")
            raise context.refuse(item, "WITH takes queries only", "run the other statement first")
        names.add(name)
    return list(clause.expressions)


def _select(query: exp.Select, context: Context, base: Relation | None, outer: tuple[Scope, ...]) -> Selected:
    """The clauses in the order of their meaning: FROM, WHERE, GROUP BY, HAVING, windows, the SELECT list, the rest."""
    refuse_clauses(query, context)
    check_locks(query, context)
    ordered, context = base is None and asks(query, context), replace(context, ordered=False)
    relation, scope = bind_from(query, replace(context, ordered=ordered), base, outer)
    if relation is None:
        relation = one_row(context)
    return _clauses(query, context, relation, scope, base, outer, ordered)


def over(query: exp.Select, context: Context, relation: Relation, scope: Scope) -> Selected:
    """The outputs of a query without FROM, over rows that are bound already."""
    return _clauses(query, context, relation, scope, None, ())


def _clauses(query: exp.Select, context: Context, relation: Relation, scope: Scope, base: Relation | None,
             outer: tuple[Scope, ...], ordered: bool = False) -> Selected:
    """The clauses after FROM. `ordered`: something depends on the order of the rows."""
    scalars = Scalars(context, (scope, *outer), context.lifted)
    if context.trial is not None:
        context.trial.note(query, scalars)
    if query.args.get("where"):
        relation = filtered(relation, scalars, query.args["where"].this)
    bound: dict[int, Expr] = {}
    outputs = outputs_of(query, scalars, bound)
    scalars = scalars.binding(bound)
    last = Clauses(query, outputs, scalars)
    nodes = [*(output.node for output in outputs), *last.nodes, *defined_by(query)]
    conditions = [query.args[key].this for key in ("having", "qualify") if query.args.get(key)]
    lifted = outer_aggregates([*nodes, *conditions], scalars)
    grouped = bool(lifted) or is_grouped(query, [*nodes, *conditions], scalars)
    if grouped:
        refuse_lateral(base, query, context)
        keys = grouped_nodes(query.args.get("group"), outputs, scalars)
        inside = [*aggregates_in([*nodes, *conditions], scalars), *lifted, *keys]
        relation, scalars = with_values(relation, scalars, inside)
        scalars = equal_to_keys(keys, [*nodes, *conditions], scalars)
        relation, calls = key_calls(keys, nodes, relation, scalars)
        scalars = scalars.binding(calls)
        relation, scalars = group(query, outputs, [*nodes, *conditions], lifted, relation, scalars)
    if query.args.get("having"):
        relation = filtered(relation, scalars, query.args["having"].this)
    qualify = query.args.get("qualify")
    windowed = [*nodes, *([qualify.this] if qualify else [])]
    for told in ([output.node for output in outputs], last.distinct) if query.args.get("distinct") else ():
        relation, scalars = with_values(relation, scalars, told)  # ORDER BY may have the same subqueries
        scalars = equal_to_keys(told, last.nodes, scalars)
    relation, scalars = with_values(relation, scalars, windowed)
    windowed_rows = bool(windows_in(windowed, scalars.bound))
    if windowed_rows:
        refuse_lateral(base, query, context)
    relation, scalars = with_windows(query, windowed, relation, scalars)
    if qualify:
        relation = Filter(relation, alias_columns(qualify.this, outputs, scalars).condition(qualify.this))
    relation, calls = list_calls([*query.expressions, *last.nodes], relation, scalars)
    last.check_calls(calls, outputs)
    scalars = scalars.binding(calls)
    order = scope.order if ordered and not grouped and not windowed_rows else ()
    if ordered and calls and (order or not scope.sources):
        assert isinstance(relation, TableFunction)
        relation, numbers = in_sequence(relation)
        order = (*order, *numbers)
    selected = Selected(relation, tuple((output.name, scalars.value(output.node)) for output in outputs), order)
    if not last:
        return selected
    refuse_lateral(base, query, context)
    return last.apply(selected, scalars)


def _ordered_values(query: exp.Values, context: Context, base: Relation | None, outer: tuple[Scope, ...]) -> Selected:
    """VALUES with ORDER BY and LIMIT. Rows with subqueries are queries of their own."""
    limited = bool(query.args.get("limit") or query.args.get("offset"))
    ordered, context = context.ordered or limited, replace(context, ordered=False)
    if any(map(has_subquery, query.expressions)):
        selected = select(_as_queries(query, context), context, base, outer)
    else:
        selected = _values(query, context, base, outer, ordered)
    if any(query.args.get(key) for key in ("order", "limit", "offset")):
        refuse_lateral(base, query, context)
        return ordered_outputs(query, selected, "VALUES", context, outer)
    return selected


def _values(query: exp.Values, context: Context, base: Relation | None, outer: tuple[Scope, ...],
            ordered: bool) -> Selected:  # fmt: skip
    only(query, context.sql, "VALUES", ("expressions", "alias", "with_", "order", "limit", "offset"))
    scalars = Scalars(context, outer, context.lifted)
    if context.trial is not None:
        context.trial.note(query, Scalars(context, (Scope(), *outer)))
    rows = [scalars.values(row.expressions if isinstance(row, exp.Tuple) else [row]) for row in query.expressions]
    for node, row in zip(query.expressions, rows, strict=True):
        if len(row) != len(rows[0]):
            raise context.wrong(node, f"a row of VALUES has {len(row)} values, the first one {len(rows[0])}")
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
    if ordered:
        number = Column(f"{alias}.{KEY}", INTEGER, nullable=False)
        numbered_rows = tuple((*row, Literal(place, INTEGER)) for place, row in enumerate(typed, 1))
        return Selected(Values(alias, (*columns, number), numbered_rows), items, (SortKey(number),))
    return Selected(Values(alias, columns, tuple(tuple(row) for row in typed)), items)


def _as_queries(query: exp.Values, context: Context) -> exp.Query:
    """VALUES as SELECT (...) UNION ALL SELECT (...)."""
    made: exp.Query | None = None
    for row in query.expressions:
        values = row.expressions if isinstance(row, exp.Tuple) else [row]
        names = (exp.to_identifier(f"column{position + 1}") for position in range(len(values)))
        one = exp.Select(expressions=[exp.Alias(this=value.copy(), alias=name)
                                      for value, name in zip(values, names, strict=True)])
        made = one if made is None else exp.Union(this=made, expression=one, distinct=False)
    assert made is not None
    return made


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

"""Binds subqueries as values: scalar ones, EXISTS, IN, ANY, ALL and ARRAY; alone, or for each outer row."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from sqlglot import exp

from halfjoin.errors import UnknownName
from halfjoin.sql import functions
from halfjoin.sql.adhoc.rows import Base, Found, Numbered, number, restored
from halfjoin.sql.adhoc.script import Made
from halfjoin.sql.adhoc.select import SelectRows
from halfjoin.sql.bind import temporal as bind_temporal
from halfjoin.sql.bind.scalar import compared, members_of
from halfjoin.sql.expr import FALSE, Column, Expr, Literal
from halfjoin.sql.relation import Filter, Join
from halfjoin.sql.types import BOOLEAN, INTEGER, Kind, SqlType, array

if TYPE_CHECKING:
    from halfjoin.sql.adhoc.split import Splitter

_MORE = "error('more than one row returned by a subquery used as an expression')"


def bind_subqueries(node: exp.Expr, rows: SelectRows, splitter: Splitter) -> None:
    """Bind the subqueries in an expression to values over the rows, which get columns for them."""
    for found in _outermost(node, rows.bound):
        with rows.context.at(found):
            rows.bound[id(found)] = _value(found, rows, splitter)


def _outermost(node: exp.Expr, bound: dict[int, Expr]) -> Iterator[exp.Expr]:
    """The nodes that turn a subquery into a value, operands first, except those inside other subqueries."""
    if id(node) in bound:
        return
    if isinstance(node, exp.Query):
        yield node
        return
    if isinstance(node, exp.Exists) or _listed(node) is not None:
        yield node
        return
    if _quantified(node) is not None:
        yield from _outermost(node.this, bound)
        yield node
        return
    for child in node.iter_expressions():
        yield from _outermost(child, bound)


def _quantified(node: exp.Expr) -> tuple[str, bool, exp.Query] | None:
    """For `x IN (..)`, `x < ANY (..)`, `x <> ALL (..)`: the operator, whether it must hold for all rows, the query."""
    if isinstance(node, exp.In):
        query = node.args.get("query")
        return None if query is None else ("=", False, query)
    operator = bind_temporal.COMPARISONS.get(type(node))
    right = node.args.get("expression")
    if operator is None or right is None:
        return None
    every = isinstance(right, exp.All) or right.name.lower() == "all"
    if isinstance(right, exp.Anonymous) and right.name.lower() in ("all", "some") and right.expressions:
        right = right.expressions[0]
    elif isinstance(right, (exp.Any, exp.All)):
        right = right.this
    else:
        return None
    query = right.unnest()
    return (operator, every, query) if isinstance(query, exp.Query) else None


def _listed(node: exp.Expr) -> exp.Query | None:
    """The query of ARRAY(query), None for another node."""
    if not isinstance(node, exp.Array) and not (isinstance(node, exp.Anonymous) and node.name.lower() == "array"):
        return None
    queries = [item for item in node.expressions if isinstance(item, exp.Query)]
    return queries[0] if len(node.expressions) == 1 and queries else None


def _value(node: exp.Expr, rows: SelectRows, splitter: Splitter) -> Expr:
    steps = splitter.steps
    if (parts := _quantified(node)) is not None:
        return _comparison(node, *parts, rows, splitter)
    if (query := _listed(node)) is not None:
        return _array(query, rows, splitter)
    if isinstance(node, exp.Exists):
        found, around = _found(_bare(node.this), rows, splitter)
        if around is None:
            return _single(steps.compute(f'SELECT count(*) > 0 FROM "{found.made.name}"', [BOOLEAN]), rows)
        there = steps.compute(f'SELECT DISTINCT c1 FROM "{found.made.name}"', [around.tag.type])
        return _beside(rows, around, there, "v.c1 IS NOT NULL", BOOLEAN, splitter)
    assert isinstance(node, exp.Query)
    found, around = _found(node, rows, splitter)
    if len(found.names) != 1:
        raise rows.context.refuse(node, "a subquery as a value must have one column")
    made = found.made
    type = made.columns[-1].type
    if around is None:
        text = f'SELECT CASE WHEN count(*) > 1 THEN {_MORE} ELSE first(c1) END FROM "{made.name}"'
        return _single(steps.compute(text, [type]), rows)
    text = f'SELECT c1, CASE WHEN count(*) > 1 THEN {_MORE} ELSE first(c2) END FROM "{made.name}" GROUP BY c1'
    return _beside(rows, around, steps.compute(text, [around.tag.type, type]), "v.c2", type, splitter)


def _bare(query: exp.Expr) -> exp.Expr:
    """The query of an EXISTS, without its outputs if they cannot matter."""
    plain = ("expressions", "from_", "joins", "where", "with_")
    if not isinstance(query, exp.Select) or any(value and key not in plain for key, value in query.args.items()):
        return query
    if not all(isinstance(item, (exp.Star, exp.Literal)) for item in query.expressions):
        return query
    query = query.copy()
    query.set("expressions", [exp.Boolean(this=True)])
    return query


def _found(query: exp.Expr, rows: SelectRows, splitter: Splitter) -> tuple[Found, Numbered | None]:
    """The subquery as a step: alone if possible, else for each of the rows, which are then numbered."""
    try:
        with splitter.steps.attempt():
            return splitter.query(query.copy(), rows.context), None
    except UnknownName as error:
        if error.kind not in ("column", "table or alias"):
            raise
    around = number(rows.relation, splitter.steps, rows.context.aliases)
    return splitter.query(query.copy(), rows.context, Base(around.relation, around.tag, rows.scopes)), around


def _single(made: Made, rows: SelectRows) -> Expr:
    """The value of a step with one row and one column."""
    scan = made.scan(rows.context.aliases)
    column: Column = scan.columns[0]
    rows.singles[column.name] = scan
    return column


def _beside(rows: SelectRows, around: Numbered, values: Made, value: str, type: SqlType, splitter: Splitter) -> Expr:
    """Add a column to the rows: `value`, DuckDB's text over the table `v`, which has at most one row for each tag."""
    types = [*(column.type for column in around.made.columns), type]
    text = (f'SELECT o.*, {value} FROM "{around.made.name}" o LEFT JOIN "{values.name}" v '
            f"ON v.c1 = o.{around.number}")
    scan = splitter.steps.compute(text, types).scan(rows.context.aliases)
    column = Column(f"{rows.context.aliases.fresh('subquery')}.value", scan.columns[-1].type)
    rows.relation = restored(scan, [*around.relation.columns, column])
    return column


def _array(query: exp.Query, rows: SelectRows, splitter: Splitter) -> Expr:
    """ARRAY(query): the query's rows, in its order."""
    found, around = _found(query, rows, splitter)
    element = found.made.columns[-1].type
    if len(found.names) != 1 or element.kind is Kind.ARRAY:
        raise rows.context.refuse(query, "ARRAY takes a subquery of one column, not itself an array")
    numbered = f'(SELECT *, row_number() OVER () AS place FROM "{found.made.name}")'
    if around is None:
        text = f"SELECT coalesce(list(c1 ORDER BY place), []) FROM {numbered} AS made"
        return _single(splitter.steps.compute(text, [array(element)]), rows)
    text = f"SELECT c1, list(c2 ORDER BY place) FROM {numbered} AS made GROUP BY c1"
    lists = splitter.steps.compute(text, [around.tag.type, array(element)])
    return _beside(rows, around, lists, "coalesce(v.c2, [])", array(element), splitter)


def _comparison(
    node: exp.Expr, operator: str, every: bool, query: exp.Query, rows: SelectRows, splitter: Splitter
) -> Expr:
    """`x = ANY (query)` and similar: true, false, or NULL if the answer depends on a NULL."""
    members = members_of(node.this) or [node.this]
    values = rows.scalars.values(members)
    rows.relation = rows.with_singles(values)
    found, around = _found(query, rows, splitter)
    if len(members) != len(found.names):
        raise rows.context.refuse(node, f"{len(members)} values are compared with {len(found.names)} columns")
    if around is None:
        if operator == "=" and not every and len(members) == 1:
            return _membership(values[0], found, rows, splitter)
        around, correlated = number(rows.relation, splitter.steps, rows.context.aliases), False
    else:
        correlated = True
    scan = found.made.scan(rows.context.aliases)
    columns = scan.columns[1:] if correlated else scan.columns
    pairs = Join((around.relation, scan))
    both = Filter(pairs, functions.resolve("=", (around.tag, scan.columns[0]))) if correlated else pairs
    made = splitter.steps.evaluate(both, [around.tag, compared(operator, values, columns)])
    met = "NOT bool_and(c2)" if every else "bool_or(c2)"
    verdicts = (f"SELECT c1, CASE WHEN {met} THEN {not every} WHEN count(c2) < count(*) THEN NULL ELSE {every} END "
                f'FROM "{made.name}" GROUP BY c1')
    decided = splitter.steps.compute(verdicts, [around.tag.type, BOOLEAN])
    return _beside(rows, around, decided, f"CASE WHEN v.c1 IS NULL THEN {every} ELSE v.c2 END", BOOLEAN, splitter)


def _membership(value: Expr, found: Found, rows: SelectRows, splitter: Splitter) -> Expr:
    """`x IN (query)` for an uncorrelated query: the engine joins on equality, and a count finds empty or NULL rows."""
    steps, aliases, made = splitter.steps, rows.context.aliases, found.made
    around = number(rows.relation, steps, aliases)
    distinct = steps.compute(f'SELECT DISTINCT c1 FROM "{made.name}" WHERE c1 IS NOT NULL', [made.columns[0].type])
    scan = distinct.scan(aliases)
    equal = functions.resolve("=", (value, scan.columns[0]))
    matched = steps.evaluate(Filter(Join((around.relation, scan)), equal), [around.tag])
    once = steps.compute(f'SELECT DISTINCT c1 FROM "{matched.name}"', [around.tag.type])
    holds = f'SELECT CASE WHEN count(*) = 0 THEN 0 WHEN count(c1) < count(*) THEN 2 ELSE 1 END FROM "{made.name}"'
    holding = _single(steps.compute(holds, [INTEGER]), rows)
    is_there = _beside(rows, around, once, "v.c1 IS NOT NULL", BOOLEAN, splitter)
    null = functions.resolve("or", (functions.resolve("is null", (value,)),
                                    functions.resolve("=", (holding, Literal(2, INTEGER)))))
    nothing = functions.resolve("=", (holding, Literal(0, INTEGER)))
    return functions.resolve("case", (is_there, Literal(True, BOOLEAN), nothing, FALSE, null, Literal(None, BOOLEAN),
                                      FALSE))


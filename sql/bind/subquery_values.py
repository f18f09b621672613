"""The values of subqueries: scalar ones, ARRAY, and EXISTS, IN, ANY and ALL where they are not conditions of their own.

The rows are joined with the subquery, grouped by what it is correlated by. The value is an expression over its columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind.correlation import Inner, pair_of
from halfjoin.sql.bind.quantified import Quantified, array_of, exists, quantified, row_comparison
from halfjoin.sql.bind.records import of_records
from halfjoin.sql.bind.row_order import compared
from halfjoin.sql.bind.rows import Found, Rows
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.selected import known
from halfjoin.sql.expr import FALSE, TRUE, Call, Column, Expr, Literal, columns_of, conjunction, conjuncts, substitute
from halfjoin.sql.functions.aggregates import resolve_aggregate
from halfjoin.sql.functions.nested_arrays import shaped
from halfjoin.sql.functions.record_values import is_record, is_there, members
from halfjoin.sql.relation import AggregateCall, Filter, Outer, Project, Scan, TopK, Values
from halfjoin.sql.types import BIGINT, BOOLEAN, UNKNOWN, array

ZERO = Literal(0, BIGINT)
NULL = Literal(None, BOOLEAN)


def value_of(rows: Rows, node: exp.Expr) -> Expr:
    """The value of a node that `quantified.outermost` finds."""
    if (query := exists(node)) is not None:
        return _exists(rows, rows.found(query, loose=True).inner)
    if (query := array_of(node)) is not None:
        return _array(rows, query)
    if (asked := quantified(node)) is not None:
        return _any_or_all(rows, asked)
    if (comparison := row_comparison(node)) is not None:
        found = rows.found(comparison.query)
        left = rows.members(Quantified(comparison.members, comparison.operator, False, comparison.query), found)
        return compared(comparison.operator, left, _scalar(rows, found))
    found = rows.found(node)
    if len(found.values) != 1:
        raise rows.scalars.context.wrong(node, "subquery must return only one column")
    return _scalar(rows, found)[0]


def _exists(rows: Rows, inner: Inner) -> Expr:
    if inner.single:
        if not inner.having:
            return TRUE
        rows.join(inner)
        return functions.resolve("is true", (conjunction(inner.having),))
    (count,) = rows.grouped(inner, [resolve_aggregate("count", ())])
    return _positive(count)


def _scalar(rows: Rows, found: Found) -> list[Expr]:
    """The outputs in the subquery's only row; NULLs if it has none. With several rows the values are errors."""
    inner = found.inner
    match inner:
        case Inner(Values(columns=(), rows=((),)), on=()):  # SELECT without FROM
            return list(found.values)
    if inner.single:
        rows.join(inner)
        return [_if(conjunction(inner.having), value) if inner.having else value for value in found.values]
    if _at_most_one(inner, rows.scalars):
        return _joined(rows, found)
    own = {column.name: column for column in inner.relation.columns}
    read: dict[Expr, None] = {}
    for value in found.values:
        names = columns_of(value)
        read |= {value: None} if names and names <= own.keys() else {own[name]: None for name in names & own.keys()}
    calls = [resolve_aggregate("count", ()), *(AggregateCall("any_value", (one,), one.type) for one in read)]
    count, *results = rows.grouped(inner, calls)
    kept = dict(zip(read, results, strict=True))
    columns = {one.name: result for one, result in kept.items() if isinstance(one, Column)}
    values = (kept.get(value) or _if(_positive(count), substitute(value, columns)) for value in found.values)
    return [functions.resolve("single row", (value, count)) for value in values]


def _at_most_one(inner: Inner, scalars: Scalars) -> bool:
    """Whether a subquery has at most one row for each outer row, as its LIMIT or a key says."""
    relation, own = inner.relation, {column.name for column in inner.relation.columns}
    pairs = (pair_of(condition, own) for condition in inner.on)
    fixed = {pair.mine.name for pair in pairs if pair is not None and isinstance(pair.mine, Column)}
    while True:
        match relation:
            case TopK(partition=partition, limit=1, with_ties=False):
                return all(isinstance(key, Column) and key.name in fixed for key in partition)
            case Project(input, items):
                fixed = {expr.name for column, expr in items if column.name in fixed and isinstance(expr, Column)}
                relation = input
            case Filter(input, predicate):
                for part in conjuncts(predicate):
                    match part:
                        case Call("=", (Column(name), other) | (other, Column(name))) if not columns_of(other):
                            fixed.add(name)
                relation = input
            case Scan(collection, alias):
                keys = scalars.context.schema.identifying(collection)
                return any(all(f"{alias}.{name}" in fixed for name in key) for key in keys)
            case _:
                return False


def _joined(rows: Rows, found: Found) -> list[Expr]:
    """The outputs of a subquery that has at most one row for each outer row. It is joined as it is."""
    inner, alias = found.inner, rows.scalars.context.aliases.fresh("value")
    own = {column.name for column in inner.relation.columns}
    there = Column(f"{alias}.there", BOOLEAN, nullable=False)
    items: list[tuple[Column, Expr]] = []
    values: list[Expr] = []
    for number, value in enumerate(found.values, 1):
        if columns_of(value) and columns_of(value) <= own:
            items.append((Column(f"{alias}.column{number}", value.type), value))
            values.append(items[-1][0])
        else:
            values.append(_if(functions.resolve("is not null", (there,)), value))
    read = frozenset[str]().union(*map(columns_of, (*inner.on, *values)))
    items += [(column, column) for column in inner.relation.columns if column.name in read]
    items += [(there, TRUE)] if there.name in read or not items else []
    place = rows.place(name for part in (*inner.on, *found.values) for name in columns_of(part))
    rows.relations[place] = Outer(rows.relations[place], Project(inner.relation, tuple(items)), conjunction(inner.on))
    nullable = {there.name: Column(there.name, BOOLEAN)}
    return [substitute(value, nullable) for value in values]


def _array(rows: Rows, query: exp.Expr) -> Expr:
    """ARRAY(query): the values of all rows, in the query's order."""
    selected, context = rows.selected(query, ordered=True), rows.scalars.context
    if len(selected.items) != 1:
        raise context.wrong(query, "subquery must return only one column")
    value = known(selected.values[0])
    alias = context.aliases.fresh("array")
    element = Column(f"{alias}.element", value.type)
    keys = [(Column(f"{alias}.key{number}", key.expr.type), key) for number, key in enumerate(selected.order, 1)]
    items = ((element, value), *((column, key.expr) for column, key in keys))
    inner = rows.inner(Project(selected.input, items), joined=False)
    nothing = functions.cast(Literal("{}", UNKNOWN), array(value.type))
    if inner.single:
        rows.join(inner)
        made = shaped(Call("array", (inner.meanings[element.name],), array(value.type)), "agg")
        return functions.resolve("case", (conjunction(inner.having), made, nothing)) if inner.having else made
    order = tuple(replace(key, expr=column) for column, key in keys)
    (values,) = rows.grouped(inner, [resolve_aggregate("array_agg", (element,), order=order)])
    return functions.resolve("coalesce", (shaped(values, "agg"), nothing))


def _any_or_all(rows: Rows, asked: Quantified) -> Expr:
    asked = of_records(asked, rows.scalars)
    found = rows.found(asked.query, distinct=True)
    left = rows.members(asked, found)
    if asked.records:
        same = tuple(functions.resolve("is not distinct from", pair) for pair in zip(left, found.values, strict=True))
        inner = Inner(found.inner.relation, (*found.inner.on, *same))
        (matches,) = rows.grouped(inner, [resolve_aggregate("count", ())])
        return functions.resolve("not", (_positive(matches),)) if asked.every else _positive(matches)
    if found.inner.single:
        rows.join(found.inner)
        met = compared(asked.operator, left, found.values)
        if not found.inner.having:
            return met
        return functions.resolve("case", (conjunction(found.inner.having), met, Literal(asked.every, BOOLEAN)))
    own = {column.name for column in found.inner.relation.columns}
    alone = all(columns_of(value) <= own for value in found.values)  # no output reads an outer column
    if alone and len(left) == 1 and asked.operator == ("<>" if asked.every else "="):
        is_in = _is_in(rows, left[0], found)
        return functions.resolve("not", (is_in,)) if asked.every else is_in
    return _counted(rows, asked, left)


def _is_in(rows: Rows, value: Expr, found: Found) -> Expr:
    """`x IN (query)`. It is NULL if no row equals x, and there are rows, and x or an output is NULL."""
    (output,) = found.values
    count = resolve_aggregate("count", ())
    equal = _equal_rows(value, output) if is_record(value) else (functions.resolve("=", (value, output)),)
    (matches,) = rows.grouped(Inner(found.inner.relation, (*found.inner.on, *equal)), [count])
    every, not_null = rows.grouped(found.inner, [count, resolve_aggregate("count", (output,))])
    missing = functions.resolve("is not true", (is_there(value),)) if is_record(value) else functions.resolve(
        "is null", (value,))  # ROW(NULL) is not NULL as a whole
    null = functions.resolve("or", (
        missing, functions.resolve("<", (not_null, every))))  # fmt: skip
    unknown = functions.resolve("and", (_positive(every), null))
    return functions.resolve("case", (_positive(matches), TRUE, unknown, NULL, FALSE))


def _equal_rows(value: Expr, output: Expr) -> tuple[Expr, ...]:
    """The conditions that say that two rows are equal: one for each member, to group by."""
    output = functions.cast(output, value.type)
    pairs = zip(members(value), members(output), strict=True)
    there = (functions.resolve("is true", (is_there(one),)) for one in (value, output) if is_there(one) != TRUE)
    return (*there, *(functions.resolve("is not distinct from", pair) for pair in pairs))


def _counted(rows: Rows, asked: Quantified, left: Sequence[Expr]) -> Expr:
    """`x < ANY (query)` and the like: for each x, whether there are rows that decide it, or that leave it unknown."""
    selected = rows.selected(asked.query)
    met = compared(asked.operator, left, [known(value) for _, value in selected.items])
    column = Column(f"{rows.scalars.context.aliases.fresh('compared')}.met", BOOLEAN)
    inner = rows.domain(Project(selected.input, ((column, met),)))
    decisive = functions.resolve("not", (column,)) if asked.every else column
    tests = decisive, functions.resolve("is null", (column,))
    decided, unknown = rows.grouped(inner, [resolve_aggregate("count", (), condition=test) for test in tests])
    return functions.resolve("case", (
        _positive(decided), Literal(not asked.every, BOOLEAN), _positive(unknown), NULL, Literal(asked.every, BOOLEAN)))


def _positive(count: Expr) -> Expr:
    """Whether a count is there and not 0."""
    return functions.resolve(">", (functions.resolve("coalesce", (count, ZERO)), ZERO))


def _if(condition: Expr, value: Expr) -> Expr:
    """The value where a condition is true, else NULL."""
    return functions.resolve("case", (condition, value, Literal(None, value.type)))

"""Binds subqueries in expressions: EXISTS, IN, ANY, ALL and scalar ones.

A condition of WHERE, HAVING or ON that is EXISTS, IN, ANY or ALL, or NOT one of them, is a semi- or anti-join. Anywhere
else a subquery is a value (see `subquery_values`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from halfjoin.sql import functions
from halfjoin.sql.bind.quantified import OPPOSITE, Quantified, exists, has_subquery, outermost, quantified
from halfjoin.sql.bind.records import of_records
from halfjoin.sql.bind.row_lists import without_lists
from halfjoin.sql.bind.row_order import compared
from halfjoin.sql.bind.rows import Found, Rows
from halfjoin.sql.bind.scalar import Scalars
from halfjoin.sql.bind.subquery_values import value_of
from halfjoin.sql.expr import Expr, columns_of, conjunction
from halfjoin.sql.relation import Filter, Relation, Semi


def filtered(relation: Relation, scalars: Scalars, condition: exp.Expr) -> Relation:
    """The rows for which a condition of WHERE, HAVING or ON is true."""
    parts = [without_lists(part, scalars)
             for part in (condition.flatten() if isinstance(condition, exp.And) else [condition])]  # fmt: skip
    if not any(map(has_subquery, parts)):
        return Filter(relation, scalars.condition(condition))
    plain = tuple(scalars.condition(part) for part in parts if not has_subquery(part))
    rows = Rows([Filter(relation, conjunction(plain)) if plain else relation], scalars)
    for part in filter(has_subquery, parts):
        with scalars.context.at(part):
            _keep(rows, part)
    return rows.relations[0]


def with_values(relation: Relation, scalars: Scalars, nodes: Iterable[exp.Expr]) -> tuple[Relation, Scalars]:
    """The rows beside what the subqueries in the nodes need, and the binder that knows the subqueries' values."""
    rows = Rows([relation], scalars)
    bind_values(rows, nodes)
    return rows.relations[0], rows.scalars


def equal_to_keys(keys: Iterable[exp.Expr], nodes: Iterable[exp.Expr], scalars: Scalars) -> Scalars:
    """The binder that knows the subqueries in the nodes that are written as those in keys of GROUP BY, which are bound.
    """
    known = {found: scalars.bound[id(found)] for key in keys if has_subquery(key) for found in outermost(key, {})
             if id(found) in scalars.bound}  # fmt: skip
    same = ((found, known.get(found)) for node in nodes for found in outermost(node, scalars.bound)) if known else ()
    return scalars.binding({id(found): value for found, value in same if value is not None})


def bind_values(rows: Rows, nodes: Iterable[exp.Expr]) -> None:
    """Bind the subqueries in the nodes as values."""
    for node in nodes:
        if has_subquery(node):
            for found in outermost(node, rows.scalars.bound):
                with rows.scalars.context.at(found):
                    rows.scalars = rows.scalars.binding({id(found): value_of(rows, found)})


def _keep(rows: Rows, part: exp.Expr) -> None:
    """Keep the rows for which a condition with subqueries is true."""
    node, negated = part, False
    while isinstance(node, (exp.Paren, exp.Not)):
        negated ^= isinstance(node, exp.Not)
        node = node.this
    asked = quantified(node)
    if (query := exists(node)) is not None:
        found = rows.found(query, loose=True, joined=True)
        if not found.inner.single:
            return _semi_join(rows, found, [], negated)
    elif asked is not None and not any(map(has_subquery, asked.members)):
        asked = of_records(asked, rows.scalars)
        found = rows.found(asked.query, distinct=True, joined=True)
        if not found.inner.single:
            return _semi_join(rows, found, *_compared(asked, rows.members(asked, found), found, negated))
    bind_values(rows, [part])
    rows.relations[0] = Filter(rows.relations[0], rows.scalars.condition(part))
    return None


def _semi_join(rows: Rows, found: Found, compared: list[Expr], anti: bool) -> None:
    on = [*found.inner.on, *compared]
    place = rows.place(name for part in on for name in columns_of(part))
    other = rows.only(found.inner.relation, on)
    rows.relations[place] = Semi(rows.relations[place], other, conjunction(tuple(on)), anti)


def _compared(asked: Quantified, left: Sequence[Expr], found: Found, negated: bool) -> tuple[list[Expr], bool]:
    """The conditions of a semi- or anti-join for ANY or ALL, and whether it is an anti-join.

    NOT (x = ANY ...) is true if for no row x = y is true or NULL; x < ALL ... if for no row x >= y is true or NULL.
    """
    if asked.records:
        same = [functions.resolve("is not distinct from", pair) for pair in zip(left, found.values, strict=True)]
        return same, asked.every != negated
    operator = OPPOSITE[asked.operator] if asked.every else asked.operator
    if asked.every == negated:
        return [compared(operator, left, found.values)], False
    parts = [(left, found.values)]
    if operator == "=":  # a row is not equal to another if one of its members is not
        parts = [((one,), (other,)) for one, other in zip(left, found.values, strict=True)]
    return [functions.resolve("is not false", (compared(operator, *part),)) for part in parts], True

"""Queries: a value that depends on chance is drawn once for each row, and all that read the row see the same value.

The normal form puts what a column means in its place. With `SELECT r FROM (SELECT random() AS r FROM t) q WHERE r > 0`
it would draw one value for the filter and another one for the output. So what a part of a query draws becomes a column
of a node (`planner.cut`), which has its rows computed once. Filters that draw, and the output of the whole query, are
computed once as they are.
"""

from __future__ import annotations

from collections.abc import Callable

from halfjoin.sql.bind.reading import changed, expressions
from halfjoin.sql.expr import Call, Column, Expr, columns_of, rewrite
from halfjoin.sql.functions.chance import CHANCE, draws
from halfjoin.sql.relation import Project, Relation, TableFunction, every_part


def depends_on_chance(relation: Relation) -> bool:
    """Whether a value in a relation depends on chance."""
    return any(draws(expr) for part in every_part(relation) for expr in expressions(part))


def is_drawn(relation: Relation) -> bool:
    """Whether a part of a query draws values that others may read."""
    return isinstance(relation, Project | TableFunction) and any(map(draws, expressions(relation)))


def drawn_below(relation: Relation, fresh: Callable[[], str]) -> tuple[tuple[tuple[Column, Expr], ...], Relation]:
    """What a part draws, under fresh names, and the part with these columns in place of the draws."""
    drawn: list[tuple[Column, Expr]] = []

    def column(expr: Expr) -> Expr:
        if not isinstance(expr, Call) or expr.function not in CHANCE:
            return expr
        drawn.append((Column(fresh(), expr.type, nullable=False), expr))
        return drawn[-1][0]

    made = changed(relation, lambda expr: rewrite(expr, column))
    return tuple(drawn), made


def reads_nothing(relation: Relation) -> bool:
    """Whether a part is a table function that reads no row: it runs once for all of them."""
    return isinstance(relation, TableFunction) and not any(map(columns_of, relation.args))

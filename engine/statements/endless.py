"""LIMIT over a WITH RECURSIVE that never ends: the rows come from its first rounds, and the others are not looked at.

    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n LIMIT 3

PostgreSQL makes rows until it has enough of them. Here the query is asked with its loop cut after one round more or
less, until the rounds are the fewest that have enough rows. A round of a loop that goes on makes a row at least, but a
condition may leave it out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

from halfjoin.engine.updates.updates import Updates
from halfjoin.sql.bind.query import BoundQuery
from halfjoin.sql.relation import READS_ITSELF, Filter, Loop, Project, Relation, with_inputs

_MOST = 1_000  # rounds that are tried


def first_rounds(bound: BoundQuery, evaluate: Callable[[Relation], Updates]) -> Updates | None:
    """The rows of the fewest rounds that have those which LIMIT and OFFSET ask for; None for a query that is not so, or
    has too few rows."""
    top = bound.top
    if top is None or top.limit is None or top.order or not _over_loop(bound.relation):
        return None
    wanted = top.limit + top.offset

    def enough(rounds: int) -> bool:
        return _count(evaluate(_cut(bound.relation, rounds))) >= wanted

    most = max(wanted, 1)
    while most <= _MOST and not enough(most):
        most *= 2
    if most > _MOST:
        return None
    rounds = 1 + bisect_left(range(1, most), True, key=enough)
    return evaluate(_cut(bound.relation, rounds))


def _over_loop(relation: Relation) -> bool:
    """Whether each row comes from one row of a loop that only adds rows."""
    while isinstance(relation, Project | Filter):
        relation = relation.input
    return isinstance(relation, Loop) and READS_ITSELF in relation.name


def _cut(relation: Relation, rounds: int) -> Relation:
    """The relation with a loop that ends after so many rounds."""
    if isinstance(relation, Loop):
        return replace(relation, limit=rounds, strict=False)
    return with_inputs(relation, lambda one: _cut(one, rounds))


def _count(rows: Updates) -> int:
    return int(rows.diff.sum())

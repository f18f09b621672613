"""Puts what columns mean in their places, so that a SELECT over another one becomes one expression."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.expr import Expr, substitute, walk

MOST_PARTS = 200_000  # of one expression


def inlined(expr: Expr, meanings: Mapping[str, Expr]) -> Expr:
    """The expression, with what columns mean in their places.

    Raises:
        UnsupportedSQL: it becomes too large. It doubles with each SELECT over another that names a column twice, as
            `CASE WHEN x > 0 THEN x END AS x` does.
    """
    made = substitute(expr, meanings)
    if made is not expr and next(islice(walk(made), MOST_PARTS, None), None) is not None:
        raise UnsupportedSQL(
            f"an expression has more than {MOST_PARTS:,} parts, counting those of a column each time it is named",
            remedy="make the part of the query that computes the column a materialized view of its own",
        )
    return made

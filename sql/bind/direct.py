"""Direct arguments of aggregates: the fraction of a percentile, the row of `rank(5) WITHIN GROUP (ORDER BY x)`.

They read keys of GROUP BY only, so they are the same in all rows of a group, and are computed over the rows. A key that
a grouping set does not have is NULL in its direct arguments. Until the sets are known, a mark is around each argument.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial

from halfjoin.sql.bind.reading import changed
from halfjoin.sql.expr import Call, Expr, Literal, columns_of, replaced, rewrite
from halfjoin.sql.relation import Aggregate

_MARK = "direct argument"


def marked(value: Expr) -> Expr:
    """A direct argument over the rows, with a mark unless it is constant."""
    return Call(_MARK, (value,), value.type) if columns_of(value) else value


def unmarked(relation: Aggregate, missing: Collection[Expr]) -> Aggregate:
    """The groups of one set, without marks. `missing`: the keys, over the rows, that the set does not have."""
    nulls = {key: Literal(None, key.type) for key in missing}

    def settle(node: Expr) -> Expr:
        return replaced(node.args[0], nulls) if isinstance(node, Call) and node.function == _MARK else node

    made = changed(relation, partial(rewrite, change=settle))
    assert isinstance(made, Aggregate)
    return made

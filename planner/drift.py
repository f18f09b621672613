"""Decides when a view's plan is looked at again, and whether a new plan does other work.

A plan is looked at again once a collection that it reads has `GROWTH` times the rows that it had at the last look. A
collection counts as having at least `FEW` rows, so an empty one is due at 128 rows.

Only growth counts. Lookups in a collection that shrinks find fewer rows than the plan expects, so the plan costs no
more than estimated. A limit never sinks while the engine is open. So a collection of n rows causes log8(n / 16) looks,
however often it is filled and emptied. Plans cannot alternate, and the cost of planning and of new indexes is spread
over the rows that came since the last look.

This does not notice a table that has as many rows with other values. For that there is `REFRESH PLAN`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from halfjoin.planner.plan import ViewPlan

GROWTH = 8
FEW = 16  # rows; any plan is good for fewer


def limit(rows: int) -> int:
    """The number of rows from which on a plan made on `rows` rows is looked at again.

    >>> limit(0), limit(1000)
    (128, 8000)
    """
    return GROWTH * max(FEW, rows)


def outgrown(limits: Mapping[str, int], rows: Mapping[str, int]) -> bool:
    """Whether one of the collections that a batch changed has reached its limit. `rows`: how many each of them has."""
    return bool([name for name, count in rows.items() if name in limits and count >= limits[name]])


def raised(limits: Mapping[str, int], collections: Iterable[str], rows: Callable[[str], int]) -> dict[str, int]:
    """The limits after a look at the plan. No limit is lower than before."""
    return {name: max(limits.get(name, 0), limit(rows(name))) for name in collections}


def same_work(one: ViewPlan, other: ViewPlan) -> bool:
    """Whether two plans of a view do the same work for every batch. Which path fills a new view makes no difference.

    The nodes below a view do not depend on figures (`planner.cut`), and a node that is kept keeps its own plan.
    """
    return [branch.paths for branch in one.branches] == [branch.paths for branch in other.branches]

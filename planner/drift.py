"""Whether the figures that a plan was made on still hold, and whether a new plan is another one.

The measure: a plan is looked at again once a collection that it reads has `GROWTH` times the rows that it had when the
plan was last looked at. A collection counts as having `FEW` rows at least, so an empty one is due at 128 rows.

Only growth counts. A collection that shrinks makes lookups in it find less than the plan expects, so the plan costs no
more than it was taken for. And a limit never sinks while the engine is open. So a collection of n rows is a reason to
plan anew log8(n / 16) times, however often it is filled and emptied: plans cannot alternate, and what planning and new
indexes cost is spread over the rows that came since the last time.

What this does not see, a table of as many rows with other values, `REFRESH PLAN` is for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from halfjoin.planner.plan import ViewPlan

GROWTH = 8
FEW = 16  # rows; any plan is good for fewer


def limit(rows: int) -> int:
    """The rows of a collection from which on a plan that was made on `rows` is looked at again.

    >>> limit(0), limit(1000)
    (128, 8000)
    """
    return GROWTH * max(FEW, rows)


def outgrown(limits: Mapping[str, int], changed: Collection[str], rows: Callable[[str], int]) -> bool:
    """Whether one of the collections that a batch changed has passed its limit: a comparison for each."""
    return any(rows(name) >= most for name, most in limits.items() if name in changed)


def raised(limits: Mapping[str, int], collections: Iterable[str], rows: Callable[[str], int]) -> dict[str, int]:
    """The limits after a look at the plan: none is lower than before."""
    return {name: max(limits.get(name, 0), limit(rows(name))) for name in collections}


def same_work(one: ViewPlan, other: ViewPlan) -> bool:
    """Whether two plans of a view do the same for every batch. Which path fills a new view is no difference then.

    The nodes below a view do not depend on figures (`planner.cut`), and one that is kept keeps its own plan.
    """
    return [branch.paths for branch in one.branches] == [branch.paths for branch in other.branches]

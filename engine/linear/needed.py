"""Which columns the steps of a linear operator still need, so that a filter copies no others."""

from __future__ import annotations

from collections.abc import Sequence

from halfjoin.planner.linear import Extend, Filter, Keep, Reports, Step
from halfjoin.sql.expr import columns_of


def needed_after(steps: Sequence[Step], reports: Reports | None) -> list[frozenset[str] | None]:
    """For each step the columns that the later ones read, or keep at the end; None: all of them.

    An error shows the columns that tell its row apart, and the keys of groups; these have names with a `=`.
    """
    found, now = list[frozenset[str] | None](), None
    shown = frozenset(() if reports is None else reports.columns)
    for step in reversed(steps):
        found.append(now)
        match step:
            case Keep(columns) if not any(name.startswith("=") for name in shown):
                now = frozenset(columns) | shown
            case Filter(predicates) if now is not None:
                now = now.union(*map(columns_of, predicates))
            case Extend(items) if now is not None:
                now = now.difference(column.name for column, _ in items).union(*(columns_of(one) for _, one in items))
                now |= shown
            case Filter() | Extend():
                pass
            case _:
                now = None
    return found[::-1]

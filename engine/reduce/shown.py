"""The changes of the rows that windows and top-k show of groups at their moments."""

from __future__ import annotations

from functools import partial

from halfjoin.engine.linear.tables import Registry
from halfjoin.engine.reduce import top, windows
from halfjoin.engine.reduce.contents import Contents
from halfjoin.engine.reduce.lasting import pieces_of
from halfjoin.engine.reduce.nearby import is_worth, margin_of, nearby, rows_near
from halfjoin.engine.scalar.failures import Failed
from halfjoin.engine.updates.updates import Updates, concat
from halfjoin.planner.group_functions import Top, Windows


def of_windows(
    spec: Windows, contents: Contents, registry: Registry, *, whole: bool, distinct: bool = False
) -> Updates:
    """The updates of the rows with their results. `whole`: the function has not failed for what the groups were.
    `distinct`: as in `Moments.changes`."""
    if whole and contents.lasting is not None:
        made = near_changes(spec, contents, registry)
        if made is not None:
            return made
    evaluate, changes = partial(windows.evaluate, spec, registry=registry), list[Updates]()
    for piece, _ in contents.pieces():
        rows = piece.evaluated(evaluate)
        changes.append(piece.moments.changes(rows.columns, rows.numbers, rows.count, distinct=distinct))
    return concat(changes)


def near_changes(spec: Windows, contents: Contents, registry: Registry) -> Updates | None:
    """As `of_windows`, from the rows near the changes of each moment. None: results depend on rows far from them, or
    on about as many as there are, or the function fails."""
    margin, moments, lasting = margin_of(spec.reach), contents.moments, contents.lasting
    if margin is None or lasting is None:
        return None
    near = rows_near(margin, moments, lasting)
    if not is_worth(near, lasting.sizes(len(moments))):
        return None
    changes = list[Updates]()
    for first, after in pieces_of(near):
        begin = first - int(not moments.was[first])  # what the group was
        found = nearby(spec.order, margin, moments.part(begin, after), contents.rows, lasting.part(begin, after))
        for piece, _ in found.pieces():
            try:
                rows = windows.evaluate(spec, piece.groups, registry)
            except Failed:  # then all rows of a group are gone
                return None
            changes.append(piece.moments.changes(rows.columns, rows.numbers, rows.count))
    return concat(changes)


def of_top(spec: Top, contents: Contents, *, distinct: bool = False) -> Updates:
    """The updates of the first rows. `distinct`: as in `Moments.changes`."""
    changes = list[Updates]()
    for piece, _ in contents.pieces():
        positions, count = top.evaluate(spec, piece.groups)
        columns = piece.rows.take(positions).columns
        changes.append(piece.moments.changes(columns, piece.moment[positions], count, distinct=distinct))
    return concat(changes)

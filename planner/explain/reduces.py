"""The function of a reduce in words, for EXPLAIN: what it computes for a group, and what it keeps for that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from halfjoin.planner.group_functions import Aggregates, OfGroups, Ordered, Own, Running, Sums, Top, Windows
from halfjoin.planner.reach import Reach
from halfjoin.sql.expr import Expr
from halfjoin.sql.functions import render
from halfjoin.sql.relation import Bound, SortKey


def reduce_steps(function: OfGroups) -> Iterator[str]:
    """What it computes and what it keeps, a line each."""
    match function:
        case Aggregates(_, sums, ordered):
            yield f"keep for each group: {', '.join(['its number of rows', *map(_sum, sums), *map(_call, ordered)])}"
            if ordered:
                yield f"from the rows of a changed group: {', '.join(map(_call, ordered))}"
        case Windows(order, calls, running):
            shown = ", ".join([*map(_running, running), *(f"{call.function}({_list(call.args)})" for _, call in calls)])
            yield f"compute {shown} over each changed group{_by(order)}"
            if function.reach is not None:
                yield f"of a large group only {_reached(function.reach)}"
        case Top(order, limit, offset, with_ties):
            count = "all rows" if limit is None else f"the first {limit:,} rows"
            ties = " with ties" if with_ties else ""
            yield f"take {count}{ties}{f' after {offset:,}' if offset else ''} of each changed group{_by(order)}"
        case Own(called, takes, order):
            yield f"call {called}({', '.join(name for name, _ in takes)}) for each changed group{_by(order)}"


def _running(part: Running) -> str:
    frame = part.frame
    bound, other = (frame.end, "up to") if frame.start == Bound("preceding") else (frame.start, "from")
    row = "the row" if frame.unit == "rows" else "the peers"
    if bound.offset is not None:
        row = f"{render(bound.offset)} {bound.kind}"
    if part.sums.kind == "count" and not part.sums.args:
        return f"the number of rows {other} {row}"
    return f"{_sum(part.sums)} {other} {row}"


def _reached(reach: Reach) -> str:
    """The rows of a large group that a change reaches."""
    rows = "the changed rows" if not reach.peers else "the changed rows and their peers"
    beside = [f"{count:,} {side}" for count, side in ((reach.after, "before"), (reach.before, "after")) if count]
    behind = ", and on until all is as before" if reach.running else ""
    return rows + (f" with {' and '.join(beside)} them" if beside else "") + behind


def _sum(part: Sums) -> str:
    if part.kind == "count":
        return f"the count of {_list(part.args)}"
    if part.kind == "bits":
        return f"how often each bit of {_list(part.args)} is set"
    first, *more = map(render, part.args)
    return f"the sum of {f'{first} * {more[0]}' if part.kind.endswith('products') else first}"


def _call(part: Ordered) -> str:
    distinct = "DISTINCT " if part.distinct else ""
    only = "" if part.condition is None else f" where {render(part.condition)}"
    return f"{part.function}({distinct}{_list(part.args)}{_by(part.order)}){only}"


def _by(order: Sequence[SortKey]) -> str:
    keys = [f"{render(key.expr)}{' DESC' if key.descending else ''}" for key in order]
    return f" ordered by {', '.join(keys)}" if keys else ""


def _list(exprs: Iterable[Expr]) -> str:
    return ", ".join(map(render, exprs))

"""Queries: groups that are coarser than others over the same rows, as those of ROLLUP and CUBE, are made of these.

`GROUP BY ROLLUP (a, b)` has the groups of `a, b`, those of `a`, and one of all rows. A group of `a` is some groups of
`a, b`, so its sums are the sums of theirs. Only the finest groups read the rows; the others add up a row for each finer
group. What the reduces hand on are kept sums, which are exact, so the results are those over the rows.

A view keeps the rows' sums for each of them, since a change of one row is one change of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from halfjoin.planner.group_functions import Aggregates, KeptSums
from halfjoin.planner.reduces.items import Columns, Lowered
from halfjoin.planner.reduces.lower import lowered
from halfjoin.planner.reduces.parted import parted
from halfjoin.sql.bind.context import Aliases
from halfjoin.sql.expr import Column, Expr
from halfjoin.sql.relation import Aggregate, Project, Scan
from halfjoin.sql.types import BIGINT


def finer_groups(parts: Iterable[Aggregate]) -> dict[Aggregate, Aggregate]:
    """Of aggregates over the same rows, those that are coarser than another one, each with the coarsest of these."""
    low = {part: lowered(part) for part in parts if parted(part, Aliases()) is None}
    adding = {part: one for part, one in low.items() if _adds_up(one)}
    found = dict[Aggregate, Aggregate]()
    for part, own in adding.items():
        finer = [other for other, one in adding.items() if one.keys > own.keys and _places(own, one) is not None]
        if finer:
            found[part] = min(finer, key=lambda one: adding[one].keys)
    return found


def rows_of(own: Lowered, finer: Lowered, scan: Scan) -> Project:
    """What the reduce of coarser groups takes of a scan of finer ones: its keys, the count, and the sums."""
    places = _places(own, finer)
    assert places is not None
    columns = [scan.columns[place] for place in places]
    return Project(scan, tuple((Column(f"finer.{number}", column.type, column.nullable), column)
                               for number, column in enumerate(columns)))  # fmt: skip


def added_up(own: Lowered, columns: Columns) -> Aggregates:
    """The function of a reduce that adds kept sums up. `columns`: of its input, which are the keys, the count, and the
    sums. Its own count is that of the rows that it takes."""
    many = own.keys
    meant = own.function([*columns[:many], *own.input.columns[many:]])
    assert isinstance(meant, Aggregates)
    taken = {column.name for column in (*columns, meant.count, *(part.column for part in meant.sums))}
    groups = next(name for number in range(len(taken) + 1) for name in [f"#groups:{number}"] if name not in taken)
    parts = [(meant.count, "count"), *((part.column, part.kind) for part in meant.sums)]
    return Aggregates(Column(groups, BIGINT, nullable=False), tuple(
        KeptSums(column, kind, (given,)) for (column, kind), given in zip(parts, columns[many:], strict=True)))


def _adds_up(low: Lowered) -> bool:
    function = low.function(low.input.columns)
    return isinstance(function, Aggregates) and not function.ordered


def _sums(low: Lowered) -> Sequence[tuple[str, tuple[Expr, ...]]]:
    """What is added up: sums of expressions over the rows."""
    function, meaning = low.function(low.input.columns), {column.name: expr for column, expr in low.input.items}
    assert isinstance(function, Aggregates)
    return [(part.kind, tuple(meaning[arg.name] for arg in part.args)) for part in function.sums]


def _places(own: Lowered, finer: Lowered) -> Sequence[int] | None:
    """Where the output of finer groups has the keys, the count, and the sums; None: not all of them."""
    keys = _numbered(expr for _, expr in finer.input.items[: finer.keys])
    sums, mine = _numbered(_sums(finer)), [expr for _, expr in own.input.items[: own.keys]]
    if own.input.input != finer.input.input or any(key not in keys for key in mine):
        return None
    if any(one not in sums for one in _sums(own)):
        return None
    return [*(keys[key] for key in mine), finer.keys, *(finer.keys + 1 + sums[one] for one in _sums(own))]


def _numbered(items: Iterable[object]) -> Mapping[object, int]:
    return {item: number for number, item in enumerate(items)}

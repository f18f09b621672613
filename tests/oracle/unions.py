"""Random views whose inputs are UNION ALLs, so that they have nodes. Several views share a few unions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tests.oracle.choice import Choices, chance
from tests.oracle.views import Query, View

# Rows (x, y), as halfjoin reads them and with their weight.
_ARMS = (
    ("SELECT x, y FROM b", "SELECT x, y, __w FROM b"),
    ("SELECT k, x FROM a", "SELECT k, x, __w FROM a"),
    ("SELECT y, lo FROM c", "SELECT y, lo, __w FROM c"),
    ("SELECT x, y FROM b WHERE x > 1 OR y IS NULL", "SELECT x, y, __w FROM b WHERE x > 1 OR y IS NULL"),
    ("SELECT a.k, b.y FROM a, b WHERE a.x = b.x", "SELECT a.k, b.y, a.__w * b.__w AS __w FROM a, b WHERE a.x = b.x"),
    ("SELECT y, lo FROM c WHERE lo <= mz_now() AND mz_now() < hi",
     "SELECT y, lo, __w FROM c WHERE lo <= mz_now() AND mz_now() < hi"),
    ("SELECT 1, 2", "SELECT 1, 2, 1 AS __w"),
    ("VALUES (1, 2), (2, NULL)", "SELECT *, 1 AS __w FROM (VALUES (1, 2), (2, NULL))"),
)  # fmt: skip
_UNIONS = ((0, 1), (0, 2, 6), (1, 4), (2, 3, 5), (0, 5), (1, 1, 7))


def union_view(choices: Choices, name: str, views: Sequence[View], materialized: bool) -> View:
    """A join of two or three unions, or of unions and a table, sometimes of unions of such joins."""
    sql, oracle = _join(choices, views, 1)
    return View(name, Query((("x", "int"), ("y", "int")), sql, oracle), materialized)


def _join(choices: Choices, views: Sequence[View], depth: int) -> tuple[str, str]:
    count = choices.integer(2, 3)
    items = [_union(choices, views, depth) for _ in range(count)]
    if chance(choices, 30):
        items.append(("b", "SELECT x, y, __w FROM b"))
    aliases = [f"u{number}" for number in range(len(items))]
    where = " AND ".join(f"{left}.{choices.one_of('xy')} = {right}.x" for left, right in pairwise(aliases))
    if chance(choices, 30):
        where += f" AND {aliases[0]}.y < 3"
    weight = " * ".join(f"{alias}.__w" for alias in aliases)
    ours = ", ".join(f"({sql}) AS {alias}(x, y)" if sql != "b" else f"b AS {alias}"
                     for alias, (sql, _) in zip(aliases, items, strict=True))  # fmt: skip
    theirs = ", ".join(f"({text}) AS {alias}(x, y, __w)" for alias, (_, text) in zip(aliases, items, strict=True))
    shown = f"{aliases[0]}.x AS x, {aliases[-1]}.y AS y"
    return f"SELECT {shown} FROM {ours} WHERE {where}", f"SELECT {shown}, {weight} AS __w FROM {theirs} WHERE {where}"


def _union(choices: Choices, views: Sequence[View], depth: int) -> tuple[str, str]:
    arms = [_ARMS[number] for number in choices.one_of(_UNIONS)]
    if depth and chance(choices, 15):
        arms[-1] = _join(choices, views, 0)
    elif views and chance(choices, 20):
        view = choices.one_of(views).name
        arms[-1] = (f"SELECT x, y FROM {view}", f"SELECT x, y, __w FROM {view}")
    return " UNION ALL ".join(sql for sql, _ in arms), " UNION ALL ".join(text for _, text in arms)

"""The work of cyclic joins: a change at a hub finds few rows, where a fixed order finds all that the hub has.

No clock: `found` counts the rows that half-joins find.
"""

from __future__ import annotations

import pytest

import halfjoin as hj
from halfjoin.planner import choices as choosing
from tests.support.kernels import both_ways  # noqa: F401

SPOKES = 120
JOINS = {
    "triangle": "SELECT a.x AS p, a.y AS q, b.y AS r FROM e a, e b, e c WHERE a.y = b.x AND b.y = c.y AND a.x = c.x",
    "cycle": """SELECT a.x AS p, b.x AS q, c.x AS r, d.x AS s FROM e a, e b, e c, e d
        WHERE a.y = b.x AND b.y = c.x AND c.y = d.x AND d.y = a.x""",
    "clique": """SELECT ab.x AS p, ab.y AS q, cd.x AS r, cd.y AS s FROM e ab, e ac, e ad, e bc, e bd, e cd
        WHERE ab.x = ac.x AND ac.x = ad.x AND ab.y = bc.x AND bc.x = bd.x AND ac.y = bc.y AND bc.y = cd.x
        AND ad.y = bd.y AND bd.y = cd.y""",
    "sums": """SELECT a.x AS p, count(*) AS n FROM e a, e b, e c
        WHERE a.y = b.x AND b.y = c.y AND a.x = c.x GROUP BY a.x""",
}  # fmt: skip


def hubs() -> list[dict[str, int]]:
    """From hub 1 to each spoke and from each to hub 2; both hubs have further edges, to and from nodes with no other.

    An edge from a spoke to a spoke closes triangles at both hubs; nothing else closes many.
    """
    spokes = range(10, 10 + SPOKES)
    others = range(10_000, 10_000 + SPOKES)
    return [*({"x": 1, "y": s} for s in spokes), *({"x": s, "y": 2} for s in spokes),
            *({"x": 2, "y": s} for s in others), *({"x": s + SPOKES, "y": 1} for s in others)]  # fmt: skip


CHANGES = [{"x": 1, "y": 5}, {"x": 11, "y": 12}, {"x": 5, "y": 2}, {"x": 10_000, "y": 10}]


def engine_with_views() -> hj.Engine:
    engine = hj.Engine()
    engine.execute("CREATE TABLE e (x bigint, y bigint)")
    for name, sql in JOINS.items():
        engine.execute(f"CREATE MATERIALIZED VIEW {name} AS {sql}")
    return engine


def found(engine: hj.Engine) -> dict[str, int]:
    """The rows that the last batch found for each join; that of the sums is a node below."""
    work = engine.activity().recent[-1].nodes.items()
    return {"sums" if name.startswith("passing") else name: one.found for name, one in work if one.found}


def in_a_fixed_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing.Choices, "stages", lambda *_: None)


def hub_work() -> list[dict[str, int]]:
    """What each change of one edge finds, and its inverse."""
    engine, work = engine_with_views(), []
    engine.apply({"e": hubs()})
    for row in CHANGES:
        for sign in (1, -1):
            engine.apply({"e": [{**row, "__diff": sign}]})
            work.append(found(engine))
    return work


def test_a_change_at_a_hub_finds_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(max(work.values(), default=0) for work in hub_work()) <= 32
    in_a_fixed_order(monkeypatch)
    fixed = hub_work()
    assert all(max(work.get(name, 0) for work in fixed) >= SPOKES for name in JOINS)


def test_a_graph_that_comes_at_once_finds_a_few_times_its_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """No triangle and no cycle is among hubs and spokes. Four-cycles cannot be found so fast: that nothing which the
    second hub leads to leads to the first one is found out for each spoke."""

    def work() -> dict[str, int]:
        engine = engine_with_views()
        engine.apply({"e": hubs()})
        assert not any(len(engine.read(name)) for name in JOINS)
        return {name: rows for name, rows in found(engine).items() if name != "cycle"}

    edges = len(hubs())
    assert all(rows <= 12 * edges for rows in work().values()), work()
    in_a_fixed_order(monkeypatch)
    assert all(rows >= SPOKES**2 for rows in work().values()), work()


def test_history_that_cancels_finds_no_partners() -> None:
    """An edge that came and went ten times leads to no hub."""
    engine = engine_with_views()
    engine.apply({"e": hubs()})
    for _ in range(10):
        for sign in (1, -1):
            engine.apply({"e": [{"x": 1, "y": 5, "__diff": sign}]})
    engine.apply({"e": [{"x": 5, "y": 2}]})
    assert max(found(engine).values()) < SPOKES, found(engine)

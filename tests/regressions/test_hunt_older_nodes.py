"""A warehouse of an older version, which planned views with other nodes: opening it fills those that it lacks."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import halfjoin as hj

REACHED = """WITH RECURSIVE p(a, b) AS (SELECT g, x FROM t UNION SELECT p.a, t.x FROM p JOIN t ON t.g = p.b)
    SELECT a, b FROM p"""
STEPS = """WITH MUTUALLY RECURSIVE
    step (a bigint, d bigint) AS (SELECT 0, 0 UNION ALL SELECT t.x, far.d + 1 FROM far JOIN t ON t.g = far.a),
    far (a bigint, d bigint) AS (SELECT a, min(d) FROM step GROUP BY a)
    SELECT a, d AS b FROM far"""
EDGES = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 2)]


@pytest.mark.parametrize("query, kind", [(REACHED, "join"), (REACHED, "loop"), (STEPS, "loop"), (STEPS, "reduce")])
def test_a_loop_with_some_nodes_kept_runs_in_its_order(query: str, kind: str, tmp_path: Path) -> None:
    """A node that is filled anew runs at its place among those that are kept, so its rows have the same rounds."""
    with hj.Engine(tmp_path, clock="own") as engine:
        engine.execute(f"CREATE TABLE t (g bigint, x bigint); CREATE MATERIALIZED VIEW v AS {query}")
        engine.apply({"t": [{"g": g, "x": x} for g, x in EDGES]}, time=1)
        before = {one.name: one.updates for one in engine.stats().collections}
    assert _forget(tmp_path, kind)
    with hj.Engine(tmp_path) as engine:
        assert {one.name: one.updates for one in engine.stats().collections} == before
        for time, (g, x) in enumerate(EDGES[:3], 2):
            engine.apply({"t": hj.deletes([{"g": g, "x": x}])}, time=time)
            found, wanted = engine.read("v"), engine.query(query)
            assert found.sort_by([("a", "ascending"), ("b", "ascending")]).equals(
                wanted.sort_by([("a", "ascending"), ("b", "ascending")]))  # fmt: skip


def _forget(folder: Path, kind: str) -> int:
    """Remove the nodes of a kind, and return how many they are, as if the warehouse had never had them."""
    journal = sqlite3.connect(folder / "journal.sqlite")
    mine = "SELECT id FROM collection WHERE kind IN ('nodes', 'errors') AND name LIKE ?"
    with journal:
        (many,) = journal.execute("SELECT count(*) FROM collection WHERE kind = 'nodes' AND name LIKE ?",
                                  (f"{kind}#%",)).fetchone()  # fmt: skip
        for table, column in (("line", "collection"), ("arrangement", "collection"), ("collection", "id")):
            journal.execute(f"DELETE FROM {table} WHERE {column} IN ({mine})", (f"{kind}#%",))
    journal.close()
    return int(many)

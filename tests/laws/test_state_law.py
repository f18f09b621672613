"""The state law: a node keeps what its function needs, and nothing that a shared arrangement tells already."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest

import halfjoin as hj
from tests.oracle.rows import tuples

ROWS, GROUPS, PARTNERS, VALUES = 600, 12, 3, 5  # rows of t, their groups, for each: rows of u, values of z
DDL = "CREATE TABLE t (k integer, v integer, z integer); CREATE TABLE u (k integer, w integer)"
JOINED = "t JOIN u ON t.k = u.k"

# The rows that all nodes below a view keep.
KEPT = {
    # joins of all kinds by equalities: nothing
    f"SELECT t.v, u.w FROM {JOINED}": 0,
    "SELECT t.v, u.w FROM t LEFT JOIN u ON t.k = u.k": 0,
    "SELECT t.v, u.w FROM t FULL JOIN u ON t.k = u.k": 0,
    "SELECT v FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)": 0,
    "SELECT v FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)": 0,
    # other conditions: the combinations of the left columns that have a match
    "SELECT t.v, u.w FROM t LEFT JOIN u ON t.k < u.k": GROUPS - 1,
    # what adds up: a row for each group, and no copy of the input
    "SELECT k, count(*) AS n, sum(v) AS s, avg(z) AS a, stddev(v) AS d FROM t GROUP BY k": GROUPS,
    f"SELECT t.k, count(*) AS n, sum(w) AS s FROM {JOINED} GROUP BY t.k": GROUPS,
    f"SELECT sum(w) AS s FROM {JOINED}": 1,
    f"SELECT DISTINCT u.w FROM {JOINED}": PARTNERS,
    "SELECT k FROM t UNION SELECT k FROM u": GROUPS,
    # an order over a table: its own output. Over a join: the distinct rows that it reads, once
    "SELECT k, min(v) AS a, max(v) AS b FROM t GROUP BY k": GROUPS,
    "SELECT k, any_value(v) AS a, percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS p FROM t GROUP BY k": GROUPS,
    # DISTINCT and mode: a row for each group and value, and what is made of these
    "SELECT k, count(DISTINCT z) AS n, sum(v) AS s FROM t GROUP BY k": GROUPS * VALUES + GROUPS,
    "SELECT k, mode() WITHIN GROUP (ORDER BY z) AS m FROM t GROUP BY k": GROUPS * VALUES + GROUPS,
    f"SELECT t.k, avg(DISTINCT w) AS a FROM {JOINED} GROUP BY t.k": GROUPS * PARTNERS + GROUPS,
    "SELECT k, count(DISTINCT z) AS n, min(v) AS m FROM t GROUP BY k": GROUPS * VALUES + 2 * GROUPS,
    "SELECT k, array_agg(DISTINCT z) AS a FROM t GROUP BY k": GROUPS,
    "SELECT v FROM t ORDER BY v DESC LIMIT 7": 7,
    f"SELECT t.k, max(w) AS m FROM {JOINED} GROUP BY t.k": GROUPS * PARTNERS + GROUPS,
    # windows: their rows with the results, and the rows of a join once more
    "SELECT v, rank() OVER w AS r, sum(z) OVER w AS s FROM t WINDOW w AS (PARTITION BY k ORDER BY v)": ROWS,
    f"SELECT v, lag(w) OVER (PARTITION BY t.k ORDER BY v, w) AS b FROM {JOINED}": 2 * ROWS * PARTNERS,
}


def loaded() -> hj.Engine:
    """An engine with both tables."""
    engine = hj.Engine(clock="own", retain=1)
    engine.execute(DDL)
    t = [{"k": i % GROUPS, "v": i, "z": i % 5} for i in range(ROWS)]
    u = [{"k": i % GROUPS, "w": i // GROUPS} for i in range(GROUPS * PARTNERS)]
    engine.apply({"t": t, "u": u}, time=1)
    return engine


def kept(engine: hj.Engine) -> int:
    """The rows of all nodes, after merging."""
    engine.compact()
    return sum(one.updates for one in engine.stats().collections if one.kind == "node")


@pytest.mark.parametrize("sql", KEPT)
def test_nodes_keep_what_their_functions_need(sql: str) -> None:
    engine = loaded()
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    assert kept(engine) == KEPT[sql]
    rows = [{"k": 3, "v": -1, "z": 1}]
    for time in range(2, 8, 2):  # what comes and goes leaves nothing
        engine.apply({"t": rows}, time=time)
        engine.apply({"t": hj.deletes(rows)}, time=time + 1)
    assert kept(engine) == KEPT[sql]


# DISTINCT over rows that a key tells apart: no counts of the values.
UNIQUE = {
    "SELECT DISTINCT a, id, b FROM p WHERE b > 1": 0,
    "SELECT DISTINCT id FROM p": 0,
    "SELECT DISTINCT k, n + 1 AS m, n FROM (SELECT k, count(*) AS n FROM t GROUP BY k) AS g": GROUPS,
    "SELECT k FROM u WHERE k IN (SELECT DISTINCT id FROM p)": 0,
    "SELECT a, count(DISTINCT id) FILTER (WHERE b > 1) AS n, sum(b) AS s FROM p GROUP BY a": GROUPS,
    "SELECT id, sum(DISTINCT b) AS s FROM p GROUP BY id": ROWS,
    "SELECT DISTINCT a, b FROM p": 2 * GROUPS,
    "SELECT DISTINCT id FROM p, u": ROWS,
    "SELECT DISTINCT id / 2 AS h FROM p": ROWS // 2,
}


@pytest.mark.parametrize("sql", UNIQUE)
def test_a_key_needs_no_counts_of_distinct_values(sql: str) -> None:
    engine = loaded()
    engine.execute("CREATE TABLE p (id integer PRIMARY KEY, a integer, b integer)")
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    rows = [{"id": i, "a": i % GROUPS, "b": i % (2 * GROUPS)} for i in range(ROWS)]
    engine.apply({"p": rows}, time=2)
    assert kept(engine) == UNIQUE[sql]
    engine.apply({"p": hj.upserts([{**row, "b": 7} for row in rows[:9]])}, time=3)
    found = duckdb.connect()
    for name in ("t", "u", "p"):
        found.register(name, engine.read(name))
    assert Counter(tuples(engine.read("v"))) == Counter(found.execute(sql.replace("id / 2", "id // 2")).fetchall())


def test_only_open_updates_of_sums_wait() -> None:
    engine = loaded()
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k, sum(v) AS s FROM t WHERE mz_now() <= z GROUP BY k")
    for time in range(2, 7):
        pending = sum(i % 5 >= time - 1 for i in range(ROWS))  # each of them still has to go
        groups = len({i % GROUPS for i in range(ROWS) if i % 5 >= time - 1})
        assert kept(engine) == pending + groups
        engine.advance(to=time + 1)


def test_equal_sums_of_two_views_are_kept_once() -> None:
    engine = loaded()
    engine.execute("CREATE MATERIALIZED VIEW a AS SELECT k, sum(v) AS s FROM t GROUP BY k")
    engine.execute("CREATE MATERIALIZED VIEW b AS SELECT k, avg(v) AS m FROM t GROUP BY k HAVING sum(v) > 3")
    assert kept(engine) == GROUPS
    (node,) = (one for one in engine.stats().collections if one.kind == "node")
    assert list(node.users) == ["a", "b"]

"""EXPLAIN of INSERT, UPDATE, DELETE and MERGE: how they find their rows, and which views they change."""

from __future__ import annotations

import json

import pytest

import halfjoin as hj


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute("""
        CREATE TABLE t (id bigserial PRIMARY KEY, k bigint);
        CREATE TABLE u (k bigint PRIMARY KEY, y integer);
        CREATE MATERIALIZED VIEW counts AS SELECT k, count(*) AS n FROM t GROUP BY k;
        CREATE MATERIALIZED VIEW both_ AS SELECT * FROM counts JOIN u USING (k)
    """)
    return engine


@pytest.mark.parametrize(("sql", "first", "last"), [
    ("UPDATE t SET k = 2 WHERE id = 5", "update t (old.id bigint", ["looks up 1 key in t(id)", "counts, both_"]),
    ("DELETE FROM u WHERE y > 5", "delete u (old.k bigint", ["scans u", "both_"]),
    ("DELETE FROM t USING u WHERE u.k = t.k AND t.id = 7", "delete t", ["looks up 1 key in t(id)", "counts, both_"]),
    ("INSERT INTO t (k) SELECT y FROM u", "insert t (new.id bigint", ["scans u", "counts, both_"]),
    ("MERGE INTO u USING t ON t.id = 1 AND u.k = t.k WHEN MATCHED THEN DELETE", "merge u",
     ["scans t", "both_"]),
])  # fmt: skip
def test_a_change_tells_how_it_finds_its_rows(engine: hj.Engine, sql: str, first: str, last: list[str]) -> None:
    shown = engine.execute(f"EXPLAIN {sql}").column(0).to_pylist()
    assert shown[0].startswith(first)
    assert shown[-2].startswith("as a query: ") and last[0] in shown[-2]
    assert shown[-1] == f"maintains: {last[1]}"
    assert json.loads(engine.explain(f"EXPLAIN {sql}", format="json"))["maintains"] == last[1].split(", ")


def test_nothing_is_changed(engine: hj.Engine) -> None:
    engine.execute("EXPLAIN INSERT INTO t (k) VALUES (1) RETURNING id")
    engine.execute("EXPLAIN UPDATE t SET id = nextval('t_id_seq')")
    engine.execute("INSERT INTO t (k) VALUES (2)")
    assert engine.query("TABLE t").to_pylist() == [{"id": 1, "k": 2}]
    with pytest.raises(hj.UnknownName, match="materialized view"):
        engine.execute("EXPLAIN DELETE FROM counts")

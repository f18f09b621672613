"""WITH in every place: before UNION ALL, nested, hiding names; in views, queries and statements."""

from __future__ import annotations

import pytest

import halfjoin as hj

# Each answer is PostgreSQL's.
QUERIES = {
    "WITH c AS (SELECT id FROM t) SELECT id FROM c UNION ALL SELECT id FROM c": [1, 1, 2, 2],
    "WITH t AS (SELECT * FROM t WHERE id = 1) SELECT id FROM t UNION ALL SELECT id FROM t": [1, 1],
    "WITH a AS (WITH a AS (SELECT id FROM t) SELECT id FROM a) SELECT * FROM a UNION ALL SELECT 5": [1, 2, 5],
    "SELECT * FROM (WITH c AS (SELECT id FROM t) SELECT id FROM c UNION ALL SELECT 3) q": [1, 2, 3],
    "(WITH c AS (SELECT 8 AS id) SELECT id FROM c) UNION ALL (WITH c AS (SELECT 9) SELECT * FROM c)": [8, 9],
}


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (id integer); CREATE TABLE u (id integer); INSERT INTO t VALUES (1), (2)")
    return engine


def ids(table: object) -> list[int]:
    return sorted(row["id"] for row in table.to_pylist())  # type: ignore[attr-defined]


@pytest.mark.parametrize("sql", QUERIES)
def test_with_means_the_same_everywhere(sql: str, engine: hj.Engine) -> None:
    engine.execute(f"CREATE MATERIALIZED VIEW v AS {sql}")
    engine.execute(f"INSERT INTO u {sql}")
    assert ids(engine.query(sql)) == ids(engine.read("v")) == ids(engine.read("u")) == QUERIES[sql]


def test_with_before_insert_and_in_its_query(engine: hj.Engine) -> None:
    engine.execute("WITH a AS (SELECT 7 AS id) INSERT INTO u WITH t AS (SELECT id + 1 AS id FROM a) SELECT id FROM t")
    assert ids(engine.read("u")) == [8]


def test_two_queries_of_a_name_are_refused(engine: hj.Engine) -> None:
    for form in ("{}", "CREATE MATERIALIZED VIEW v AS {}"):
        with pytest.raises(hj.UnsupportedSQL, match="WITH has two queries a"):
            engine.execute(form.format("WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a"))


def test_queries_that_double_each_other_are_refused(engine: hj.Engine) -> None:
    doubled = ", ".join(f"c{i} AS (SELECT x.id FROM c{i - 1} x JOIN c{i - 1} y ON x.id = y.id)" for i in range(1, 40))
    with pytest.raises(hj.UnsupportedSQL, match="reads more than"):
        engine.execute(f"CREATE MATERIALIZED VIEW v AS WITH c0 AS (SELECT id FROM t), {doubled} SELECT * FROM c39")

"""Queries that depend on chance: a value is drawn once for each row, and all that read the row see the same value."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import halfjoin as hj

COPIES, KEYS = 30, 500


@pytest.fixture
def engine() -> Iterator[hj.Engine]:
    with hj.Engine() as made:
        made.execute("CREATE TABLE t (k bigint PRIMARY KEY); CREATE TABLE copies (x bigint)")
        made.apply({"t": [{"k": k} for k in range(KEYS)], "copies": [{"x": 1, "__diff": COPIES}]})
        yield made


def only(engine: hj.Engine, sql: str) -> object:
    (row,) = engine.query(sql).to_pylist()
    (value,) = row.values()
    return value


@pytest.mark.parametrize(
    "one",
    [
        "k = (SELECT (random() * 499)::bigint)",
        "k IN (SELECT (random() * 499)::bigint)",
        "k IN (VALUES ((random() * 499)::bigint))",
        "EXISTS (SELECT 1 FROM (SELECT (random() * 499)::bigint AS r) q WHERE q.r = t.k)",
        "k = ANY (ARRAY(SELECT (random() * 499)::bigint))",
    ],
)
def test_a_subquery_that_reads_no_row_draws_once(engine: hj.Engine, one: str) -> None:
    assert [only(engine, f"SELECT count(*) FROM t WHERE {one}") for _ in range(5)] == [1] * 5


@pytest.mark.parametrize(
    "item",
    [
        "(SELECT (random() * 499)::bigint AS r)",
        "(VALUES ((random() * 499)::bigint))",
        "unnest(ARRAY[(random() * 499)::bigint])",
        "(SELECT r FROM (SELECT (random() * 499)::bigint AS r) q)",
    ],
)
def test_an_item_of_from_draws_once(engine: hj.Engine, item: str) -> None:
    assert [only(engine, f"SELECT count(*) FROM t JOIN {item} AS s (r) ON t.k = s.r") for _ in range(5)] == [1] * 5
    assert only(engine, f"SELECT count(DISTINCT s.r) FROM t, {item} AS s (r)") == 1


def test_each_row_has_a_value_of_its_own_that_all_readers_see(engine: hj.Engine) -> None:
    drawn = "(SELECT k, random() AS r FROM t) q"
    assert only(engine, f"SELECT count(DISTINCT r) FROM {drawn}") == KEYS
    assert only(engine, f"SELECT count(*) FROM {drawn} WHERE r < 0.5 AND r >= 0.5") == 0
    rows = engine.query(f"SELECT r, r AS s, 2 * r AS double FROM {drawn} WHERE r > 0.5 AND 1 > r").to_pylist()
    assert rows
    assert all(row["r"] == row["s"] == row["double"] / 2 > 0.5 for row in rows)
    ranked = engine.query(f"SELECT r, rank() OVER (ORDER BY r) AS n FROM {drawn} ORDER BY n LIMIT 9").to_pylist()
    assert [row["r"] for row in ranked] == sorted(row["r"] for row in ranked)
    assert only(engine, "SELECT count(DISTINCT r) FROM t, LATERAL (SELECT t.k + random() AS r) l") == KEYS


def test_calls_and_subqueries_are_told_apart(engine: hj.Engine) -> None:
    (row,) = engine.query("SELECT a.x, b.x AS y, c.x AS z FROM (SELECT random() AS x) a, (SELECT random() AS x) b, "
                          "(SELECT random() + 0 AS x) c").to_pylist()  # fmt: skip
    assert len(set(row.values())) == 3
    rows = engine.query("SELECT r, s FROM (SELECT random() AS r, random() AS s FROM t) q").to_pylist()
    assert all(row["r"] != row["s"] for row in rows)
    assert only(engine, "SELECT count(DISTINCT r) FROM (SELECT random() AS r FROM t UNION ALL SELECT random() FROM t) q"
                ) == 2 * KEYS  # fmt: skip
    assert only(engine, "SELECT (SELECT sum(random()) FROM t) = (SELECT sum(random()) FROM t)") is False


def test_each_copy_of_a_row_has_a_value_of_its_own(engine: hj.Engine) -> None:
    assert len({row["r"] for row in engine.query("SELECT random() AS r FROM copies").to_pylist()}) == COPIES
    assert only(engine, "SELECT count(DISTINCT r) FROM (SELECT gen_random_uuid() AS r FROM copies) q") == COPIES
    assert 0 < only(engine, "SELECT count(*) FROM copies, copies c WHERE random() < 0.5") < COPIES**2


def test_values_are_drawn_for_rows_that_statements_write(engine: hj.Engine) -> None:
    engine.execute("CREATE TABLE drawn AS SELECT k, r, r AS s FROM (SELECT k, random() AS r FROM t) q WHERE r < 0.5")
    assert only(engine, "SELECT count(*) FROM drawn WHERE r >= 0.5 OR r <> s") == 0
    engine.execute("UPDATE drawn SET s = random()")
    assert only(engine, "SELECT count(*) FROM drawn WHERE r = s") == 0
    engine.execute("UPDATE drawn SET s = (SELECT random())")
    assert only(engine, "SELECT count(DISTINCT s) FROM drawn") == 1

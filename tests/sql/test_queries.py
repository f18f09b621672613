"""Queries that cannot be views: their values are PostgreSQL's, however they are grouped and sorted."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

import halfjoin as hj
from halfjoin.errors import UnsupportedSQL
from halfjoin.sql.bind.query import bind_query
from halfjoin.sql.parse.parse import parse_query
from tests.support.front import SCHEMA

SETUP = """
    CREATE TABLE t (k integer, f double precision, n numeric(10,2), i integer, b bigint, d date, s text, ok boolean,
                    a integer[], v smallint);
    CREATE TABLE u (k integer, c text);
    INSERT INTO t VALUES
        (1, 2.5, 1.01, 7, 10, '2024-01-31', 'ß', true, ARRAY[1, 2], 3),
        (2, 3.5, -4.00, NULL, 20, '2024-02-01', 'a', NULL, ARRAY[3], -3),
        (2, NULL, NULL, 9, 30, NULL, NULL, false, NULL, NULL),
        (NULL, 0.5, 7.25, 2, 30, '2024-02-01', 'B', true, ARRAY[0, NULL], 1);
    INSERT INTO u VALUES (1, 'x'), (3, 'z'), (NULL, 'n');
    CREATE VIEW plain AS SELECT k, b FROM t WHERE b > 10;
"""
D = Decimal


@pytest.fixture(scope="module")
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute(SETUP)
    engine.register_table_function("twice", twice, returns={"y": "bigint"})
    return engine


def twice(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return 2x for each x."""
    values = [2 * (x or 0) for x in batch.column(0).to_pylist()]
    return pa.record_batch({"y": pa.array(values, pa.int64()), "__row": pa.array(range(len(values)), pa.int64())})


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    """The rows. Columns may have equal names."""
    return [tuple(column[i].as_py() for column in table.columns) for i in range(table.num_rows)]


# Each answer is what PostgreSQL 15 gives.
SPLIT = {
    "SELECT round(f), upper(s), n / 3 FROM t ORDER BY b, i": [
        (2.0, "ß", D("0.33666666666666666667")), (4.0, "A", D("-1.3333333333333333")),
        (0.0, "B", D("2.4166666666666667")),
        (None, None, None)],
    "SELECT 1/3::numeric, 2": [(D("0.33333333333333333333"), 2)],
    "SELECT k, k FROM t WHERE b < 30 ORDER BY 1 DESC": [(2, 2), (1, 1)],
    "SELECT extract(dow FROM d) AS x, count(*) FROM t GROUP BY x ORDER BY x": [(D(3), 1), (D(4), 2), (None, 1)],
    "SELECT k, sum(i), avg(i), sum(b), avg(n), count(n), sum(f) / count(*) FROM t GROUP BY k ORDER BY k": [
        (1, 7, D("7.0000000000000000"), D(10), D("1.0100000000000000"), 1, 2.5),
        (2, 9, D("9.0000000000000000"), D(50), D("-4.0000000000000000"), 1, 1.75),
        (None, 2, D("2.0000000000000000"), D(30), D("7.2500000000000000"), 1, 0.5)],
    "SELECT sum(i) / 4, sum(b) / 7, count(*) / 3, round(avg(n), 2) FROM t": [
        (4, D("12.8571428571428571"), 1, D("1.42"))],
    "SELECT sum(v), avg(v), bit_and(i), min(d), max(s), min(s), max(a) FROM t": [
        (1, D("0.33333333333333333333"), 0, date(2024, 1, 31), "ß", "B", [3])],
    "SELECT count(*), count(k), count(DISTINCT k), sum(DISTINCT b), array_agg(DISTINCT b) FROM t": [
        (4, 3, 2, D(60), [10, 20, 30])],
    "SELECT count(*) FILTER (WHERE i > 5), avg(n) FILTER (WHERE ok), bool_or(ok), every(ok) FROM t": [
        (2, D("4.1300000000000000"), True, False)],
    "SELECT string_agg(s, ',' ORDER BY s DESC), array_agg(k ORDER BY b, i DESC) FROM t": [("ß,a,B", [1, 2, 2, None])],
    "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY b), percentile_disc(0.5) WITHIN GROUP (ORDER BY b), "
    "mode() WITHIN GROUP (ORDER BY b) FROM t": [(25.0, 20, 30)],
    "SELECT sum(b), count(*), max(NULL) FROM t WHERE false": [(None, 0, None)],
    "SELECT k, count(*) FROM t WHERE false GROUP BY k": [],
    "SELECT count(*) FROM t HAVING false": [],
    "SELECT k + 1 AS k FROM t GROUP BY k ORDER BY k": [(2,), (3,), (None,)],
    "SELECT (k + 1) * 2, k + 1 FROM t GROUP BY k + 1 ORDER BY 1": [(4, 2), (6, 3), (None, None)],
    "SELECT CASE WHEN count(*) > 1 THEN 'many' ELSE t.k::text END FROM t GROUP BY k ORDER BY t.k": [
        ("1",), ("many",), (None,)],
    "SELECT k, sum(b) AS total FROM t GROUP BY k HAVING sum(b) > 10 ORDER BY total DESC": [(2, D(50)), (None, D(30))],
    "SELECT DISTINCT k, b > 15 FROM t ORDER BY 2 DESC, 1": [(2, True), (None, True), (1, False)],
    "SELECT DISTINCT ON (k) k, b FROM t ORDER BY k, b DESC": [(1, 10), (2, 30), (None, 30)],
    "SELECT k FROM t ORDER BY n NULLS FIRST LIMIT 2 OFFSET 1": [(2,), (1,)],
    "SELECT k FROM t ORDER BY k DESC FETCH FIRST 2 ROWS ONLY": [(None,), (2,)],
    "VALUES (2), (1) ORDER BY 1": [(1,), (2,)],
    "SELECT generate_series(1, 3) AS g ORDER BY g DESC": [(3,), (2,), (1,)],
    "SELECT row_number() OVER (PARTITION BY k ORDER BY b DESC), avg(b) OVER (), sum(b) OVER w, lag(k, 2, 99) OVER w "
    "FROM t WINDOW w AS (ORDER BY b, i) ORDER BY b, i": [
        (1, D("22.5000000000000000"), D(10), 99), (2, D("22.5000000000000000"), D(30), 99),
        (1, D("22.5000000000000000"), D(60), 1), (1, D("22.5000000000000000"), D(90), 2)],
    "SELECT sum(i + 1) OVER (ORDER BY b, i ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) FROM t ORDER BY b, i": [
        (8,), (11,), (21,), (21,)],
    "SELECT rank() OVER (ORDER BY sum(b) DESC), k, sum(b) * 100 / sum(sum(b)) OVER () FROM t GROUP BY k ORDER BY 1": [
        (1, 2, D("55.5555555555555556")), (2, None, D("33.3333333333333333")), (3, 1, D("11.1111111111111111"))],
    "SELECT * FROM (SELECT k, row_number() OVER (PARTITION BY k ORDER BY b DESC) AS rn FROM t) x "
    "WHERE rn = 1 ORDER BY k": [(1, 1), (2, 1), (None, 1)],
    "WITH x AS (SELECT k, sum(b) AS s FROM t GROUP BY k), y AS (SELECT k, s / 3 AS s3 FROM x) "
    "SELECT y.*, x.s FROM x, y WHERE x.k = y.k ORDER BY 1": [
        (1, D("3.3333333333333333"), D(10)), (2, D("16.6666666666666667"), D(50))],
    "SELECT k FROM t UNION SELECT k FROM u ORDER BY 1": [(1,), (2,), (3,), (None,)],
    "SELECT k, NULL AS z FROM t INTERSECT SELECT 2.0, NULL": [(D("2.0"), None)],
    "SELECT k FROM t EXCEPT ALL SELECT k FROM u ORDER BY k": [(2,), (2,)],
    "(SELECT k FROM t ORDER BY b LIMIT 1) UNION ALL SELECT 5 ORDER BY k DESC": [(5,), (1,)],
    "SELECT b FROM t WHERE b > (SELECT avg(b) FROM t) ORDER BY 1": [(30,), (30,)],
    "SELECT (SELECT max(k) FROM u) + k, (SELECT b FROM t WHERE false) FROM t ORDER BY 1": [
        (4, None), (5, None), (5, None), (None, None)],
    "SELECT count(*) FROM t HAVING count(*) > (SELECT min(k) FROM u)": [(4,)],
    "SELECT k, EXISTS (SELECT 1 FROM u WHERE k = 9) FROM t WHERE k IN (SELECT k FROM u)": [(1, False)],
    "SELECT b FROM t WHERE (k, 'x') IN (SELECT k, c FROM u) AND EXISTS (SELECT 1 FROM u)": [(10,)],
    "SELECT sum(b) FROM plain": [(D(80),)],
    "SELECT sum(y), count(*) FROM t, twice(t.b) AS p (y), repeat_row(2) WHERE mz_now() >= 0": [(D(360), 8)],
}  # fmt: skip


@pytest.mark.parametrize("sql", SPLIT)
def test_postgresql_gives(sql: str, engine: hj.Engine) -> None:
    found = rows(engine.query(sql))
    assert found == SPLIT[sql]
    kinds = [[type(value) for row in several for value in row] for several in (found, SPLIT[sql])]
    assert kinds[0] == kinds[1]  # an integer is no decimal


@pytest.mark.parametrize(("sql", "answer"), [
    ("SELECT t.b, c FROM t LEFT JOIN u ON t.k = u.k WHERE b < 30 ORDER BY b", [(10, "x"), (20, None)]),
    ("SELECT b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k) ORDER BY b", [(20,), (30,), (30,)]),
    ("WITH RECURSIVE r (k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM r WHERE k < 3) SELECT max(k) FROM r", [(3,)]),
    ("SELECT b FROM t WHERE k NOT IN (SELECT k FROM u WHERE k < 3) ORDER BY b", [(20,), (30,)]),
    ("SELECT current_date > date '2000-01-01', now() > current_date", [(True, True)]),
])  # fmt: skip
def test_rows_that_are_put_beside_each_other(sql: str, answer: list[tuple[object, ...]], engine: hj.Engine) -> None:
    assert rows(engine.query(sql)) == answer


@pytest.mark.parametrize(("sql", "reason"), [
    ("SELECT b FROM t GROUP BY k",
     'column "t.b" must appear in the GROUP BY clause or be used in an aggregate function'),
    ("SELECT * FROM t GROUP BY k",
     'column "t.f" must appear in the GROUP BY clause or be used in an aggregate function'),
    ("SELECT sum(b) FROM t ORDER BY k",
     'column "t.k" must appear in the GROUP BY clause or be used in an aggregate function'),
    ("SELECT i, round(f) AS i FROM t ORDER BY i", 'ORDER BY "i" is ambiguous'),
    ("SELECT i FROM t ORDER BY 2", "ORDER BY position 2 is not in select list"),
    ("SELECT DISTINCT k FROM t ORDER BY b", "for SELECT DISTINCT, ORDER BY expressions must appear in select list"),
    ("SELECT sum(s) FROM t", "no function sum(text)"),
    ("SELECT upper(k) FROM t ORDER BY 1", "no function upper(integer)"),
    ("SELECT t.k FROM t JOIN u ON t.s = u.k", "no operator text = integer"),
    ("SELECT k FROM t WHERE k ORDER BY 1", "a condition must be boolean, not integer"),
])  # fmt: skip
def test_what_postgresql_refuses_is_refused(sql: str, reason: str, engine: hj.Engine) -> None:
    with pytest.raises(UnsupportedSQL) as caught:
        engine.query(sql)
    assert caught.value.reason == reason


@pytest.mark.parametrize(("sql", "text"), [
    ("SELECT sum(1 / 0)", "division by zero in 1 / 0"),
    ("SELECT sqrt(-f) FROM t ORDER BY 1", "cannot take square root of a negative number in sqrt(-t.f)"),
    ("SELECT (SELECT b FROM t)", "more than one row returned by a subquery"),
    ("SELECT 1 / (count(*) - 4) FROM t LEFT JOIN u USING (k)", "division by zero in 1 / "),
])  # fmt: skip
def test_a_value_that_fails(sql: str, text: str, engine: hj.Engine) -> None:
    with pytest.raises(hj.DataError) as caught:
        engine.query(sql)
    assert text in str(caught.value) and "SET" not in str(caught.value)


def test_columns_have_postgresqls_names_and_types(engine: hj.Engine) -> None:
    found = engine.query("SELECT count(*) FILTER (WHERE ok), rank() OVER (ORDER BY count(*)), EXISTS (SELECT 1), "
                         "avg(i), sum(i), sum(b), (SELECT max(k) FROM u), max(v) AS m, array_agg(k), sum(f) FROM t")
    assert [(field.name, str(field.type)) for field in found.schema] == [
        ("count", "int64"), ("rank", "int64"), ("exists", "bool"), ("avg", "decimal128(32, 22)"), ("sum", "int64"),
        ("sum", "decimal128(38, 0)"), ("max", "int32"), ("m", "int16"), ("array_agg", "list<item: int32>"),
        ("sum", "double")]


def test_as_of_a_time() -> None:
    engine = hj.Engine(retain=100)
    engine.execute("CREATE TABLE t (k integer)")
    engine.apply({"t": [{"k": 1}]}, time=1)
    engine.apply({"t": [{"k": 2}]}, time=5)
    assert [rows(engine.query("SELECT sum(k) FROM t", as_of=time)) for time in (0, 1, 4, 5)] == [
        [(None,)], [(1,)], [(1,)], [(3,)]]
    with pytest.raises(hj.InvalidTime, match="cannot read t as of 9"):
        engine.query("SELECT sum(k) FROM t", as_of=9)
    assert rows(engine.query("SELECT count(*) FROM generate_series(1, 3)", as_of=9)) == [(3,)]


def test_the_query_and_the_engine_stay_as_they_were(engine: hj.Engine) -> None:
    query = parse_query("SELECT a FROM (SELECT a, count(*) FROM t GROUP BY a) q WHERE a IN (SELECT a FROM u)")
    before = query.copy()
    bind_query(query, SCHEMA, "")
    assert query == before
    names = [collection.name for collection in engine.stats().collections]
    engine.query("SELECT t.k, count(*) FROM t, u WHERE t.k = u.k GROUP BY t.k")
    assert [collection.name for collection in engine.stats().collections] == names
    assert not engine.stats().arrangements

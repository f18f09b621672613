"""Parameters and prepared statements, and what INSERT, UPDATE, DELETE and MERGE report."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import halfjoin as hj


@pytest.fixture
def engine() -> hj.Engine:
    engine = hj.Engine()
    engine.execute("CREATE TABLE t (k integer PRIMARY KEY, a integer, b text); CREATE TABLE u (k integer, y integer)")
    return engine


@pytest.mark.parametrize(("value", "type"), [
    (None, "text"), (True, "boolean"), (-3, "integer"), (2**40, "bigint"), (1.5, "double precision"),
    (float("inf"), "double precision"), (Decimal("-1.50"), "numeric(5,2)"), (date(2024, 2, 29), "date"),
    (datetime(2024, 1, 1, 2, 3, 4, 5), "timestamp"), (datetime(2024, 1, 1, tzinfo=UTC), "timestamptz"),
    (time(1, 2, 3), "time"), (b"\x00\xff", "bytea"), (UUID(int=7), "uuid"), ("it's $1 :b", "text"), ("7", "integer"),
    ([1, None, 3], "integer[]"), ([], "integer[]"),
])  # fmt: skip
def test_a_parameter_is_its_value(engine: hj.Engine, value: Any, type: str) -> None:
    wanted = 7 if value == "7" else str(value) if isinstance(value, UUID) else value
    (found,) = engine.query(f"SELECT $1::{type} AS x", [value]).column("x").to_pylist()
    assert (str(found) if isinstance(value, UUID) else found) == wanted
    engine.execute(f"CREATE TABLE x (a {type}); INSERT INTO x VALUES (:v)", {"v": value})
    found = engine.query(f"SELECT count(*) AS n FROM x WHERE a IS NOT DISTINCT FROM $1::{type}", [value])
    assert found.to_pylist() == [{"n": 1}]


def test_parameters_are_never_text_of_the_statement(engine: hj.Engine) -> None:
    engine.execute("INSERT INTO t VALUES ($1, $2, $3), ($2, -$1, $3 || $3)", [1, 2, "'); DROP TABLE t; --"])
    assert engine.query("SELECT b FROM t WHERE b = $1", ["'); DROP TABLE t; --"]).num_rows == 1
    assert engine.execute("SELECT $1 - $2 AS x", (timedelta(days=1), timedelta(hours=1))).num_rows == 1


@pytest.mark.parametrize(("sql", "params", "why"), [
    ("SELECT $2", [1], r"there is no parameter \$2"), ("SELECT :b", {"a": 1}, "there is no parameter :b"),
    ("SELECT $1", [1, 2], "takes the value number 2"), ("SELECT $1", [object()], "a parameter cannot be a object"),
    ("SELECT $1", "x", "parameters are a list"), ("SELECT $1", None, "there is no value for this parameter"),
    ("CREATE VIEW v AS SELECT $1 AS x", [1], "takes the value number 1; write the values into the statement"),
    ("SELECT k FROM t WHERE k = ?", [1], r"takes the value number 1; write \$1 where it goes"),
    ("SELECT k FROM t WHERE k IN $1", [(1, 2)], r"write IN \(1, 2\), or = ANY\(\$1\)"),
    ("SELECT $1", [time(1, 2, tzinfo=UTC)], "cannot be a time of day with a time zone; leave the zone out"),
    ("SELECT $1", [[time(1, 2, tzinfo=UTC)]], "cannot be a time of day with a time zone"),
    ("SELECT $1", [pa.scalar(10**8, pa.date32())], "cannot be this Date32Scalar: date value out of range; give a text"),
    ("SELECT $1", [np.longdouble(1.5)], "a parameter cannot be a longdouble"),
    ("SELECT $1", [{"at": date(2024, 1, 2)}], "is not JSON: .* date .*; give a text of JSON"),
])  # fmt: skip
def test_wrong_parameters_are_refused(engine: hj.Engine, sql: str, params: Any, why: str) -> None:
    with pytest.raises(hj.UnsupportedSQL, match=why):
        engine.execute(sql, params)


def test_the_nanoseconds_of_pandas_are_rounded_as_a_cast_rounds(engine: hj.Engine) -> None:
    for nanos, micros in ((999, 1), (1400, 1), (1600, 2)):
        found = engine.query("SELECT $1 = $2 AS x", [pd.Timedelta(nanos), timedelta(microseconds=micros)])
        assert found.to_pylist() == [{"x": True}]


@pytest.mark.parametrize(("value", "kind", "text"), [
    (np.datetime64("2020-02-29"), "date", "2020-02-29"), (np.datetime64("NaT", "D"), "date", None),
    (np.datetime64("2020-01-01T01:02:03.123456789"), "timestamp", "2020-01-01 01:02:03.123457"),
    (np.timedelta64(-1400, "ns"), "interval", "-00:00:00.000001"), (np.timedelta64(5, "Y"), "interval", "5 years"),
    (np.array(["2020-01-01"], "M8[ns]"), "timestamp[]", '{"2020-01-01 00:00:00"}'),
    (np.array(["a", "b"]), "text[]", "{a,b}"), (pd.Series(["a", None]), "text[]", "{a,NULL}"),
    (pl.Series([1, None]), "bigint[]", "{1,NULL}"), (pa.array([1, None]), "bigint[]", "{1,NULL}"),
    (pa.chunked_array([["a"], ["b"]]), "text[]", "{a,b}"), (pa.scalar(None, pa.int64()), "bigint", None),
    (pa.scalar(date(2020, 1, 1)), "date", "2020-01-01"), (pa.scalar({"a": 1}), "jsonb", '{"a": 1}'),
])  # fmt: skip
def test_parameters_may_be_what_columns_of_other_libraries_hold(
    engine: hj.Engine, value: Any, kind: str, text: str | None
) -> None:
    assert engine.query(f"SELECT $1::{kind}::text AS x", [value]).to_pylist() == [{"x": text}]


def test_parameters_may_come_from_numpy_and_pandas(engine: hj.Engine) -> None:
    np, pd = pytest.importorskip("numpy"), pytest.importorskip("pandas")
    frame = pd.DataFrame({"k": [1, 2], "s": [0.5, None]})
    engine.execute("INSERT INTO t (k, b) VALUES ($1, $2), ($3, 'x')", [frame.k.max(), pd.NA, np.int32(3)])
    assert engine.query("SELECT b FROM t WHERE k = $1", [frame.k.max()]).to_pylist() == [{"b": None}]
    assert engine.query("SELECT k FROM t WHERE k = ANY($1) ORDER BY k", [frame.k.to_numpy()])["k"].to_pylist() == [2]
    assert engine.query("SELECT $1 AS a, $2::timestamp AS b", [np.bool_(True), pd.NaT]).to_pylist() == [
        {"a": True, "b": None}]  # fmt: skip


def test_prepared_statements(engine: hj.Engine) -> None:
    engine.execute("PREPARE put (integer, integer) AS INSERT INTO t (k, a) VALUES ($1, $2 + $1) RETURNING a")
    assert engine.execute("EXECUTE put(1, 2)").to_pylist() == [{"a": 3}]
    assert engine.execute("EXECUTE put(1 + 1, '5')").to_pylist() == [{"a": 7}]
    assert engine.execute("EXECUTE put($1, $2)", [3, None]).to_pylist() == [{"a": None}]
    engine.execute("PREPARE two AS VALUES ($1, 2), (3, $2)")
    assert [tuple(row.values()) for row in engine.execute("EXECUTE two(1, 4)").to_pylist()] == [(1, 2), (3, 4)]
    for sql, error in (("EXECUTE put(1)", "wrong number"), ("EXECUTE put(k, 1)", "constant"), ("EXECUTE no", "'no'"),
                       ("PREPARE put AS SELECT 1", "already exists")):  # fmt: skip
        with pytest.raises(hj.HalfjoinError, match=error):
            engine.execute(sql)
    engine.execute("DEALLOCATE ALL")
    with pytest.raises(hj.UnknownName) as caught:
        engine.execute("EXECUTE put(4, 4)")
    assert caught.value.sqlstate == "26000" and engine.read("t").num_rows == 3


def test_truncate_removes_rows_not_the_view(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW n AS SELECT count(*) AS n FROM u")
    engine.execute("INSERT INTO u VALUES (1, 1), (1, 1); INSERT INTO t (k) VALUES (1); TRUNCATE t, u")
    assert engine.read("n").to_pylist() == [{"n": 0}] and engine.read("t").num_rows == 0


def test_many_values_are_one_insert(engine: hj.Engine) -> None:
    engine.execute("INSERT INTO u VALUES " + ", ".join(f"({n}, (SELECT {n}))" if n == 7 else f"({n}, {n})"
                                                       for n in range(11_000)))  # fmt: skip
    assert engine.query("SELECT sum(k - y) AS d, count(*) AS n FROM u").to_pylist() == [{"d": 0, "n": 11_000}]


def test_copies_of_a_row_all_change(engine: hj.Engine) -> None:
    engine.execute("INSERT INTO u VALUES (1, 1), (1, 1), (2, 2); INSERT INTO t (k, a) VALUES (1, 7), (2, 8)")
    found = engine.execute("UPDATE u SET y = a FROM t, (VALUES (1), (2)) AS twice (z) WHERE t.k = u.k RETURNING y")
    assert sorted(found.column("y").to_pylist()) == [7, 7, 8]
    assert engine.execute("DELETE FROM u USING t WHERE u.y = t.a AND t.k = 1").to_pylist() == [{"count": 2}]
    with pytest.raises(hj.InvalidRow) as caught:
        engine.execute("MERGE INTO u USING (VALUES (2), (2)) AS s (k) ON s.k = u.k WHEN MATCHED THEN DELETE")
    assert caught.value.sqlstate == "21000"


def test_values_are_what_others_are_joined_to(engine: hj.Engine) -> None:
    engine.execute("INSERT INTO t (k, a) VALUES (1, 7), (2, 8), (3, 9)")
    for source, shown in [
        ("(VALUES (1, 70), (2, 80)) AS s (k, a)", [(1, 70), (2, 80)]),
        ("(VALUES (1, 71), (9, 81)) s (k, a), (VALUES (1)) one (x)", [(1, 71)]),
        ("(VALUES (2), (3)) x (k) JOIN (VALUES (2, 5)) s (k, a) ON s.k = x.k", [(2, 5)]),
        ("unnest(ARRAY[2, 3]) x (k) JOIN (VALUES (3, 6)) s (k, a) USING (k)", [(3, 6)]),
    ]:
        made = engine.execute(f"UPDATE t SET a = s.a FROM {source} WHERE t.k = s.k RETURNING t.k, t.a").to_pylist()
        assert sorted(tuple(row.values()) for row in made) == shown
    gone = engine.execute("DELETE FROM t USING (VALUES (1), (3)) AS s (k) WHERE t.k = s.k RETURNING t.k").to_pylist()
    assert sorted(row["k"] for row in gone) == [1, 3]


def test_a_view_cannot_be_changed(engine: hj.Engine) -> None:
    engine.execute("CREATE MATERIALIZED VIEW v AS SELECT k FROM t; CREATE VIEW p AS SELECT k FROM t")
    for sql in ("INSERT INTO v VALUES (1)", "UPDATE p SET k = 1", "DELETE FROM v", "TRUNCATE p",
                "MERGE INTO v USING t ON v.k = t.k WHEN MATCHED THEN DELETE"):  # fmt: skip
        with pytest.raises(hj.UnknownName, match="which follows its tables"):
            engine.execute(sql)
